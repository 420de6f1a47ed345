"""One engine's solver: cancellation at every point of a request (F381), and any doubt ends the generation."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator

import pytest

from smtspool.errors import ClosedError, InfrastructureError, MisuseError
from smtspool.query import Failure, Query, Status, parse_smt2
from smtspool.solve import Generation
from smtspool.solve.cancellation import Cancellation, CancelReason
from smtspool.solve.persistent import PersistentSolver, Recycle
from tests.solve.gates import Gates, Thread, gates
from tests.solve.scripted import ScriptedServer
from tests.solve.tracks import eventually


def query(value: int = 42) -> Query:
    (parsed,) = parse_smt2(
        f"(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= x (_ bv{value} 8)))(check-sat)"
    )
    return parsed


A, B = query(1), query(2)
_ids = (f"attempt-{number}" for number in itertools.count(1))


def soon(seconds: float = 10.0) -> float:
    return time.monotonic() + seconds


def ask(solver: PersistentSolver, what: Query = A, *, within: float = 10.0, **kwargs: object):
    kwargs.setdefault("attempt_id", next(_ids))
    return solver.solve(what, deadline=soon(within), **kwargs)  # type: ignore[arg-type]


@pytest.fixture
def seen() -> Iterator[Gates]:
    with gates() as observer:
        yield observer


def is_cancelled(answer, reason: str) -> bool:
    attempt = answer.attempt
    return (
        answer.status is Status.UNKNOWN
        and attempt.reason == f"cancelled: {reason}"
        and attempt.cancelled
        and attempt.cancel_reason == reason
    )


# -- the request nobody disturbs ------------------------------------------------------------------------


def test_a_request_takes_the_steps_of_the_model_in_order(seen: Gates) -> None:
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        answer = ask(solver, attempt_id="one")
        assert (answer.status, answer.model, answer.attempt.engine) == (Status.SAT, {"x": "#x2a"}, "z3")
        assert seen.names("one") == [
            "Register", "AcquireIO", "Admit", "Spawn", "Exchange", "Answer", "Settle", "Unregister",
        ]  # fmt: skip
        ask(solver, attempt_id="two")
        assert "Spawn" not in seen.names("two")
        assert solver.close()


def test_an_attempt_id_is_never_used_twice_and_the_refusal_costs_nothing() -> None:
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        ask(solver, attempt_id="same")
        with pytest.raises(MisuseError, match="same"):
            ask(solver, attempt_id="same")
        ask(solver)
        assert len(server.spawned) == 1
        solver.close()


def test_the_oldest_attempt_ids_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PersistentSolver, "_HISTORY", 2)
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        for attempt in ("first", "second", "third", "first"):
            ask(solver, attempt_id=attempt)
        with pytest.raises(MisuseError):
            ask(solver, attempt_id="third")
        solver.close()


def test_a_request_too_large_to_send_is_refused_and_keeps_the_generation() -> None:
    text = " ".join(f"(assert (= x (_ bv{value % 256} 8)))" for value in range(40_000))
    (large,) = parse_smt2(f"(set-logic QF_BV)(declare-const x (_ BitVec 8)){text}(check-sat)")
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        ask(solver)
        with pytest.raises(MisuseError):
            ask(solver, large)
        assert ask(solver).attempt.generation == 1
        solver.close()


def test_a_generation_is_replaced_by_count_and_by_size() -> None:
    with ScriptedServer("z3", "unsat", "fat unsat", "unsat") as server:
        solver = PersistentSolver(server, recycle=Recycle(requests=3))
        generations = [ask(solver).attempt.generation for _ in range(5)]
        assert generations == [1, 1, 1, 2, 3]
        solver.close()


def test_a_generation_that_yielded_serves_nobody_else() -> None:
    with ScriptedServer("z3", "unsat") as server:
        solver = PersistentSolver(server)
        generations = [ask(solver, yielding=yields).attempt.generation for yields in (False, True, False)]
        assert generations == [1, 1, 2]
        solver.close()


def test_a_helper_that_died_between_requests_is_replaced_before_the_next() -> None:
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        ask(solver)
        server.spawned[0].signal_kill()
        assert server.spawned[0].wait_reaped(soon())
        assert ask(solver).attempt.generation == 2
        solver.close()


# -- cancellation, point by point -----------------------------------------------------------------------


def test_cancelled_while_queued_it_leaves_at_once_and_the_other_is_not_disturbed() -> None:
    with ScriptedServer("z3", "hang") as server, gates() as seen:
        solver = PersistentSolver(server)
        active = Thread(ask, solver, A, attempt_id="a")
        seen.taken("Exchange", attempt="a")
        queued = Thread(ask, solver, B, attempt_id="b")
        seen.taken("AcquireIO", attempt="b")
        assert solver.cancel(B.id, CancelReason.USER)
        assert is_cancelled(queued.result(), "user")
        assert server.spawned[0].alive, "id B while A is active: A's helper lives"
        assert "Signal" not in seen.names()
        assert solver.cancel(A.id, CancelReason.LEASE_LOST)
        assert is_cancelled(active.result(), "lease-lost")
        assert solver.close()


def test_cancelled_between_lock_and_admission_it_sends_nothing_and_the_next_starts_cold(seen: Gates) -> None:
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        ask(solver)
        gate = seen.at("Admit", attempt="late")
        late = Thread(ask, solver, B, attempt_id="late")
        gate.reached()
        assert solver.cancel(B.id, CancelReason.LOST_RACE)
        gate.open()
        assert is_cancelled(late.result(), "lost-race")
        assert "Exchange" not in seen.names("late")
        assert not server.spawned[0].valid, "cold recovery is unconditional"
        assert ask(solver).attempt.generation == 2
        assert solver.close()


@pytest.mark.parametrize("step", ["Spawn", "Exchange"])
def test_cancelled_after_admission_and_before_a_byte_is_sent(seen: Gates, step: str) -> None:
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        gate = seen.at(step, attempt="late")
        late = Thread(ask, solver, B, attempt_id="late")
        gate.reached()
        assert solver.cancel(B.id, CancelReason.LOST_RACE)
        gate.open()
        assert is_cancelled(late.result(), "lost-race")
        assert "Answer" not in seen.names("late")
        assert not server.spawned[0].valid
        assert ask(solver).status is Status.SAT
        assert solver.close()


@pytest.mark.parametrize("behaviour", ["deaf", "hang", "stop", "half"])
def test_cancelled_while_sending_waiting_or_receiving_it_is_cancelled_and_no_error(
    seen: Gates, behaviour: str
) -> None:
    # A megabyte does not fit into the socket of a deaf helper: half of the frame stays unsent.
    text = " ".join(f"(assert (= x (_ bv{value % 256} 8)))" for value in range(4_000))
    (large,) = parse_smt2(f"(set-logic QF_BV)(declare-const x (_ BitVec 8)){text}(check-sat)")
    with ScriptedServer("z3", behaviour, "unsat") as server:
        solver = PersistentSolver(server)
        request = Thread(ask, solver, large, attempt_id="r")
        seen.taken("Exchange", attempt="r")
        assert solver.cancel(large.id, CancelReason.LOST_RACE)
        assert is_cancelled(request.result(), "lost-race")
        assert ask(solver).status is Status.UNSAT
        assert solver.close()


def test_cancelled_with_the_answer_there_but_not_settled_it_is_cancelled(seen: Gates) -> None:
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        gate = seen.at("Settle", attempt="late")
        late = Thread(ask, solver, B, attempt_id="late")
        gate.reached()
        assert solver.cancel(B.id, CancelReason.LOST_RACE)
        gate.open()
        assert is_cancelled(late.result(), "lost-race")
        assert not server.spawned[0].valid
        assert solver.close()


def test_an_answer_that_settled_before_the_cancellation_stays_the_answer(seen: Gates) -> None:
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        gate = seen.at("Unregister", attempt="done")
        done = Thread(ask, solver, B, attempt_id="done")
        gate.reached()
        assert solver.cancel(B.id, CancelReason.LOST_RACE), "it is still registered, so it is told"
        gate.open()
        assert done.result().status is Status.SAT
        assert server.spawned[0].alive, "and its generation is not killed for it"
        assert ask(solver).attempt.generation == 1
        assert solver.close()


def test_the_reason_that_counts_is_told_once_and_only_as_the_request_settles(seen: Gates) -> None:
    told: list[CancelReason | None] = []
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        ask(solver, decided=told.append)
        gate = seen.at("Settle", attempt="late")
        late = Thread(ask, solver, B, attempt_id="late", decided=told.append)
        gate.reached()
        assert solver.cancel(B.id, CancelReason.LOST_RACE)
        assert told == [None]
        gate.open()
        late.result()
        assert told == [None, CancelReason.LOST_RACE]
        assert solver.close()


def test_cancelled_twice_the_first_reason_stays(seen: Gates) -> None:
    with ScriptedServer("z3", "hang") as server:
        solver = PersistentSolver(server)
        gate = seen.at("Settle")
        request = Thread(ask, solver, A)
        seen.taken("Exchange")
        assert solver.cancel(A.id, CancelReason.LOST_RACE)
        assert solver.cancel(A.id, CancelReason.USER)
        gate.open()
        assert is_cancelled(request.result(), "lost-race")
        assert solver.close()


def test_cancelling_an_id_that_two_requests_share_reaches_both(seen: Gates) -> None:
    with ScriptedServer("z3", "hang", "sat") as server:
        solver = PersistentSolver(server)
        first = Thread(ask, solver, A, attempt_id="first")
        seen.taken("Exchange", attempt="first")
        second = Thread(ask, solver, A, attempt_id="second")
        seen.taken("AcquireIO", attempt="second")
        assert solver.cancel(A.id, CancelReason.USER)
        assert is_cancelled(first.result(), "user")
        assert is_cancelled(second.result(), "user")
        assert not solver.cancel(A.id, CancelReason.USER), "nobody is left to be told"
        assert ask(solver).status is Status.SAT
        assert solver.close()


def test_a_kill_on_its_way_never_hits_the_generation_of_the_next_request(seen: Gates) -> None:
    with ScriptedServer("z3", "hang", "hang") as server:
        solver = PersistentSolver(server)
        first = Thread(ask, solver, A, attempt_id="first")
        seen.taken("Exchange", attempt="first")
        signal = seen.at("Signal", generation=1)
        canceller = Thread(solver.cancel, A.id, CancelReason.USER)
        signal.reached()
        server.spawned[0].signal_kill()  # the first request ends before the canceller's signal goes out
        assert is_cancelled(first.result(), "user")
        second = Thread(ask, solver, B, attempt_id="second")
        seen.taken("Exchange", attempt="second")
        signal.open()
        assert canceller.result()
        assert server.spawned[1].alive
        assert solver.cancel(B.id, CancelReason.USER)
        assert is_cancelled(second.result(), "user")
        assert solver.close()


def test_a_cancelled_answer_takes_its_generation_along_even_if_the_kill_is_late(seen: Gates) -> None:
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        settle = seen.at("Settle", attempt="first")
        first = Thread(ask, solver, A, attempt_id="first")
        settle.reached()
        signal = seen.at("Signal", generation=1)
        canceller = Thread(solver.cancel, A.id, CancelReason.USER)
        signal.reached()
        settle.open()
        assert is_cancelled(first.result(), "user")
        assert ask(solver, B).attempt.generation == 2
        signal.open()
        assert canceller.result()
        assert ask(solver, B).attempt.generation == 2
        assert solver.close()


def test_a_token_cancelled_before_the_request_registers_is_not_lost(seen: Gates) -> None:
    with ScriptedServer("z3", "hang") as server:
        solver = PersistentSolver(server)
        token = Cancellation()
        gate = seen.at("Register")
        request = Thread(ask, solver, A, cancellation=token)
        gate.reached()
        token.cancel(CancelReason.LOST_RACE)
        assert not solver.cancel(A.id, CancelReason.LOST_RACE), "not registered, so nobody is told"
        gate.open()
        assert is_cancelled(request.result(), "lost-race")
        assert not server.spawned
        assert solver.close()


# -- deadlines ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", ["deaf", "hang", "stop", "half"])
def test_a_helper_that_does_not_answer_costs_the_time_allowed_and_no_more(behaviour: str) -> None:
    with ScriptedServer("z3", behaviour, "unsat") as server:
        solver = PersistentSolver(server)
        started = time.monotonic()
        answer = ask(solver, within=0.2)
        assert time.monotonic() - started < 1.0
        assert (answer.status, answer.attempt.reason) == (Status.UNKNOWN, "timeout")
        assert answer.attempt.cancel_reason == "deadline"
        assert ask(solver).attempt.generation == 2
        solver.close()


def test_the_deadline_covers_waiting_for_the_turn(seen: Gates) -> None:
    with ScriptedServer("z3", "hang") as server:
        solver = PersistentSolver(server)
        active = Thread(ask, solver, A, attempt_id="a")
        seen.taken("Exchange", attempt="a")
        answer = ask(solver, B, within=0.1)
        assert (answer.attempt.reason, answer.attempt.generation) == ("timeout", 0)
        assert server.spawned[0].alive
        solver.close()
        active.result()


# -- any doubt ends the generation ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "failure", "word"),
    [
        ("die", Failure.CRASHED, "crashed"),
        ("other", Failure.NO_REPLY, "echo"),
        ("garbage", Failure.NO_REPLY, "encoding"),
        ("oversize", Failure.NO_REPLY, "oversize"),
    ],
)
def test_a_helper_that_breaks_the_protocol_is_an_error_and_is_replaced(
    behaviour: str, failure: Failure, word: str
) -> None:
    with ScriptedServer("z3", behaviour, "unsat") as server:
        solver = PersistentSolver(server)
        answer = ask(solver)
        assert answer.status is Status.ERROR
        assert answer.attempt.failure is failure
        assert answer.attempt.reason is not None and answer.attempt.reason.startswith(f"{word}: ")
        assert ask(solver).attempt.generation == 2
        solver.close()


def test_the_last_words_of_a_helper_that_died_are_in_the_reason() -> None:
    with ScriptedServer("z3", "die") as server:
        solver = PersistentSolver(server)
        assert "assertion failed in the engine" in (ask(solver).attempt.reason or "")
        solver.close()


def test_a_second_answer_to_one_request_is_never_taken_for_the_answer_to_the_next() -> None:
    with ScriptedServer("z3", "twice", "sat") as server:
        solver = PersistentSolver(server)
        first = ask(solver)
        second = ask(solver, B)
        # Depending on when the second copy arrives it spoils its own request or the next; it answers neither.
        assert first.status in (Status.UNSAT, Status.ERROR)
        assert second.status in (Status.SAT, Status.ERROR)
        assert ask(solver).status is Status.SAT
        solver.close()


def test_an_engine_error_ends_the_generation_too() -> None:
    with ScriptedServer("z3", "error", "unsat") as server:
        solver = PersistentSolver(server)
        refused = ask(solver)
        assert (refused.status, refused.attempt.failure) == (Status.ERROR, Failure.REFUSED)
        answered = ask(solver).attempt
        assert (answered.generation, answered.failure) == (2, None)
        solver.close()


def test_two_megabytes_on_stderr_do_not_stall_a_request() -> None:
    with ScriptedServer("z3", "flood") as server:
        solver = PersistentSolver(server)
        assert ask(solver).status is Status.UNSAT
        solver.close()


# -- close ----------------------------------------------------------------------------------------------


def test_close_releases_active_and_queued_requests_and_refuses_new_ones(seen: Gates) -> None:
    with ScriptedServer("z3", "hang") as server:
        solver = PersistentSolver(server)
        active = Thread(ask, solver, A, attempt_id="a")
        seen.taken("Exchange", attempt="a")
        queued = Thread(ask, solver, B, attempt_id="b")
        seen.taken("AcquireIO", attempt="b")
        assert solver.close()
        assert is_cancelled(active.result(), "closed")
        assert is_cancelled(queued.result(), "closed")
        assert not server.spawned[0].valid
        with pytest.raises(ClosedError):
            ask(solver)
        assert solver.close()


def test_a_forked_child_that_closes_it_returns_and_ends_no_helper_of_its_parents() -> None:
    """Though at the moment of the fork a thread, which the child does not have, held the lock."""
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        ask(solver)
        with solver._state:
            child = os.fork()
            if child == 0:
                os._exit(0 if solver.close(grace_s=0.0) else 1)
        ended = eventually(
            lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        )
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == 0 and ended
        assert server.spawned[0].alive
        assert solver.close()


@pytest.mark.parametrize("step", ["Register", "AcquireIO", "Admit", "Spawn", "Exchange", "Answer", "Settle"])
def test_close_at_any_step_of_a_request_leaves_no_helper(seen: Gates, step: str) -> None:
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        gate = seen.at(step)
        request = Thread(ask, solver, A)
        gate.reached()
        closer = Thread(solver.close)
        seen.taken("Close")
        gate.open()
        assert closer.result()
        if step == "Register":
            with pytest.raises(ClosedError):
                request.result()
        else:
            assert is_cancelled(request.result(), "closed")
        assert all(not generation.valid for generation in server.spawned)


def test_close_is_bounded_when_a_caller_cannot_leave(seen: Gates) -> None:
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        gate = seen.at("Spawn")
        request = Thread(ask, solver, A)
        gate.reached()
        assert not solver.close(grace_s=0.05)
        gate.open()
        assert is_cancelled(request.result(), "closed")
        assert not server.spawned[0].valid, "the straggler cleans up behind itself"


class _NoHelpers(ScriptedServer):
    """A machine that has no process to give."""

    def spawn(self, deadline: float) -> Generation:
        raise InfrastructureError("no process")


def test_without_a_helper_it_raises_unless_it_was_cancelled_before_it_settled(seen: Gates) -> None:
    with _NoHelpers("z3") as server:
        solver = PersistentSolver(server)
        with pytest.raises(InfrastructureError, match="no process"):
            ask(solver)
        gate = seen.at("Settle", attempt="late")
        late = Thread(ask, solver, B, attempt_id="late")
        gate.reached()
        assert solver.cancel(B.id, CancelReason.LOST_RACE)
        gate.open()
        assert is_cancelled(late.result(), "lost-race")
        assert solver.close()


class _OneHelper(ScriptedServer):
    """A machine that has one process to give, and no second one."""

    def spawn(self, deadline: float) -> Generation:
        if self.spawned:
            raise InfrastructureError("no other process")
        return super().spawn(deadline)


def test_without_another_helper_nothing_is_asked_of_the_one_that_died() -> None:
    with _OneHelper("z3", "sat") as server:
        solver = PersistentSolver(server)
        ask(solver)
        server.spawned[0].signal_kill()
        assert server.spawned[0].wait_reaped(soon())
        with pytest.raises(InfrastructureError, match="no other process"):
            ask(solver)
        assert solver.close()
