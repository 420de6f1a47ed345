"""A view of a solver says what each request waits for, and says it only as long as it does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from smtspool.errors import InfrastructureError
from smtspool.solve import CancelReason, Generation, PersistentSolver, RequestView, SolverView, Waiting
from tests.solve.gates import Gates, Thread, gates
from tests.solve.queries import EASY, HARD
from tests.solve.scripted import ScriptedServer
from tests.solve.tracks import eventually, soon


@pytest.fixture
def seen() -> Iterator[Gates]:
    with gates() as observer:
        yield observer


def asked_by(attempt: str, solver: PersistentSolver) -> RequestView:
    (request,) = [one for one in solver.view().requests if one.attempt_id == attempt]
    return request


@pytest.mark.parametrize(
    ("step", "waits_for"),
    [
        ("AcquireIO", None),
        ("Admit", None),
        ("Spawn", Waiting.HELPER),
        ("Exchange", None),
        ("Answer", Waiting.REPLY),
        ("Settle", None),
        ("Unregister", None),
    ],
)
def test_ahead_of_each_step_it_is_seen_what_a_request_waits_for(
    seen: Gates, step: str, waits_for: Waiting | None
) -> None:
    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        gate = seen.at(step)
        request = Thread(solver.solve, EASY, attempt_id="one", deadline=soon())
        gate.reached()
        assert asked_by("one", solver).waiting is waits_for
        gate.open()
        request.result()
        assert solver.view().requests == ()
        assert solver.close()


def test_a_request_waits_for_its_turn_until_it_has_it(seen: Gates) -> None:
    with ScriptedServer("z3", "hang", "sat") as server:
        solver = PersistentSolver(server)
        first = Thread(solver.solve, HARD, attempt_id="first", deadline=soon())
        seen.taken("Exchange", attempt="first")
        gate = seen.at("Admit", attempt="second")
        second = Thread(solver.solve, EASY, attempt_id="second", deadline=soon())
        seen.taken("AcquireIO", attempt="second")
        assert eventually(lambda: asked_by("second", solver).waiting is Waiting.TURN)
        assert solver.cancel(HARD.id, CancelReason.USER)
        gate.reached()
        assert asked_by("second", solver).waiting is None
        gate.open()
        first.result(), second.result()
        assert solver.close()


class _NoHelpers(ScriptedServer):
    """A machine that has no process to give."""

    def spawn(self, deadline: float) -> Generation:
        raise InfrastructureError("no process")


def test_a_request_that_gets_no_helper_waits_for_none(seen: Gates) -> None:
    with _NoHelpers("z3") as server:
        solver = PersistentSolver(server)
        gate = seen.at("Settle")
        request = Thread(solver.solve, EASY, attempt_id="one", deadline=soon())
        gate.reached()
        shown = asked_by("one", solver)
        assert (shown.waiting, shown.trouble) == (None, "no process")
        gate.open()
        with pytest.raises(InfrastructureError):
            request.result()
        assert solver.close()


def test_a_close_is_seen_to_wait_as_long_as_it_does(seen: Gates) -> None:
    def closing(view: SolverView) -> tuple[bool, bool]:
        return view.closed, view.leaving

    with ScriptedServer("z3", "sat") as server:
        solver = PersistentSolver(server)
        gate = seen.at("Admit")
        request = Thread(solver.solve, EASY, attempt_id="one", deadline=soon())
        gate.reached()
        assert closing(solver.view()) == (False, False)
        closer = Thread(solver.close)
        assert eventually(lambda: closing(solver.view()) == (True, True))
        gate.open()
        assert closer.result()
        assert closing(solver.view()) == (True, False)
        request.result()
