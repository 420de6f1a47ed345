"""The prefilter agrees with an engine, and lets pass what it cannot read (F301)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smtspool.query import Status, canonical_term, parse_smt2
from smtspool.solve import ForkServer, PersistentSolver, parse_engine
from smtspool.solve.prefilter import fitting

RELATIONS = ("=", "distinct", "bvult", "bvule", "bvugt", "bvuge", "bvslt", "bvsle", "bvsgt", "bvsge")
BITS = 4
OPERAND = "(bvadd x #b0001)"
NUMBERS = count()


@pytest.fixture(scope="module")
def solver() -> Iterator[PersistentSolver]:
    with ForkServer(parse_engine("bitwuzla")) as server:
        made = PersistentSolver(server)
        yield made
        made.close()


@settings(max_examples=60)
@given(st.sampled_from(RELATIONS), st.integers(0, 15), st.booleans(), st.integers(0, 2), st.data())
def test_a_value_fits_if_an_engine_says_so(
    solver: PersistentSolver, relation: str, constant: int, swapped: bool, negations: int, data: st.DataObject
) -> None:
    literal = data.draw(st.sampled_from([f"#b{constant:04b}", f"#x{constant:x}", f"(_ bv{constant} 4)"]))
    one, other = (literal, OPERAND) if swapped else (OPERAND, literal)
    target = "(not " * negations + f"({relation} {one} {other})" + ")" * negations
    (query,) = parse_smt2(f"(set-logic QF_BV)(declare-const x (_ BitVec 4))(assert {target})(check-sat)")
    value = data.draw(st.integers(0, 15))
    (with_value,) = parse_smt2(
        f"(set-logic QF_BV)(declare-const x (_ BitVec 4))(assert {target})"
        f"(assert (= {OPERAND} (_ bv{value} 4)))(check-sat)"
    )
    said = solver.solve(with_value, attempt_id=f"a-{next(NUMBERS)}", deadline=float("inf"), timeout_ms=10_000)
    fits = fitting(query.target, canonical_term(query, OPERAND), BITS, [value])
    assert (said.status is Status.SAT) == (fits == [value])


@pytest.mark.parametrize(
    "target",
    [
        "x",
        "(= x y)",
        "(bvult (bvadd x #x01) #x05)",
        "(and (= x #x01) true)",
        "(bvcomp x #x01)",
        "(= x #x01 #x01)",
        "(let ((a x)) (= a #x01))",
        "(not",
        "",
        "(= x (_ bv1 8)) ",
        "(= xx #x01)",
    ],
)
def test_what_it_cannot_read_keeps_every_value(target: str) -> None:
    assert fitting(target, "x", 8, [1, 2, 3]) == [1, 2, 3]
