"""What a look at solvers and races shows, and that it ends also where something is stuck."""

from __future__ import annotations

import threading
import time

import pytest

from smtspool import threads
from smtspool.errors import InfrastructureError
from smtspool.solve import (
    CancelReason,
    Closing,
    Generation,
    Hedge,
    HedgePolicy,
    Part,
    PersistentSolver,
    Portfolio,
    RaceRules,
    RequestView,
    Waiting,
)
from tests.solve.gates import PATIENCE_S, Thread
from tests.solve.queries import EASY, EASY_UNSAT
from tests.solve.scripted import ScriptedServer
from tests.solve.tracks import eventually


class LateServer(ScriptedServer):
    """Its helpers start once :attr:`may_start` is set."""

    def __init__(self, name: str, *scripts: str) -> None:
        super().__init__(name, *scripts)
        self.may_start = threading.Event()

    def spawn(self, deadline: float) -> Generation:
        assert self.may_start.wait(PATIENCE_S)
        return super().spawn(deadline)


def asking(solver: PersistentSolver, attempt_id: str, query: object = EASY) -> Thread:
    return Thread(solver.solve, query, attempt_id=attempt_id, deadline=time.monotonic() + PATIENCE_S)


def request(solver: PersistentSolver, attempt_id: str) -> RequestView | None:
    return next((one for one in solver.view().requests if one.attempt_id == attempt_id), None)


def waits(solver: PersistentSolver, attempt_id: str) -> Waiting | None:
    mine = request(solver, attempt_id)
    return None if mine is None else mine.waiting


def test_requests_wait_for_a_helper_for_a_reply_and_for_their_turn() -> None:
    with LateServer("z3", "hang") as server:
        solver = PersistentSolver(server)
        assert solver.view().requests == () and solver.view().helper is None
        first = asking(solver, "first")
        eventually(lambda: waits(solver, "first") is Waiting.HELPER)
        assert solver.view().helper is None
        server.may_start.set()
        eventually(lambda: waits(solver, "first") is Waiting.REPLY)
        second = asking(solver, "second", EASY_UNSAT)
        eventually(lambda: waits(solver, "second") is Waiting.TURN)
        seen = solver.view()
        assert (seen.name, seen.engine, seen.holder, seen.active) == ("z3", "z3", "first", "first")
        assert seen.helper is not None
        assert (seen.helper.generation, seen.helper.alive) == (1, True)
        assert {one.attempt_id: one.query_id for one in seen.requests} == {
            "first": EASY.id, "second": EASY_UNSAT.id,
        }  # fmt: skip
        assert solver.cancel(EASY_UNSAT.id, CancelReason.USER)
        second.result()
        assert request(solver, "second") is None and waits(solver, "first") is Waiting.REPLY
        assert solver.close()
        first.result()
        seen = solver.view()
        assert (seen.requests, seen.holder, seen.helper, seen.closed) == ((), None, None, True)


def test_a_solver_that_is_locked_cannot_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_LOOK_S", 0.01)
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        with solver._state, pytest.raises(InfrastructureError, match=r"the solver z3 cannot be looked at"):
            solver.view()
        assert solver.view().requests == ()
        assert solver.close()


def test_a_portfolio_shows_its_race_and_since_when_each_engine_is_in_it() -> None:
    with ScriptedServer("bitwuzla", "hang") as one, ScriptedServer("z3", "hang") as other:
        portfolio = Portfolio(
            [one, other],  # type: ignore[list-item]
            rules=RaceRules(cpus=2),
            policy=HedgePolicy(Hedge.TOGETHER),
        )
        before = time.monotonic()
        solving = Thread(portfolio.solve, EASY, timeout_s=PATIENCE_S)
        eventually(
            lambda: (
                [waiting.waiting for lane in portfolio.view().solvers for waiting in lane.requests]
                == [Waiting.REPLY] * 2
            )
        )
        seen = portfolio.view()
        [race] = seen.races
        assert (race.query_id, race.to_come, race.letters) == (EASY.id, (), ())
        assert [(part.solver, part.part, part.told) for part in race.parts] == [
            ("bitwuzla", Part.RUNNING, None), ("z3", Part.RUNNING, None),
        ]  # fmt: skip
        assert all(before <= part.started <= seen.taken for part in race.parts)
        assert [checker.requests for checker in seen.checkers] == [(), ()]
        assert portfolio.close()
        solving.result()
        assert (portfolio.view().closing, portfolio.view().races) == (Closing.CLOSED, ())
