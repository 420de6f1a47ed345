"""The race: who is asked, whose answer counts, what becomes of the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from smtspool.errors import ClosedError, ConfigError, InfrastructureError
from smtspool.query import Answer, Query, Status, parse_smt2
from smtspool.solve import (
    Cancellation,
    CancelReason,
    Confirm,
    Generation,
    Hedge,
    HedgePolicy,
    HelperLimits,
    Portfolio,
    RaceRules,
    RaceSummary,
)
from tests.solve.gates import Gates, Thread, gates
from tests.solve.scripted import ScriptedServer


def query(value: int = 42) -> Query:
    (parsed,) = parse_smt2(
        "(set-logic QF_BV)(declare-const x (_ BitVec 8))(declare-const unused (_ BitVec 16))"
        f"(assert (= x (_ bv{value} 8)))(check-sat)"
    )
    return parsed


QUERY = query()
PATIENT = RaceRules(cpus=3, report_s=10.0)
LITTLE = HelperLimits(frame=64)  # no request fits
Race = Callable[..., Portfolio]


@pytest.fixture
def racing() -> Iterator[Race]:
    """A portfolio of scripted engines, in fixed order, without delay unless told otherwise; they have the
    last word on models too."""
    with ExitStack() as stack:

        def start(*, rules: RaceRules = PATIENT, policy: Hedge = Hedge.TOGETHER, **scripts: str) -> Portfolio:
            servers = [stack.enter_context(ScriptedServer(name, text)) for name, text in scripts.items()]
            portfolio = Portfolio(servers, rules=rules, policy=HedgePolicy(policy), confirm=Confirm.ENGINE)  # type: ignore[arg-type]
            return stack.enter_context(portfolio)

        yield start


@pytest.fixture
def seen() -> Iterator[Gates]:
    with gates() as observer:
        yield observer


def by_engine(answer: Answer) -> dict[str, Any]:
    return {attempt.engine: attempt for attempt in answer.attempts}


def test_what_is_no_model_is_wrong_and_ends_nothing(racing: Race) -> None:
    """The value of a function over a declared sort is a definition; a literal is none."""
    (asked,) = parse_smt2("(set-logic QF_UFBV)(declare-sort S 0)(declare-fun f (S) S)(check-sat)")
    portfolio = racing(policy=Hedge.FIXED, bitwuzla="sat", z3="unsat", rules=RaceRules())
    portfolio.policy.floor_s = 10.0
    answer = portfolio.solve(asked, timeout_s=20)
    assert (answer.status, answer.engine) == (Status.UNSAT, "z3")
    assert by_engine(answer)["bitwuzla"].verified is False


# -- who is asked ---------------------------------------------------------------------------------------


def test_a_quick_answer_costs_one_engine(racing: Race) -> None:
    portfolio = racing(policy=Hedge.FIXED, bitwuzla="unsat", z3="hang", rules=RaceRules())
    portfolio.policy.floor_s = portfolio.policy.hard_s = 10.0
    answer = portfolio.solve(QUERY, timeout_s=10)
    assert (answer.status, answer.engine) == (Status.UNSAT, "bitwuzla")
    assert [attempt.engine for attempt in answer.attempts] == ["bitwuzla"]


def test_the_next_engine_joins_after_the_delay_and_its_answer_cancels_the_first(racing: Race) -> None:
    portfolio = racing(policy=Hedge.FIXED, bitwuzla="hang", z3="unsat")
    answer = portfolio.solve(QUERY, timeout_s=10)
    assert (answer.status, answer.engine) == (Status.UNSAT, "z3")
    loser = by_engine(answer)["bitwuzla"]
    assert (loser.cancelled, loser.cancel_reason, loser.generation) == (True, "lost-race", 1)
    assert portfolio.solve(query(7), timeout_s=10).status is Status.UNSAT, "both start over"


@pytest.mark.parametrize(("mode", "generation"), [(Hedge.FIXED, 2), (Hedge.TOGETHER, 1)])
def test_who_joins_a_running_engine_yields_to_it(racing: Race, mode: Hedge, generation: int) -> None:
    portfolio = racing(policy=mode, bitwuzla="hang", z3="unsat")
    assert portfolio.solve(QUERY, timeout_s=10).engine == "z3"
    again = by_engine(portfolio.solve(query(7), timeout_s=10))["z3"]
    assert again.generation == generation, "one that yielded is not used again"


def test_an_engine_that_gives_up_is_followed_at_once(racing: Race) -> None:
    portfolio = racing(policy=Hedge.FIXED, bitwuzla="unknown", z3="unsat")
    portfolio.policy.floor_s = portfolio.policy.hard_s = 60.0
    answer = portfolio.solve(QUERY, timeout_s=10)
    assert answer.engine == "z3"
    assert by_engine(answer)["bitwuzla"].status is Status.UNKNOWN


def test_who_holds_the_path_goes_first(racing: Race) -> None:
    portfolio = racing(policy=Hedge.LEARNT, bitwuzla="unknown unsat", z3="stacked")
    portfolio.policy.floor_s = portfolio.policy.hard_s = 60.0  # who joins a running engine keeps no stack
    assert portfolio.solve(path(9), timeout_s=10).engine == "z3"
    longer = portfolio.solve(path(12), timeout_s=10)
    assert [(attempt.engine, attempt.prefix_hit) for attempt in longer.attempts] == [("z3", 8)]
    assert portfolio.solve(QUERY, timeout_s=10).engine == "bitwuzla", "for another path, who is fastest"


def path(length: int) -> Query:
    """The last branch of a path of so many."""
    *taken, last = (f"(assert (bvugt x (_ bv{number} 8)))" for number in range(length))
    text = f"(set-logic QF_BV)(declare-const x (_ BitVec 8)){''.join(taken)}(assert (not {last[8:-1]}))"
    (parsed,) = parse_smt2(text + "(check-sat)")
    return parsed


def test_never_more_engines_at_once_than_cpus(racing: Race, seen: Gates) -> None:
    portfolio = racing(rules=RaceRules(cpus=2), bitwuzla="hang", z3="unknown", cvc5="unsat")
    gate = seen.at("Settle", solver="z3")
    race = Thread(portfolio.solve, QUERY, timeout_s=10)
    gate.reached()
    assert [step.params["solver"] for step in seen.steps if step.name == "Submit"] == ["bitwuzla", "z3"]
    gate.open()
    assert race.result().engine == "cvc5"


def test_a_query_said_to_be_hard_has_every_cpu_from_the_start(racing: Race) -> None:
    portfolio = racing(policy=Hedge.FIXED, bitwuzla="hang", z3="unsat")
    portfolio.policy.floor_s = portfolio.policy.hard_s = 60.0
    assert portfolio.solve(QUERY, timeout_s=10, hard=True).engine == "z3"


def test_only_engines_that_take_the_logic_are_asked() -> None:
    with ScriptedServer("bitwuzla", "unsat") as one, ScriptedServer("z3", "unsat") as other:
        takes = lambda engine, logic: engine == "z3"  # noqa: E731
        with Portfolio([one, other], takes=takes) as portfolio:
            assert portfolio.solve(QUERY, timeout_s=10).engine == "z3"
        with Portfolio([one, other], takes=lambda engine, logic: False) as portfolio:
            answer = portfolio.solve(QUERY, timeout_s=10)
    assert answer.status is Status.ERROR
    assert answer.reason == "no engine takes logic QF_BV: there is bitwuzla, z3"


@pytest.mark.parametrize("cold", ["bitwuzla", "z3"])
def test_an_engine_that_has_to_be_started_is_asked_later_as_is_one_behind_it(cold: str) -> None:
    start_s = lambda engine: 60.0 if engine == cold else 0.0  # noqa: E731
    with (
        ScriptedServer("bitwuzla", "hang") as one,
        ScriptedServer("z3", "unsat") as other,
        Portfolio([one, other], start_s=start_s, policy=HedgePolicy(Hedge.FIXED)) as portfolio,
    ):
        answer = portfolio.solve(QUERY, timeout_s=1)
        assert [attempt.engine for attempt in answer.attempts] == ["bitwuzla"]
        assert portfolio.solve(QUERY, timeout_s=10, hard=True).engine == "z3"


def test_engines_need_names_of_their_own() -> None:
    with ScriptedServer("z3", "unsat") as server:
        with pytest.raises(ConfigError):
            Portfolio([server, server])
        with pytest.raises(ConfigError):
            Portfolio([])


# -- whose answer counts --------------------------------------------------------------------------------


def test_sat_is_verified_by_another_engine_and_the_model_is_complete(racing: Race) -> None:
    answer = racing(bitwuzla="sat", z3="hang / sat", rules=RaceRules(cpus=1)).solve(QUERY, timeout_s=10)
    assert (answer.status, answer.engine, answer.verified_by) == (Status.SAT, "bitwuzla", "z3")
    assert set(answer.model or ()) == {"x", "unused"}
    assert answer.attempts[0].verified is True


def test_a_wrong_early_sat_cancels_nobody_and_the_slower_right_answer_wins(racing: Race) -> None:
    answer = racing(bitwuzla="sat", z3="sat / unsat", rules=RaceRules(cpus=1)).solve(QUERY, timeout_s=10)
    assert (answer.engine, answer.verified_by) == ("z3", "bitwuzla")
    assert [attempt.verified for attempt in answer.attempts] == [False, True]


def test_when_every_model_is_refuted_the_answer_is_unknown(racing: Race) -> None:
    answer = racing(bitwuzla="sat / unsat", z3="sat / unsat").solve(QUERY, timeout_s=10)
    assert (answer.status, answer.model) == (Status.UNKNOWN, None)
    assert "bitwuzla: sat with a wrong model" in (answer.reason or "")


def test_a_sat_that_nobody_can_check_is_unknown(racing: Race) -> None:
    answer = racing(bitwuzla="sat").solve(QUERY, timeout_s=10)
    assert answer.status is Status.UNKNOWN
    assert answer.reason == "bitwuzla: sat with an unverified model"


def test_a_verifier_that_dies_is_replaced_by_the_next(racing: Race) -> None:
    portfolio = racing(bitwuzla="sat", z3="hang / die", cvc5="hang / sat", rules=RaceRules(cpus=1))
    answer = portfolio.solve(QUERY, timeout_s=10)
    assert (answer.status, answer.verified_by) == (Status.SAT, "cvc5")


def test_a_verifier_that_hangs_leaves_time_for_the_next(racing: Race) -> None:
    portfolio = racing(bitwuzla="sat", z3="hang / hang", cvc5="hang / sat", rules=RaceRules(cpus=1))
    answer = portfolio.solve(QUERY, timeout_s=2)
    assert (answer.status, answer.verified_by, answer.at_limit) == (Status.SAT, "cvc5", False)


def test_verification_does_not_wait_for_an_engine_that_is_busy_losing(racing: Race) -> None:
    answer = racing(bitwuzla="hang / sat", z3="sat").solve(QUERY, timeout_s=30)
    assert (answer.engine, answer.verified_by) == ("z3", "bitwuzla")
    assert answer.elapsed_ms < 5_000


def test_a_proved_sat_against_an_unsat_is_a_disagreement(racing: Race, seen: Gates) -> None:
    portfolio = racing(bitwuzla="sat", z3="unsat / sat")
    gate = seen.at("Unregister", solver="z3")
    held = seen.at("Exchange", solver="bitwuzla")
    race = Thread(portfolio.solve, QUERY, timeout_s=10)
    gate.reached()
    held.open()
    seen.taken("CancelSolver", solver="z3")  # too late: it has settled on unsat
    gate.open()
    answer = race.result()
    assert (answer.status, answer.disagreement, answer.model) == (Status.UNKNOWN, True, None)
    assert {attempt.status for attempt in answer.attempts} == {Status.SAT, Status.UNSAT}


def test_the_refutation_of_a_model_by_who_says_unsat_needs_a_second_voice(racing: Race) -> None:
    scripts = {"bitwuzla": "sat", "z3": "unsat / unsat"}
    rules = RaceRules(cpus=1)
    assert racing(**scripts, rules=rules).solve(QUERY, timeout_s=10).disagreement
    third = racing(**scripts, cvc5="hang / unsat", rules=rules).solve(QUERY, timeout_s=10)
    assert (third.status, third.disagreement) == (Status.UNSAT, False)
    against = racing(**scripts, cvc5="hang / sat", rules=rules).solve(QUERY, timeout_s=10)
    assert (against.status, against.disagreement) == (Status.UNKNOWN, True)


def test_a_model_that_cannot_be_sent_to_a_third_engine_is_not_refuted() -> None:
    scripts = {"bitwuzla": "sat", "z3": "unsat / unsat", "cvc5": "hang"}
    with ExitStack() as stack:
        servers: list[Any] = [
            stack.enter_context(ScriptedServer(name, text, limits=LITTLE if name == "cvc5" else None))
            for name, text in scripts.items()
        ]
        policy, rules = HedgePolicy(Hedge.TOGETHER), RaceRules(cpus=1)
        portfolio = Portfolio(servers, rules=rules, policy=policy, confirm=Confirm.ENGINE)
        stack.enter_context(portfolio)
        answer = portfolio.solve(QUERY, timeout_s=10)
    assert (answer.status, answer.disagreement) == (Status.UNKNOWN, True)


def test_confirmed_unsat_needs_two_engines(racing: Race) -> None:
    rules = RaceRules(cpus=1, confirm_unsat=True)
    agreed = racing(bitwuzla="unsat", z3="unsat", rules=rules).solve(QUERY, timeout_s=10)
    assert (agreed.status, agreed.engine, agreed.verified_by) == (Status.UNSAT, "bitwuzla", "z3")
    alone = racing(bitwuzla="unsat", z3="unknown", rules=rules).solve(QUERY, timeout_s=10)
    assert (alone.status, alone.reason) == (Status.UNKNOWN, "unverified: only bitwuzla says unsat")
    opposed = racing(bitwuzla="unsat", z3="sat", rules=rules).solve(QUERY, timeout_s=10)
    assert (opposed.status, opposed.disagreement) == (Status.UNKNOWN, True)


@pytest.mark.parametrize(
    ("scripts", "status"),
    [
        ({"bitwuzla": "unknown", "z3": "die"}, Status.UNKNOWN),
        ({"bitwuzla": "die", "z3": "error"}, Status.ERROR),
        ({"bitwuzla": "other", "z3": "garbage"}, Status.ERROR),
        ({"bitwuzla": "oversize", "z3": "other"}, Status.ERROR),
    ],
)
def test_when_nobody_decides_every_reason_is_given(
    racing: Race, scripts: dict[str, str], status: Status
) -> None:
    answer = racing(**scripts).solve(QUERY, timeout_s=10)
    assert answer.status is status
    assert [part.split(":")[0] for part in (answer.reason or "").split("; ")] == ["bitwuzla", "z3"]


@pytest.mark.parametrize("behaviour", ["die", "hang", "stop", "half", "deaf", "other", "garbage", "oversize"])
def test_one_bad_engine_does_not_spoil_the_race(racing: Race, behaviour: str) -> None:
    portfolio = racing(bitwuzla=behaviour, z3="unsat", cvc5="flood")
    for value in range(3):
        assert portfolio.solve(query(value), timeout_s=20).status is Status.UNSAT


def test_a_machine_without_a_helper_to_give_is_no_answer() -> None:
    class Exhausted(ScriptedServer):
        def spawn(self, deadline: float) -> Generation:
            raise InfrastructureError("no helper process: out of processes")

    one, other = Exhausted("bitwuzla", ""), Exhausted("z3", "")
    with ScriptedServer("cvc5", "unsat") as last:
        with Portfolio([one, other]) as portfolio, pytest.raises(InfrastructureError, match="out of proc"):
            portfolio.solve(QUERY, timeout_s=10)
        with Portfolio([one, other, last]) as portfolio:
            answer = portfolio.solve(QUERY, timeout_s=10)
    assert answer.status is Status.UNSAT
    assert "out of processes" in (by_engine(answer)["z3"].reason or "")


# -- time and cancellation ------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", ["hang", "stop", "half", "deaf"])
def test_the_race_returns_by_limit_and_grace_whatever_the_engines_do(racing: Race, behaviour: str) -> None:
    portfolio = racing(bitwuzla=behaviour, z3=behaviour, rules=RaceRules(grace_s=0.1))
    started = time.monotonic()
    answer = portfolio.solve(QUERY, timeout_s=0.4)
    assert time.monotonic() - started < 1.5
    assert (answer.status, answer.reason, answer.at_limit) == (Status.UNKNOWN, "timeout", True)
    assert {attempt.cancel_reason for attempt in answer.attempts} == {"deadline"}


def test_an_answer_after_the_limit_says_so(racing: Race, seen: Gates) -> None:
    portfolio = racing(bitwuzla="unsat", rules=RaceRules(grace_s=20.0))
    gate = seen.at("Settle")
    race = Thread(portfolio.solve, QUERY, timeout_s=0.001)
    gate.reached()
    gate.open()
    answer = race.result()
    assert (answer.status, answer.at_limit) == (Status.UNSAT, True)


def test_a_loser_that_does_not_leave_is_not_waited_for(racing: Race, seen: Gates) -> None:
    portfolio = racing(bitwuzla="hang", z3="unsat", rules=RaceRules(report_s=0.05))
    gate = seen.at("Settle", solver="bitwuzla")
    answer = Thread(portfolio.solve, QUERY, timeout_s=10).result()
    loser = by_engine(answer)["bitwuzla"]
    assert (answer.engine, loser.cancelled, loser.cancel_reason) == ("z3", True, "lost-race")
    next_race = Thread(portfolio.solve, query(7), timeout_s=10)
    assert next_race.result().engine == "z3", "a taken slot does not hold up the others"
    gate.open()


@pytest.mark.parametrize("reason", [CancelReason.LEASE_LOST, CancelReason.USER])
@pytest.mark.parametrize(
    ("step", "scripts"),
    [
        ("Register", {"bitwuzla": "hang", "z3": "hang"}),
        ("AcquireIO", {"bitwuzla": "hang", "z3": "hang"}),
        ("Admit", {"bitwuzla": "hang", "z3": "hang"}),
        ("Exchange", {"bitwuzla": "hang", "z3": "hang"}),
        ("Settle", {"bitwuzla": "unsat", "z3": "hang"}),
    ],
)
def test_a_race_can_be_cancelled_from_outside_at_any_moment(
    racing: Race, seen: Gates, step: str, scripts: dict[str, str], reason: CancelReason
) -> None:
    portfolio = racing(**scripts)
    token = Cancellation()
    gate = seen.at(step, solver="bitwuzla")
    race = Thread(portfolio.solve, QUERY, timeout_s=30, cancel=token)
    gate.reached()
    assert token.cancel(reason)
    seen.taken("CancelSolver", solver="bitwuzla")
    gate.open()
    answer = race.result()
    assert (answer.status, answer.reason) == (Status.UNKNOWN, f"cancelled: {reason.value}")
    assert {attempt.cancel_reason for attempt in answer.attempts} == {reason.value}


def test_a_race_can_be_cancelled_during_verification(racing: Race, seen: Gates) -> None:
    portfolio = racing(bitwuzla="sat", z3="hang / hang")
    token = Cancellation()
    race = Thread(portfolio.solve, QUERY, timeout_s=30, cancel=token)
    seen.taken("Exchange", solver="z3/check")
    token.cancel(CancelReason.USER)
    assert race.result().reason == "cancelled: user"


def test_a_race_can_be_cancelled_while_it_asks_for_a_second_opinion(racing: Race, seen: Gates) -> None:
    rules = RaceRules(cpus=1)
    portfolio = racing(bitwuzla="sat", z3="unsat / unsat", cvc5="hang / hang", rules=rules)
    token = Cancellation()
    race = Thread(portfolio.solve, QUERY, timeout_s=30, cancel=token)
    seen.taken("Exchange", solver="cvc5/check")
    token.cancel(CancelReason.USER)
    assert race.result().disagreement


def test_a_race_cancelled_before_it_begins_asks_nobody_for_long(racing: Race) -> None:
    token = Cancellation()
    token.cancel(CancelReason.LEASE_LOST)
    answer = racing(bitwuzla="hang").solve(QUERY, timeout_s=30, cancel=token)
    assert answer.reason == "cancelled: lease-lost"


def test_a_queued_attempt_is_cancelled_by_its_future(racing: Race, seen: Gates) -> None:
    """Every thread of the pool is taken by losers that do not leave: the next attempts wait for one."""
    portfolio = racing(bitwuzla="hang", rules=RaceRules(report_s=0.01))
    stuck = [seen.at("Register") for _ in range(2)]
    tokens = [Cancellation() for _ in range(3)]
    for number, gate in enumerate(stuck):
        race = Thread(portfolio.solve, query(number), timeout_s=30, cancel=tokens[number])
        gate.reached()
        tokens[number].cancel(CancelReason.USER)
        race.result()
    queued = Thread(portfolio.solve, query(9), timeout_s=30, cancel=tokens[2])
    submitted = seen.taken("Submit", query=query(9).id)
    tokens[2].cancel(CancelReason.USER)
    assert queued.result().attempts[0].cancelled
    step = seen.taken("CancelFuture", attempt=submitted.params["attempt"])
    assert step.outcome == "cancelled"
    for gate in stuck:
        gate.open()


def test_close_ends_running_races_threads_and_helpers(seen: Gates) -> None:
    before = set(threading.enumerate())
    with ScriptedServer("bitwuzla", "hang") as one, ScriptedServer("z3", "hang") as other:
        portfolio = Portfolio([one, other], policy=HedgePolicy(Hedge.TOGETHER))
        race = Thread(portfolio.solve, QUERY, timeout_s=30)
        seen.taken("Exchange", solver="bitwuzla")
        seen.taken("Exchange", solver="z3")
        assert portfolio.close()
        assert race.result().reason == "cancelled: closed"
        assert not any(generation.valid for generation in (*one.spawned, *other.spawned))
        with pytest.raises(ClosedError):
            portfolio.solve(QUERY, timeout_s=1)
        assert set(threading.enumerate()) == before


# -- what is told and learnt ----------------------------------------------------------------------------


def test_every_race_is_told_to_the_observer() -> None:
    told: list[RaceSummary] = []
    with (
        ScriptedServer("bitwuzla", "hang") as one,
        ScriptedServer("z3", "unsat") as other,
        Portfolio([one, other], policy=HedgePolicy(Hedge.FIXED), observe=told.append) as portfolio,
    ):
        portfolio.solve(QUERY, timeout_s=10)
    (summary,) = told
    assert (summary.winner, summary.asked, summary.cancelled) == ("z3", ("bitwuzla", "z3"), 1)
    assert summary.delay_s == pytest.approx(0.1)


def test_verify_can_be_asked_for_a_model_from_elsewhere(racing: Race) -> None:
    portfolio = racing(bitwuzla="hang / unsat", z3="hang / sat")
    model = {"x": "#x2a", "unused": "#x0000"}
    assert tuple(portfolio.verify(QUERY, model, exclude_engine="bitwuzla")) == (True, "z3")
    assert tuple(portfolio.verify(QUERY, model, exclude_engine="z3")) == (False, "bitwuzla")
    assert portfolio.verify(QUERY, {"x": "(evil)"}, exclude_engine="z3").confirmed is False


def test_verify_can_be_cancelled(racing: Race, seen: Gates) -> None:
    portfolio = racing(bitwuzla="hang / hang")
    token = Cancellation()
    check = Thread(portfolio.verify, QUERY, {"x": "#x2a", "unused": "#x0000"}, cancel=token)
    seen.taken("Exchange", solver="bitwuzla/check")
    token.cancel(CancelReason.LEASE_LOST)
    assert check.result().confirmed is None


def test_a_sat_that_nobody_had_time_to_judge_is_not_held_against_its_engine(racing: Race) -> None:
    portfolio = racing(policy=Hedge.FIXED, bitwuzla="sat", z3="unsat / hang", rules=RaceRules(report_s=10.0))
    portfolio.solve(QUERY, timeout_s=5)
    (records,) = portfolio.policy.to_json().values()
    assert max(records["bitwuzla"]["answered"]) < 4_000


def test_an_engine_that_joins_late_and_fails_has_used_up_the_whole_time(racing: Race) -> None:
    portfolio = racing(policy=Hedge.FIXED, bitwuzla="hang", z3="garbage")
    portfolio.policy.floor_s = 0.25
    portfolio.solve(QUERY, timeout_s=1)
    (records,) = portfolio.policy.to_json().values()
    assert max(records["z3"]["answered"]) > 900


def test_an_engine_that_got_no_helper_has_taken_no_time() -> None:
    class Refusing(ScriptedServer):
        def spawn(self, deadline: float) -> Generation:
            raise InfrastructureError("no helper today")

    with (
        Refusing("bitwuzla") as one,
        ScriptedServer("z3", "unsat") as other,
        Portfolio([one, other], policy=HedgePolicy(Hedge.FIXED)) as portfolio,
    ):
        assert portfolio.solve(QUERY, timeout_s=10).status is Status.UNSAT
        (records,) = portfolio.policy.to_json().values()
    assert set(records) == {"z3"}
