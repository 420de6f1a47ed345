"""Query IR graphs: every operator means in SMT-LIB what it means in the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import bitwuzla
import pytest

from smtspool.errors import AdmissionError, Reason
from smtspool.query import Limits, Query, Witness, parse_envelope, script


def node(at: int, op: str, bits: int, *children: int, **attrs: Any) -> dict[str, Any]:
    return {"id": at, "op": op, "bits": bits, "children": list(children), "attrs": attrs}


def constant(at: int, bits: int, value: int) -> dict[str, Any]:
    return node(at, "constant", bits, value_hex=value.to_bytes((bits + 7) // 8).hex())


def ir(nodes: list[Any], target: int, prefix: tuple[int, ...] = (), **more: Any) -> dict[str, Any]:
    texts = {"smt2": "(check-sat)", "prefix_smt2": "true", "target_smt2": "true"}
    graph = {"nodes": nodes, "prefix_roots": list(prefix), "target_root": target}
    return {"schema": "symcc-query-ir-v1", **texts, **graph, **more}


def answer(query: Query) -> str:
    manager, options = bitwuzla.TermManager(), bitwuzla.Options()
    parser = bitwuzla.Parser(manager, options)
    parser.parse(script(query).replace("(check-sat)\n", ""), True, False)
    return str(parser.bitwuzla().check_sat()).lower()


def refusal(document: Mapping[str, Any]) -> AdmissionError:
    with pytest.raises(AdmissionError) as caught:
        parse_envelope(document)
    return caught.value


def signed(value: int, bits: int = 8) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _sdiv(a: int, b: int) -> int:
    a, b = signed(a), signed(b)
    if b == 0:
        return 1 if a < 0 else -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _srem(a: int, b: int) -> int:
    return signed(a) if b == 0 else signed(a) - signed(b) * _sdiv(a, b)


BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "udiv": lambda a, b: a // b if b else -1,
    "urem": lambda a, b: a % b if b else a,
    "sdiv": _sdiv,
    "srem": _srem,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "lshr": lambda a, b: a >> b,
    "ashr": lambda a, b: signed(a) >> b,
    "rol": lambda a, b: (a << b % 8) | (a >> (8 - b % 8)),
    "ror": lambda a, b: (a >> b % 8) | (a << (8 - b % 8)),
}
COMPARISON = {
    "equal": lambda a, b: a == b,
    "distinct": lambda a, b: a != b,
    "ult": lambda a, b: a < b,
    "ule": lambda a, b: a <= b,
    "ugt": lambda a, b: a > b,
    "uge": lambda a, b: a >= b,
    "slt": lambda a, b: signed(a) < signed(b),
    "sle": lambda a, b: signed(a) <= signed(b),
    "sgt": lambda a, b: signed(a) > signed(b),
    "sge": lambda a, b: signed(a) >= signed(b),
}
PAIRS = [(0x93, 0x05), (0x05, 0x93), (0x80, 0xFF), (0x80, 0x00), (0x07, 0x00), (0x41, 0x41), (0xC3, 0x0B)]


class TestOperators:
    @pytest.mark.parametrize("op", BINARY)
    def test_binary(self, op: str) -> None:
        for a, b in PAIRS:
            nodes = [constant(0, 8, a), constant(1, 8, b), node(2, op.upper(), 8, 0, 1)]
            nodes += [constant(3, 8, BINARY[op](a, b) & 0xFF), node(4, "distinct", 1, 2, 3)]
            assert answer(parse_envelope(ir(nodes, 4))) == "unsat", (op, a, b)

    @pytest.mark.parametrize("op", COMPARISON)
    def test_comparison(self, op: str) -> None:
        for a, b in PAIRS:
            nodes = [constant(0, 8, a), constant(1, 8, b), node(2, op, 1, 0, 1)]
            assert answer(parse_envelope(ir(nodes, 2))) == ("sat" if COMPARISON[op](a, b) else "unsat")

    @pytest.mark.parametrize(
        ("op", "bits", "attrs", "value"),
        [
            ("neg", 8, {}, 0x6D),
            ("not", 8, {}, 0x6C),
            ("zext", 16, {}, 0x0093),
            ("sext", 16, {}, 0xFF93),
            ("zext", 8, {}, 0x93),
            ("extract", 3, {"index": 2}, 0b100),
            ("extract", 1, {"index": 7}, 1),
        ],
    )
    def test_unary(self, op: str, bits: int, attrs: dict[str, int], value: int) -> None:
        nodes = [constant(0, 8, 0x93), node(1, op, bits, 0, **attrs)]
        nodes += [constant(2, bits, value), node(3, "distinct", 1, 1, 2)]
        assert answer(parse_envelope(ir(nodes, 3))) == "unsat"

    def test_concat_puts_the_first_child_on_top(self) -> None:
        nodes = [constant(0, 8, 0x12), constant(1, 4, 0x3), node(2, "concat", 12, 0, 1)]
        nodes += [constant(3, 12, 0x123), node(4, "equal", 1, 2, 3)]
        assert answer(parse_envelope(ir(nodes, 4))) == "sat"

    @pytest.mark.parametrize("left", [True, False])
    @pytest.mark.parametrize("right", [True, False])
    def test_connectives(self, left: bool, right: bool) -> None:
        values = {"land": left and right, "lor": left or right, "and": left and right, "or": left or right}
        values |= {"xor": left != right, "equal": left == right, "distinct": left != right}
        for op, value in values.items():
            nodes = [node(0, "bool", 1, value=left), node(1, "bool", 1, value=right), node(2, op, 1, 0, 1)]
            assert answer(parse_envelope(ir(nodes, 2))) == ("sat" if value else "unsat"), op

    @pytest.mark.parametrize("op", ["lnot", "not"])
    def test_negation(self, op: str) -> None:
        nodes = [node(0, "bool", 1, value=False), node(1, op, 1, 0)]
        assert answer(parse_envelope(ir(nodes, 1))) == "sat"

    def test_ite_of_either_sort(self) -> None:
        nodes = [
            node(0, "bool", 1, value=True),
            constant(1, 8, 1),
            constant(2, 8, 2),
            node(3, "ite", 8, 0, 1, 2),
        ]
        nodes += [node(4, "equal", 1, 3, 1), node(5, "lnot", 1, 0), node(6, "ite", 1, 4, 0, 5)]
        assert answer(parse_envelope(ir(nodes, 6))) == "sat"

    def test_one_bit_rotates_onto_itself(self) -> None:
        nodes = [constant(0, 1, 1), node(1, "rol", 1, 0, 0), node(2, "equal", 1, 0, 1)]
        assert answer(parse_envelope(ir(nodes, 2))) == "sat"


class TestInput:
    def test_reads_are_the_bytes_of_the_witness(self) -> None:
        nodes = [node(0, "read", 8, index=3), node(1, "read", 8, index=0), node(2, "ult", 1, 0, 1)]
        query = parse_envelope(ir(nodes, 2, input_hex="41Ff", metadata={"site": 9}, timeout_ms=5, priority=2))
        assert query.witness == Witness(b"\x41\xff", (("byte!3", 3), ("byte!0", 0)))
        assert query.target == "(bvult byte!3 byte!0)"
        assert (query.metadata, query.timeout_ms, query.priority) == ({"site": 9}, 5, 2.0)

    def test_unknown_members_are_ignored(self) -> None:
        assert parse_envelope(ir([node(0, "bool", 1, value=True)], 0, producer="x")).target == "true"


class TestSharing:
    def chain(self, length: int) -> list[dict[str, Any]]:
        """Each node is the sum of the last with itself: a tree of 2 ** length leaves."""
        nodes = [node(0, "read", 8, index=0)]
        nodes += [node(at, "add", 8, at - 1, at - 1) for at in range(1, length)]
        return [*nodes, node(length, "equal", 1, length - 1, 0)]

    def test_text_stays_linear_in_the_graph(self) -> None:
        small, large = (parse_envelope(ir(self.chain(n), n)).size for n in (1000, 2000))
        assert large < 2.2 * small < 2.2 * 1000 * 100

    def test_a_long_constant_is_written_once(self) -> None:
        """Its JSON is 60 bytes for a million bits, so nothing else bounds what its users would repeat."""

        def asked(users: int) -> Query:
            nodes = [constant(0, 1 << 14, 1)]
            nodes += [node(at, "and", 1 << 14, at - 1, 0) for at in range(1, users + 1)]
            return parse_envelope(ir([*nodes, node(users + 1, "equal", 1, users, 0)], users + 1))

        assert asked(3).size < 2 * (1 << 12)
        assert asked(20).size - asked(10).size < 10 * 100
        assert answer(asked(3)) == "sat"

    def test_text_is_counted_as_it_is_written(self) -> None:
        """Refused on the way: all 250,000 constants of a million bits would be 250 GB."""
        nodes = [constant(0, 1 << 14, 1)]
        for at in range(1, 20, 2):
            nodes += [constant(at, 1 << 14, 1), node(at + 1, "and", 1 << 14, at - 1, at)]
        nodes.append(node(21, "equal", 1, 20, 0))
        written = parse_envelope(ir(nodes, 21)).size
        assert written > 10 * (1 << 12)
        assert parse_envelope(ir(nodes, 21), Limits(written=written))
        with pytest.raises(AdmissionError, match="written") as caught:
            parse_envelope(ir(nodes, 21), Limits(written=written - 1))
        assert caught.value.reason is Reason.TOO_LARGE

    @pytest.mark.slow
    def test_a_quarter_of_a_million_nodes_fit(self) -> None:
        query = parse_envelope(ir(self.chain(249_999), 249_999))
        assert query.form.order == ("byte!0",)

    def test_a_longer_path_keeps_the_levels_of_the_shorter(self) -> None:
        nodes = self.chain(40)
        short = parse_envelope(ir(nodes, 40))
        nodes += [node(41, "read", 8, index=5), node(42, "add", 8, 39, 41), node(43, "ult", 1, 42, 39)]
        longer = parse_envelope(ir(nodes, 43, prefix=(40,)))
        assert longer.levels[0] == short.levels[0]

    def test_ids_do_not_depend_on_the_numbering(self) -> None:
        plain = [node(0, "read", 8, index=0), node(1, "equal", 1, 0, 0)]
        moved = [constant(0, 8, 1), node(1, "read", 8, index=0), node(2, "equal", 1, 1, 1)]
        assert parse_envelope(ir(plain, 1)).id == parse_envelope(ir(moved, 2)).id


TRUE = node(0, "bool", 1, value=True)
BYTE = node(0, "read", 8, index=0)


class TestRefusals:
    @pytest.mark.parametrize(
        "nodes",
        [
            [],
            {},
            None,
            [1],
            [{**TRUE, "id": 1}],
            [{**TRUE, "id": True}],
            [{**TRUE, "op": "made-up"}],
            [{**TRUE, "op": 3}],
            [{**TRUE, "bits": 0}],
            [{**TRUE, "bits": (1 << 20) + 1}],
            [{**TRUE, "bits": True}],
            [{**TRUE, "children": [0]}],
            [{**TRUE, "children": {}}],
            [{**TRUE, "attrs": []}],
            [{**TRUE, "attrs": {}}],
            [{**TRUE, "attrs": {"value": 1}}],
            [BYTE],
            [node(0, "read", 8, index=1 << 32)],
            [node(0, "read", 8, index=-1)],
            [node(0, "read", 16, index=0)],
            [node(0, "constant", 8)],
            [node(0, "constant", 8, value_hex="1")],
            [node(0, "constant", 8, value_hex="xx")],
            [node(0, "constant", 7, value_hex="80")],
            [BYTE, node(1, "lnot", 1, 1)],
            [BYTE, node(1, "lnot", 1, 0)],
            [BYTE, node(1, "equal", 1, 0)],
            [BYTE, node(1, "equal", 1, 0, 0, 0)],
            [BYTE, node(1, "equal", 1, 0, False)],
            [BYTE, node(1, "extract", 4, 0, index=5), node(2, "equal", 1, 1, 1)],
            [BYTE, node(1, "extract", 4, 0), node(2, "equal", 1, 1, 1)],
            [BYTE, node(1, "zext", 4, 0), node(2, "equal", 1, 1, 1)],
            [BYTE, node(1, "add", 9, 0, 0), node(2, "equal", 1, 1, 1)],
            [BYTE, node(1, "concat", 8, 0, 0), node(2, "equal", 1, 1, 1)],
            [BYTE, node(1, "zext", 9, 0), node(2, "ult", 1, 0, 1)],
            [BYTE, node(1, "equal", 1, 0, 0), node(2, "add", 1, 1, 1), node(3, "equal", 1, 2, 2)],
            [BYTE, node(1, "ite", 8, 0, 0, 0), node(2, "equal", 1, 1, 1)],
        ],
    )
    def test_graphs_that_mean_nothing(self, nodes: Any) -> None:
        last = len(nodes) - 1 if nodes else 0
        assert refusal(ir(nodes, last)).reason is Reason.SCHEMA

    @pytest.mark.parametrize(
        "changes",
        [
            {"target_root": 1},
            {"target_root": -1},
            {"target_root": False},
            {"target_root": None},
            {"prefix_roots": [1]},
            {"prefix_roots": {}},
            {"smt2": 1},
            {"smt2": " \n"},
            {"prefix_smt2": "a\0b"},
            {"target_smt2": None},
            {"input_hex": "0"},
            {"timeout_ms": 3_600_001},
            {"priority": False},
            {"metadata": None},
        ],
    )
    def test_members_of_another_type_or_range(self, changes: dict[str, Any]) -> None:
        assert refusal({**ir([TRUE], 0), **changes}).reason is Reason.SCHEMA
