"""``symcc-query-ir-v1``: the envelope of F363, a graph of at most 38 operators over the bytes of an input.

The graph decides what is asked, since the query id of the envelope's own system is a digest of it and its
evaluator reads it. The three SMT-LIB texts beside the graph are checked by the rules of F363 and not used.
Input byte ``n`` becomes the constant ``byte!n``.

A node with a short text is written where it is used; one with a long text, even a constant, becomes a
definition. That rule depends on the node alone. So the text is linear in the size of the graph, and a longer
path of a run begins with the levels of a shorter one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smtspool.errors import AdmissionError, Reason
from smtspool.query.assembler import Assembler
from smtspool.query.limits import Limits
from smtspool.query.members import hex_bytes, integer, object_of, priority_of, text, timeout_of, witness_of
from smtspool.query.theory import DEFAULT_LOGIC
from smtspool.query.value import Query

__all__ = ["SCHEMA", "parse_ir"]

SCHEMA = "symcc-query-ir-v1"
_INLINE = 200  # characters of a node that is not worth a definition
_UINT32 = (1 << 32) - 1
_BOOL = 0  # the width that stands for the sort Bool


# Operator by operator: its name for bit-vectors, and for Booleans where the envelope has one name for both.
_ARITHMETIC = {
    "add": "bvadd",
    "sub": "bvsub",
    "mul": "bvmul",
    "udiv": "bvudiv",
    "sdiv": "bvsdiv",
    "urem": "bvurem",
    "srem": "bvsrem",
    "shl": "bvshl",
    "lshr": "bvlshr",
    "ashr": "bvashr",
}
_BITWISE = {"and": ("bvand", "and"), "or": ("bvor", "or"), "xor": ("bvxor", "xor")}
_COMPARISON = {
    "ult": "bvult",
    "ule": "bvule",
    "ugt": "bvugt",
    "uge": "bvuge",
    "slt": "bvslt",
    "sle": "bvsle",
    "sgt": "bvsgt",
    "sge": "bvsge",
}
_EQUALITY = {"equal": "=", "distinct": "distinct"}
_CONNECTIVE = {"land": "and", "lor": "or"}
_ROTATION = {"rol": ("bvshl", "bvlshr"), "ror": ("bvlshr", "bvshl")}
_ARITY = {
    **dict.fromkeys(("bool", "constant", "read"), 0),
    **dict.fromkeys(("extract", "zext", "sext", "neg", "not", "lnot"), 1),
    **dict.fromkeys((*_ARITHMETIC, *_BITWISE, *_COMPARISON, *_EQUALITY, *_CONNECTIVE, *_ROTATION), 2),
    "concat": 2,
    "ite": 3,
}


@dataclass(frozen=True, slots=True)
class _Node:
    """One checked node."""

    op: str
    bits: int
    children: tuple[int, ...]
    attrs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Lowered:
    """A node as a term: its text or the name of its definition, and its width, 0 for Bool."""

    text: str
    width: int


def parse_ir(document: Mapping[str, Any], limits: Limits) -> Query:
    """The query of one envelope. Unknown members are ignored (F363). Raises ``AdmissionError``."""
    for name in ("smt2", "prefix_smt2", "target_smt2"):
        _check_text(document, name, limits)
    nodes = document.get("nodes")
    if not isinstance(nodes, list | tuple) or not nodes:
        raise _refused("'nodes' must be a list with at least one node")
    limits.hold("nodes", len(nodes))
    prefix = document.get("prefix_roots", [])
    if not isinstance(prefix, list | tuple):
        raise _refused("'prefix_roots' must be a list")
    limits.hold("assertions", len(prefix) + 1)
    roots = [integer(root, "a root", 0, len(nodes) - 1) for root in (*prefix, document.get("target_root"))]
    graph = _Graph(nodes, limits)
    for root in roots:
        graph.assert_root(root)
    return graph.assembler.query(
        metadata=object_of(document, "metadata", limits),
        timeout_ms=timeout_of(document, limits),
        priority=priority_of(document, limits),
        witness=witness_of(hex_bytes(document, "input_hex", limits), tuple(graph.bytes.items()), limits),
    )


def _refused(message: str, node: int | None = None) -> AdmissionError:
    if node is None:
        return AdmissionError(Reason.SCHEMA, message)
    return AdmissionError(Reason.SCHEMA, f"node {node}: {message}", at=f"nodes[{node}]")


def _check_text(document: Mapping[str, Any], name: str, limits: Limits) -> None:
    value = text(document, name)
    limits.hold("text", len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass")))
    if not value.strip() or "\0" in value:
        raise _refused(f"{name!r} must not be blank or hold a NUL character")


def _node(node: object, at: int, limits: Limits) -> _Node:
    if not isinstance(node, Mapping):
        raise _refused("it must be an object", at)
    integer(node.get("id"), f"the id of node {at}", at, at)
    op = text(node, "op").lower()
    if op not in _ARITY:
        raise _refused(f"unknown operator {op[:32]!r}", at)
    bits = integer(node.get("bits"), f"the bits of node {at}", 1, limits.width)
    children = node.get("children", [])
    if not isinstance(children, list | tuple) or len(children) != _ARITY[op]:
        raise _refused(f"{op} takes {_ARITY[op]} children", at)
    for child in children:
        integer(child, f"a child of node {at}", 0, at - 1)
    return _Node(op, bits, tuple(children), object_of(node, "attrs", limits))


class _Graph:
    """The nodes of one envelope and what has been lowered of them."""

    def __init__(self, nodes: Sequence[object], limits: Limits) -> None:
        self._limits = limits
        self._nodes = [_node(node, at, limits) for at, node in enumerate(nodes)]
        self._lowered: dict[int, _Lowered] = {}
        self._definitions = 0
        self.assembler = Assembler(DEFAULT_LOGIC, limits)
        self.bytes: dict[str, int] = {}

    def assert_root(self, root: int) -> None:
        """Lower ``root`` and what it needs, children first, then assert it."""
        todo = [root]
        while todo:
            at = todo[-1]
            missing = [child for child in self._nodes[at].children if child not in self._lowered]
            if missing:
                todo += reversed(missing)
                continue
            if at not in self._lowered:
                self._lowered[at] = self._lower(at, self._nodes[at])
            todo.pop()
        if self._lowered[root].width != _BOOL:
            raise _refused("a node that is not Boolean is asserted", root)
        self.assembler.assert_text(self._lowered[root].text)

    def _lower(self, at: int, node: _Node) -> _Lowered:
        children = [self._lowered[child] for child in node.children]
        lowered = self._leaf(at, node) if not children else _operator(at, node, children)
        if lowered.width not in (_BOOL, node.bits):
            raise _refused(f"{node.op} is {lowered.width} bits wide, not {node.bits}", at)
        if len(lowered.text) <= _INLINE:
            return lowered
        name = f"n!{self._definitions}"
        self._definitions += 1
        sort = f"(_ BitVec {lowered.width})" if lowered.width else "Bool"
        self.assembler.declare_text(f"(define-fun {name} () {sort} {lowered.text})")
        return _Lowered(name, lowered.width)

    def _leaf(self, at: int, node: _Node) -> _Lowered:
        if node.op == "bool":
            value = node.attrs.get("value")
            if not isinstance(value, bool):
                raise _refused("'value' must be true or false", at)
            return _Lowered("true" if value else "false", _BOOL)
        if node.op == "constant":
            number = int.from_bytes(hex_bytes(node.attrs, "value_hex", self._limits, required=True))
            if number.bit_length() > node.bits:
                raise _refused(f"the constant does not fit {node.bits} bits", at)
            digits, spare = divmod(node.bits, 4)
            return _Lowered(f"#b{number:0{node.bits}b}" if spare else f"#x{number:0{digits}x}", node.bits)
        index = integer(node.attrs.get("index"), f"'index' of node {at}", 0, _UINT32)
        self._limits.hold("witness", index + 1)
        name = f"byte!{index}"
        if name not in self.bytes:
            self.bytes[name] = index
            self.assembler.declare_text(f"(declare-fun {name} () (_ BitVec 8))")
        return _Lowered(name, 8)


def _operator(at: int, node: _Node, children: Sequence[_Lowered]) -> _Lowered:
    """One application; where an operator has several meanings, the sorts of the children decide."""
    op = node.op
    texts = " ".join([child.text for child in children])
    widths = [child.width for child in children]
    first, last = widths[0], widths[-1]
    if op == "ite":
        if first == _BOOL and widths[1] == last:
            return _Lowered(f"(ite {texts})", last)
    elif op in _EQUALITY:
        if first == last:
            return _Lowered(f"({_EQUALITY[op]} {texts})", _BOOL)
    elif op in _CONNECTIVE or op == "lnot":
        if first == last == _BOOL:
            return _Lowered(f"({_CONNECTIVE.get(op, 'not')} {texts})", _BOOL)
    elif op == "not" and first == _BOOL:
        return _Lowered(f"(not {texts})", _BOOL)
    elif op in _BITWISE:
        if first == last:
            return _Lowered(f"({_BITWISE[op][first == _BOOL]} {texts})", first)
    elif _BOOL in widths:
        pass
    elif op == "concat":
        return _Lowered(f"(concat {texts})", first + last)
    elif op in ("not", "neg"):
        return _Lowered(f"(bv{op} {texts})", first)
    elif op in ("zext", "sext"):
        if node.bits >= first:
            kind = "zero" if op == "zext" else "sign"
            return _Lowered(f"((_ {kind}_extend {node.bits - first}) {texts})", node.bits)
    elif op == "extract":
        low = integer(node.attrs.get("index"), f"'index' of node {at}", 0, first - 1)
        high = low + node.bits - 1
        if high < first:
            return _Lowered(f"((_ extract {high} {low}) {texts})", node.bits)
    elif first == last:
        if op in _COMPARISON:
            return _Lowered(f"({_COMPARISON[op]} {texts})", _BOOL)
        if op in _ARITHMETIC:
            return _Lowered(f"({_ARITHMETIC[op]} {texts})", first)
        return _rotation(op, children[0].text, children[1].text, first)
    sorts = ", ".join("Bool" if width == _BOOL else f"{width} bits" for width in widths)
    raise _refused(f"{op} does not apply to {sorts}", at)


def _rotation(op: str, value: str, amount: str, width: int) -> _Lowered:
    """Rotation by a term, which SMT-LIB lacks, as two shifts; by an amount of 0 the second one gives zero."""
    there, back = _ROTATION[op]
    size = f"(_ bv{width} {width})" if width > 1 else "#b1"
    by = f"(bvurem {amount} {size})"
    return _Lowered(f"(bvor ({there} {value} {by}) ({back} {value} (bvsub {size} {by})))", width)
