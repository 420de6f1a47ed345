"""Who checks a model: the cheapest, by what checks have cost so far."""

from __future__ import annotations

from typing import Any, cast

import pytest

from smtspool.query import Attempt, Query, Status, parse_smt2
from smtspool.solve import EngineAnswer, PersistentSolver
from smtspool.solve.verification import Confirm, Verifier

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
    """Of engines alone."""
    return verifier_of(lanes, confirm=Confirm.ENGINE)


def verifier_of(lanes: dict[str, Lane], **more: Any) -> Verifier:
    return Verifier(
        [cast(PersistentSolver, lane) for lane in lanes.values()], lambda engine, logic: True, **more
    )


def who(verifier: Verifier) -> str | None:
    return verifier.verify(QUERY, MODEL, exclude=("bitwuzla",), deadline=float("inf")).by


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


# -- the evaluator ----------------------------------------------------------------------------------------


def long(characters: int) -> Query:
    """The same question with more text."""
    more = "(bvult #x00 x) " * (characters // len("(bvult #x00 x) "))
    (query,) = parse_smt2(f"(declare-const x (_ BitVec 8))(assert (and {more}(= x #x05)))(check-sat)")
    return query


def verdict(verifier: Verifier, query: Query = QUERY, x: str = "#x05") -> tuple[bool | None, str | None]:
    return verifier.verify(query, {"x": x}, exclude=("bitwuzla",), deadline=float("inf"))


def test_the_evaluator_is_cheaper_than_engines_for_short_queries(lanes: dict[str, Lane]) -> None:
    verifier = verifier_of(lanes)
    assert verdict(verifier) == (True, "evaluator")
    assert verdict(verifier, x="#x06") == (False, "evaluator")
    assert verdict(verifier, x="(evil)") == (False, None)
    assert verdict(verifier, long(50_000)) == (True, "z3")


def test_an_engine_that_has_to_be_started_costs_that_too(lanes: dict[str, Lane]) -> None:
    assert verdict(verifier_of(lanes, start_s=lambda engine: 0.3), long(50_000)) == (True, "evaluator")
    started = verifier_of(lanes, start_s=lambda engine: 0.3 if engine == "z3" else 0.0)
    assert verdict(started, long(50_000)) == (True, "cvc5")
    assert verdict(verifier_of(lanes, start_s=lambda engine: 0.3), long(2_000_000)) == (True, "z3")


def test_one_engine_is_enough_for_sat() -> None:
    assert verdict(verifier_of({})) == (True, "evaluator")
    assert verdict(verifier_of({}, confirm=Confirm.ENGINE)) == (None, None)


def test_a_slow_evaluator_is_left_and_tried_again(lanes: dict[str, Lane]) -> None:
    now = 0.0
    step = 0.0

    def clock() -> float:
        nonlocal now
        now += step
        return now

    verifier = verifier_of(lanes, clock=clock)
    assert verdict(verifier) == (True, "evaluator")
    step = 0.1
    asked = [verdict(verifier)[1] for _ in range(1000)]
    assert asked.count("z3") > 900
    step = 0.0
    assert [verdict(verifier)[1] for _ in range(1000)][-1] == "evaluator"


def test_what_the_evaluator_cannot_tell_goes_to_an_engine(lanes: dict[str, Lane]) -> None:
    keys = "(Array (_ BitVec 1) Bool)"
    (query,) = parse_smt2(
        f"(set-logic QF_ABV)(declare-const a {keys})(declare-const m (Array {keys} Bool))"
        "(assert (select m a))(check-sat)"
    )
    model = {"a": f"((as const {keys}) true)", "m": f"((as const (Array {keys} Bool)) true)"}
    found = verifier_of(lanes).verify(query, model, exclude=(), deadline=float("inf"))
    assert found == (True, "z3")


def test_a_model_that_numbers_all_elements_of_a_sort_is_not_refuted(lanes: dict[str, Lane]) -> None:
    """Two arrays over S that differ nowhere on @0, the only element that the model has."""
    (query,) = parse_smt2(
        "(set-logic QF_AUFBV)(declare-sort S 0)(declare-const s S)"
        "(declare-const a (Array S Bool))(declare-const b (Array S Bool))"
        "(assert (= (store a s true) (store b s true)))(check-sat)"
    )
    model = {"a": "((as const (Array S Bool)) true)", "b": "((as const (Array S Bool)) false)", "s": "@0"}
    assert verifier_of(lanes).verify(query, model, exclude=(), deadline=float("inf")) == (None, None)
