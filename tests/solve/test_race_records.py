"""What a race records of losers that it did not wait for."""

from __future__ import annotations

from smtspool.query import Answer, Attempt, Failure, Status
from smtspool.solve import Confirm, Hedge, HedgePolicy, Portfolio, RaceRules
from tests.solve.gates import Gates, Thread, gates
from tests.solve.queries import EASY_UNSAT
from tests.solve.scripted import ScriptedServer

IMPATIENT = RaceRules(cpus=2, report_s=0.05)


def loser_of(answer: Answer) -> Attempt:
    (loser,) = (attempt for attempt in answer.attempts if attempt.engine != answer.engine)
    return loser


def race_without(loser: str, step: str) -> Answer:
    """A race that z3 wins with ``unsat`` while the other one's part stands at ``step``, unheard."""
    with (
        ScriptedServer("bitwuzla", loser) as one,
        ScriptedServer("z3", "unsat") as other,
        gates() as seen,
        Portfolio([one, other], rules=IMPATIENT, policy=HedgePolicy(Hedge.TOGETHER)) as portfolio,
    ):
        return _won_by_z3(portfolio, seen, step)


def _won_by_z3(portfolio: Portfolio, seen: Gates, step: str) -> Answer:
    held = seen.at(step, solver="bitwuzla")
    winner = seen.at("Exchange", solver="z3")
    race = Thread(portfolio.solve, EASY_UNSAT, timeout_s=20)
    held.reached()
    winner.open()
    answer: Answer = race.result()
    held.open()
    return answer


def test_a_loser_that_had_answered_before_it_was_cancelled_is_not_recorded_as_cancelled() -> None:
    for step in ("Unregister", "Report"):
        loser = loser_of(race_without("unknown", step))
        assert (loser.cancelled, loser.cancel_reason, loser.status) == (False, None, Status.UNKNOWN)
        assert loser.reason == "answered, and was not heard in time"
        assert loser.failure is Failure.UNHEARD


def test_a_loser_that_was_cancelled_before_it_settled_is_recorded_so_wherever_it_stands() -> None:
    for step in ("Register", "Exchange", "Settle"):
        loser = loser_of(race_without("unknown", step))
        assert (loser.cancelled, loser.cancel_reason) == (True, "lost-race")


def test_a_model_that_one_engine_confirms_and_another_refutes_against_an_unsat_is_no_answer() -> None:
    """Found by a random walk: z3 says unsat, and confirms the model all the same; cvc5 refutes it."""
    with (
        ScriptedServer("bitwuzla", "sat") as one,
        ScriptedServer("z3", "unsat / sat") as other,
        ScriptedServer("cvc5", "hang / unsat") as third,
        gates() as seen,
        Portfolio(
            [one, other, third],
            rules=RaceRules(cpus=3, report_s=10.0),
            policy=HedgePolicy(Hedge.TOGETHER),
            confirm=Confirm.ENGINE,
        ) as portfolio,
    ):
        late = seen.at("Unregister", solver="z3")
        early = seen.at("Exchange", solver="bitwuzla")
        race = Thread(portfolio.solve, EASY_UNSAT, timeout_s=20)
        late.reached()
        early.open()
        seen.taken("CancelSolver", solver="z3")
        late.open()
        answer = race.result()
    assert (answer.status, answer.disagreement, answer.model) == (Status.UNKNOWN, True, None)


def test_attempts_have_ids_of_their_own() -> None:
    with (
        ScriptedServer("bitwuzla", "unknown") as one,
        ScriptedServer("z3", "sat / sat") as other,
        gates() as seen,
        Portfolio([one, other], policy=HedgePolicy(Hedge.TOGETHER)) as portfolio,
    ):
        answers = [portfolio.solve(EASY_UNSAT, timeout_s=20) for _ in range(3)]
    told = [attempt.attempt_id for answer in answers for attempt in answer.attempts]
    assert len(set(told)) == len(told) == 6
    registered = [step.params["attempt"] for step in seen.steps if step.name == "Register"]
    assert len(set(registered)) == len(registered)
