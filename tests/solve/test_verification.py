"""Which engine checks a model: the cheapest, by what checks have cost so far."""

from __future__ import annotations

from typing import cast

import pytest

from smtspool.query import Attempt, Query, Status, parse_smt2
from smtspool.solve import EngineAnswer, PersistentSolver
from smtspool.solve.verification import Verifier

(QUERY,) = parse_smt2("(declare-const x (_ BitVec 8))(assert (= x #x05))(check-sat)")
MODEL = {"x": "#x05"}


class Lane:
    """A lane whose checks take as long as the test says."""

    def __init__(self, engine: str, ms: float) -> None:
        self.engine = engine
        self.ms = ms
        self.generation = 1

    def solve(self, query: Query, *, attempt_id: str, **_more: object) -> EngineAnswer:
        attempt = Attempt(attempt_id, self.engine, Status.SAT, generation=self.generation, elapsed_ms=self.ms)
        return EngineAnswer(attempt)


@pytest.fixture
def lanes() -> dict[str, Lane]:
    return {"z3": Lane("z3", 1.0), "cvc5": Lane("cvc5", 3.0)}


@pytest.fixture
def verifier(lanes: dict[str, Lane]) -> Verifier:
    return Verifier([cast(PersistentSolver, lane) for lane in lanes.values()], lambda engine, logic: True)


def who(verifier: Verifier) -> str | None:
    return verifier.verify(QUERY, MODEL, exclude=("bitwuzla",), deadline=float("inf")).engine


def test_the_start_of_a_helper_is_not_held_against_its_engine(
    verifier: Verifier, lanes: dict[str, Lane]
) -> None:
    lanes["z3"].ms = 1000.0
    assert who(verifier) == "z3"
    lanes["z3"].ms = 1.0
    assert [who(verifier) for _ in range(100)] == ["z3"] * 100


def test_an_engine_that_became_slow_is_left_and_tried_again(
    verifier: Verifier, lanes: dict[str, Lane]
) -> None:
    lanes["z3"].ms = 50.0
    asked = [who(verifier) for _ in range(1000)]
    assert asked.count("cvc5") > 900
    lanes["z3"].ms = 1.0
    assert [who(verifier) for _ in range(500)][-1] == "z3"
