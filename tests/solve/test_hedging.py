"""Order and delay of a race follow what was seen, per class of query."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.query import Query, parse_smt2
from smtspool.solve.hedging import Hedge, HedgePolicy, Time

ENGINES = ("z3", "bitwuzla", "cvc5", "mine")


def query(conjuncts: int = 1, logic: str = "QF_BV") -> Query:
    asserted = "(assert (= x #x01))" * conjuncts
    return parse_smt2(f"(set-logic {logic})(declare-const x (_ BitVec 8)){asserted}(check-sat)")[0]


def test_before_anything_is_known_bitwuzla_starts_and_the_next_waits_a_tenth_of_a_second() -> None:
    plan = HedgePolicy().plan(query(), ENGINES)
    assert plan.order == ("bitwuzla", "z3", "cvc5", "mine")
    assert plan.delay_s == pytest.approx(0.1)


def test_an_engine_that_keeps_winning_goes_first_in_its_class_only() -> None:
    policy = HedgePolicy()
    for _ in range(10):
        policy.learn(query(), [Time("bitwuzla", 60.0, cut_off=True), Time("z3", 30.0)])
    assert policy.plan(query(), ENGINES).order[0] != "bitwuzla"
    for other in (query(conjuncts=200), query(logic="QF_ABV")):
        assert policy.plan(other, ENGINES).order[0] == "bitwuzla"


def test_the_delay_is_four_times_the_p95_of_the_first_engines_answers() -> None:
    policy = HedgePolicy(Hedge.FIXED)
    policy.learn(query(), [Time("z3", ms) for ms in (2.0, 3.0, 40.0) * 20])
    assert policy.plan(query(), ENGINES).delay_s == pytest.approx(0.16)
    policy.learn(query(), [Time("z3", 100.0, cut_off=True)] * 40)
    assert policy.plan(query(), ENGINES).delay_s == pytest.approx(0.16), "races it lost are no reason to wait"


def test_the_delay_is_never_longer_than_what_counts_as_hard() -> None:
    policy = HedgePolicy(Hedge.FIXED)
    policy.learn(query(), [Time("z3", ms) for ms in (2.0, 3.0, 200.0) * 20])
    assert policy.plan(query(), ENGINES).delay_s == pytest.approx(0.25)


def test_a_class_known_to_be_hard_starts_all_at_once() -> None:
    policy = HedgePolicy()
    policy.learn(query(), [Time(engine, 5000.0) for engine in ENGINES for _ in range(10)])
    assert policy.plan(query(), ENGINES).delay_s == 0
    assert policy.plan(query(logic="QF_ABV"), ENGINES).delay_s > 0


def test_the_caller_may_say_that_a_query_is_hard() -> None:
    assert HedgePolicy().plan(query(), ENGINES, hard=True).delay_s == 0


def test_all_at_once_and_the_fixed_order_are_options() -> None:
    together = HedgePolicy(Hedge.TOGETHER).plan(query(), ENGINES)
    assert (together.order, together.delay_s) == (ENGINES, 0)
    assert HedgePolicy(Hedge.FIXED).plan(query(), ENGINES).order == ENGINES


def test_old_experience_makes_room_for_new() -> None:
    policy = HedgePolicy()
    for ms in [5000.0] * 100 + [2.0] * 64:
        policy.learn(query(), [Time("bitwuzla", ms)])
    assert policy.plan(query(), ENGINES).delay_s == pytest.approx(0.1)


times = st.lists(
    st.builds(Time, st.sampled_from(ENGINES), st.floats(0, 1e6, allow_nan=False), st.booleans()), max_size=200
)


@given(times)
def test_what_was_learnt_survives_a_restart(seen: list[Time]) -> None:
    before, after = HedgePolicy(), HedgePolicy()
    before.learn(query(), seen)
    after.load(json.loads(json.dumps(before.to_json())))
    assert after.plan(query(), ENGINES) == before.plan(query(), ENGINES)
    assert after.to_json() == before.to_json()


@given(times)
def test_a_plan_has_every_engine_once_and_a_bounded_delay(seen: list[Time]) -> None:
    policy = HedgePolicy()
    policy.learn(query(), seen)
    plan = policy.plan(query(), ENGINES)
    assert sorted(plan.order) == sorted(ENGINES)
    assert 0 <= plan.delay_s <= policy.hard_s


TIMES = {"answered": [1.0], "cut": [2.0]}


@pytest.mark.parametrize(
    "garbage",
    [
        3,
        {"answered": [1.0]},
        {"answered": [], "cut": []},
        {"answered": [-78.0], "cut": []},
        {"answered": [True], "cut": []},
        {"answered": [float("inf")], "cut": []},
        {"answered": [float("nan")], "cut": []},
        {"answered": [10**400], "cut": []},
        {"answered": ["1"], "cut": []},
        {"answered": 1.0, "cut": []},
    ],
)
def test_damaged_experience_costs_itself_only(garbage: object) -> None:
    policy = HedgePolicy()
    assert policy.load({"QF_BV/5": {"z3": garbage, "cvc5": TIMES}, "QF_BV/6": {"z3": TIMES}}) == 1
    assert policy.to_json() == {"QF_BV/5": {"cvc5": TIMES}, "QF_BV/6": {"z3": TIMES}}


@pytest.mark.parametrize(("garbage", "unusable"), [(None, 0), ([], 1), ({"QF_BV/5": []}, 1)])
def test_experience_that_is_none_is_a_start_from_nothing(garbage: object, unusable: int) -> None:
    policy = HedgePolicy()
    assert policy.load(garbage) == unusable
    assert policy.to_json() == {}


@pytest.mark.parametrize("ms", [-78.0, float("nan"), float("inf")])
def test_what_is_no_time_is_not_learnt(ms: float) -> None:
    policy = HedgePolicy()
    policy.learn(query(), [Time("mine", ms)] * 100)
    assert policy.plan(query(), ENGINES).order[0] == "bitwuzla"
    assert policy.load(json.loads(json.dumps(policy.to_json()))) == 0
