"""Queries over declared sorts: whoever answers sat, the model verifies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from smtspool.query import Query, Status, parse_smt2, script
from smtspool.solve import BUNDLED, ForkServer, Hedge, HedgePolicy, Portfolio, RaceRules, parse_engine

S = "(declare-sort S 0)(declare-const a S)(declare-const b S)(declare-const c S)"
SATISFIABLE = {
    "functions of a sort": (
        "QF_UFBV",
        f"{S}(declare-fun f (S) (_ BitVec 8))(assert (distinct (f a) (f b) (f c)))",
    ),
    "equalities": (
        "QF_UFBV",
        f"{S}(declare-fun g (S) S)(assert (= (g (g a)) b))(assert (distinct a b (g a)))",
    ),
    "a predicate": (
        "QF_UFBV",
        f"{S}(declare-fun P (S Bool) Bool)(assert (P a true))(assert (not (P b true)))",
    ),
    "made of a vector": (
        "QF_UFBV",
        f"{S}(declare-fun h ((_ BitVec 4)) S)(declare-const x (_ BitVec 4))"
        "(assert (distinct (h x) (h (bvnot x))))",
    ),
    "array keys": (
        "QF_AUFBV",
        f"{S}(declare-const m (Array S (_ BitVec 4)))(assert (distinct (select m a) (select m b)))",
    ),
    "array elements": (
        "QF_AUFBV",
        f"{S}(declare-const m (Array (_ BitVec 4) S))(assert (distinct (select m #x1) (select m #x2)))",
    ),
    "a parameter": (
        "QF_UFBV",
        "(declare-sort L 1)(declare-const u (L Bool))(declare-const v (L Bool))"
        "(declare-fun f ((L Bool)) Bool)(assert (distinct (f u) (f v)))",
    ),
}


def query(logic: str, text: str) -> Query:
    (found,) = parse_smt2(f"(set-logic {logic}){text}(check-sat)")
    return found


@pytest.fixture(scope="module")
def servers() -> Iterator[list[ForkServer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(ForkServer(parse_engine(name))) for name in BUNDLED]


@pytest.mark.parametrize("first", BUNDLED)
def test_sat_with_a_model_that_verifies(servers: list[ForkServer], first: str) -> None:
    """Each engine is asked first; nobody is said to have given a wrong model."""
    order = sorted(servers, key=lambda server: server.spec.name != first)
    with Portfolio(order, policy=HedgePolicy(Hedge.TOGETHER), rules=RaceRules(cpus=1)) as portfolio:
        for name, (logic, text) in SATISFIABLE.items():
            asked = query(logic, text)
            answer = portfolio.solve(asked, timeout_s=20)
            assert answer.status is Status.SAT, (name, answer)
            assert not any(attempt.verified is False for attempt in answer.attempts), (name, answer)
            assert "bitwuzla: timeout" not in str(answer.attempts), (name, answer)
            assert answer.model is not None
            assert script(asked, model=answer.model)


def test_unsat_stays_unsat(servers: list[ForkServer]) -> None:
    with Portfolio(servers, policy=HedgePolicy(Hedge.TOGETHER), rules=RaceRules(cpus=3)) as portfolio:
        text = f"{S}(declare-fun g (S) S)(assert (= a b))(assert (distinct (g a) (g b)))"
        assert portfolio.solve(query("QF_UFBV", text), timeout_s=20).status is Status.UNSAT
