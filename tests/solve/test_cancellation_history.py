"""F381 §4: the cancellation that the design before it lost, reproduced on it and absent from ours."""

from __future__ import annotations

import time

from smtspool.query import Status, parse_smt2
from smtspool.solve.cancellation import Cancellation, CancelReason
from smtspool.solve.persistent import PersistentSolver
from smtspool.solve.registration import Registration
from tests.solve.gates import Thread, gates
from tests.solve.scripted import ScriptedServer

TURNS = 1000
SLOW, FAST = (
    parse_smt2(f"(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= x #x{value}))(check-sat)")[0]
    for value in ("01", "02")
)


class PublishedAfterTheLock(PersistentSolver):
    """The design before F381: a request can be cancelled only once it has its turn at the helper."""

    def _register(self, me: Registration, cancellation: Cancellation | None) -> None:
        """Nothing yet: this is the bug."""

    def _acquire_io(self, me: Registration) -> bool:
        acquired = super()._acquire_io(me)
        super()._register(me, None)
        return acquired


def race_to_the_lock(solver: PersistentSolver, name: str) -> tuple[bool, bool]:
    """A request that runs and has not got its turn yet is cancelled: (told, cancelled)."""
    deadline = time.monotonic() + 20
    with gates() as seen:
        gate = seen.at("AcquireIO", attempt=name)
        slow = Thread(solver.solve, SLOW, attempt_id=name, deadline=deadline)
        gate.reached()  # its future is running, so Future.cancel() has failed already
        told = solver.cancel(SLOW.id, CancelReason.LOST_RACE)
        gate.open()
        answer = slow.result()
    return told, answer.attempt.cancelled


def test_the_old_design_loses_the_cancellation_every_time() -> None:
    with ScriptedServer("z3", "sat") as server:
        solver = PublishedAfterTheLock(server)
        assert {race_to_the_lock(solver, f"old-{turn}") for turn in range(20)} == {(False, False)}
        solver.close()


def test_ours_never_loses_it() -> None:
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        outcomes = {race_to_the_lock(solver, f"new-{turn}") for turn in range(TURNS)}
        assert outcomes == {(True, True)}
        cold = solver.solve(FAST, attempt_id="after", deadline=time.monotonic() + 20)
        assert (cold.status, cold.model) == (Status.SAT, {"x": "#x2a"})
        assert solver.close()
