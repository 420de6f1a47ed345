"""Numbers that are computed twice: once as a value, once as the SMT-LIB term that says how.

A parser that is handed a list of :class:`BV` instead of ``bytes`` runs as it always does, because a BV
knows its concrete value. Beside that it writes down a :class:`Path`: at every place where Python needs
a truth value or a plain number from the input, one :class:`Branch` with the term that decided it.
That is *concolic* execution; constants stay Python numbers and leave no trace.
"""

from __future__ import annotations

import operator
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from types import CodeType

__all__ = ["BV", "Branch", "Condition", "Path", "Term", "location"]

_BITS: dict[str, Callable[[int, int], int]] = {
    "bvadd": operator.add,
    "bvsub": operator.sub,
    "bvmul": operator.mul,
    "bvand": operator.and_,
    "bvor": operator.or_,
    "bvxor": operator.xor,
    "bvshl": operator.lshift,
    "bvlshr": operator.rshift,
    "bvudiv": operator.floordiv,
    "bvurem": operator.mod,
}
_TRUTH: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "bvult": operator.lt,
    "bvule": operator.le,
    "bvugt": operator.gt,
    "bvuge": operator.ge,
}


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A node of a term graph. Compared by identity: a value used twice is one node, printed once."""

    head: str
    args: tuple[Term, ...] = ()
    inputs: frozenset[int] = frozenset()  # offsets of the input octets below this node

    @staticmethod
    def apply(head: str, *args: Term) -> Term:
        return Term(head, args, frozenset().union(*(arg.inputs for arg in args)))

    def negated(self) -> Term:
        return self.args[0] if self.head == "not" else Term.apply("not", self)

    def __str__(self) -> str:
        """SMT-LIB text, linear in the number of nodes: what is shared is bound by ``let``."""
        nodes = _operands_first(self)
        uses = Counter(arg for node in nodes for arg in node.args)
        shared = [node for node in nodes if node.args and uses[node] > 1]
        names = {node: f"t{number}" for number, node in enumerate(shared)}
        lets = "".join(f"(let (({name} {_written_out(node, names)})) " for node, name in names.items())
        return lets + _written_out(self, names) + ")" * len(names)


def _operands_first(root: Term) -> list[Term]:
    """Every node under ``root`` once, operands before operators. A stack, because loops make deep terms."""
    order: dict[Term, None] = {}
    stack = [(root, False)]
    while stack:
        node, operands_done = stack.pop()
        if operands_done:
            order[node] = None
        elif node not in order:
            stack.append((node, True))
            stack.extend((arg, False) for arg in reversed(node.args))
    return list(order)


def _written_out(root: Term, names: Mapping[Term, str]) -> str:
    """The text of ``root``, in which nodes that ``names`` has stand as their names."""
    words: list[str] = []
    stack: list[Term | str] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            words.append(item)
        elif item in names and item is not root:
            words.append(names[item])
        elif not item.args:
            words.append(item.head)
        else:
            words.append(f"({item.head}")
            stack.append(")")
            for arg in reversed(item.args):
                stack += (arg, " ")
    return "".join(words)


@dataclass(frozen=True, slots=True)
class Branch:
    """One decision of a run: at ``site``, the input made the program go the way of ``outcome``."""

    site: int
    outcome: bool | int  # a truth value, or the plain number Python asked for (an index, a range)
    assertion: Term  # true of every input that goes this way here
    operand: Term | None = None  # what was compared, when the other side was a constant
    value: int = 0  # the operand's value in this run


@dataclass(slots=True)
class Path:
    """What one run decided, in order. ``width`` is the machine word that input octets are widened to."""

    width: int
    branches: list[Branch] = field(default_factory=list)

    def octets(self, data: bytes, start: int) -> list[BV]:
        """``data[start:]`` as the values a parser computes with; octet ``k`` is the symbol ``in_k``."""
        extend = f"(_ zero_extend {self.width - 8})"
        return [
            BV(self, data[offset], Term(f"({extend} in_{offset})", inputs=frozenset({offset})))
            for offset in range(start, len(data))
        ]

    @property
    def trace(self) -> tuple[tuple[int, bool | int], ...]:
        """The run without its terms: ``(site, outcome)`` of every branch."""
        return tuple((branch.site, branch.outcome) for branch in self.branches)


@dataclass(frozen=True, slots=True)
class Condition:
    """The result of comparing. Asking for its truth is what makes a branch."""

    path: Path
    value: bool
    term: Term
    operand: BV | None

    def __bool__(self) -> bool:
        self.decide(_caller(), self.value)
        return self.value

    def decide(self, site: int, outcome: bool | int) -> None:
        """Add the branch that this condition, with the value it has, decided at ``site``."""
        assertion = self.term if self.value else self.term.negated()
        branch = Branch(site, outcome, assertion)
        if self.operand is not None:
            branch = Branch(site, outcome, assertion, self.operand.term, self.operand.value)
        self.path.branches.append(branch)


class BV:
    """An unsigned machine word: arithmetic wraps around, as ``bvadd`` and its kin do."""

    __slots__ = ("path", "term", "value")
    __hash__ = None  # type: ignore[assignment]  # equality is a Condition, so a BV cannot be a key

    def __init__(self, path: Path, value: int, term: Term) -> None:
        self.path = path
        self.value = value
        self.term = term

    def _lift(self, other: BV | int) -> BV:
        if isinstance(other, BV):
            return other
        constant = other % (1 << self.path.width)
        return BV(self.path, constant, Term(f"#x{constant:0{self.path.width // 4}x}"))

    def _bits(self, head: str, left: BV | int, right: BV | int) -> BV:
        a, b = self._lift(left), self._lift(right)
        value = _BITS[head](a.value, b.value) % (1 << self.path.width)
        return BV(self.path, value, Term.apply(head, a.term, b.term))

    def _truth(self, head: str, other: BV | int) -> Condition:
        b = self._lift(other)
        term = Term.apply(head, self.term, b.term)
        operand = None if isinstance(other, BV) else self
        return Condition(self.path, _TRUTH[head](self.value, b.value), term, operand)

    def __add__(self, other: BV | int) -> BV:
        return self._bits("bvadd", self, other)

    def __radd__(self, other: int) -> BV:
        return self._bits("bvadd", other, self)

    def __sub__(self, other: BV | int) -> BV:
        return self._bits("bvsub", self, other)

    def __rsub__(self, other: int) -> BV:
        return self._bits("bvsub", other, self)

    def __mul__(self, other: BV | int) -> BV:
        return self._bits("bvmul", self, other)

    def __rmul__(self, other: int) -> BV:
        return self._bits("bvmul", other, self)

    def __and__(self, other: BV | int) -> BV:
        return self._bits("bvand", self, other)

    def __rand__(self, other: int) -> BV:
        return self._bits("bvand", other, self)

    def __or__(self, other: BV | int) -> BV:
        return self._bits("bvor", self, other)

    def __ror__(self, other: int) -> BV:
        return self._bits("bvor", other, self)

    def __xor__(self, other: BV | int) -> BV:
        return self._bits("bvxor", self, other)

    def __rxor__(self, other: int) -> BV:
        return self._bits("bvxor", other, self)

    def __lshift__(self, other: BV | int) -> BV:
        return self._bits("bvshl", self, other)

    def __rshift__(self, other: BV | int) -> BV:
        return self._bits("bvlshr", self, other)

    def __floordiv__(self, other: BV | int) -> BV:
        return self._bits("bvudiv", self, other)

    def __mod__(self, other: BV | int) -> BV:
        return self._bits("bvurem", self, other)

    def __eq__(self, other: BV | int) -> Condition:  # type: ignore[override]
        return self._truth("=", other)

    def __ne__(self, other: BV | int) -> Condition:  # type: ignore[override]
        equal = self._truth("=", other)
        return Condition(self.path, not equal.value, equal.term.negated(), equal.operand)

    def __lt__(self, other: BV | int) -> Condition:
        return self._truth("bvult", other)

    def __le__(self, other: BV | int) -> Condition:
        return self._truth("bvule", other)

    def __gt__(self, other: BV | int) -> Condition:
        return self._truth("bvugt", other)

    def __ge__(self, other: BV | int) -> Condition:
        return self._truth("bvuge", other)

    def __index__(self) -> int:
        """The concrete value, when Python needs a plain number; the path gets a branch that fixes it."""
        self._truth("=", self.value).decide(_caller(), self.value)
        return self.value

    def __repr__(self) -> str:
        return f"BV({self.value}, {self.term})"


def _caller() -> int:
    """The site of the branch being decided: where the program stands, two frames up."""
    frame = sys._getframe(2)
    return _site(frame.f_code, frame.f_lasti)


@cache
def _site(code: CodeType, instruction: int) -> int:
    line, _, column, _ = next(islice(code.co_positions(), instruction // 2, None))
    return (line or 0) * 1000 + (column or 0)


def location(site: int) -> tuple[int, int]:
    """The source line and column that a site number stands for."""
    return divmod(site, 1000)
