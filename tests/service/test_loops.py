"""Loops: the machine may fail them, a defect may not pass."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable

import pytest

from smtspool.errors import InfrastructureError
from smtspool.service.loops import FINISHED, Ailment, Health, LastError, Loop
from tests.service.support import PATIENCE_S, until
from tests.solve.refusals import no_more_threads

Step = Callable[[], float | None]


def loop_of(step: Step, health: Health, **options: Callable[[], None]) -> Loop:
    return Loop("worker", step, stop=threading.Event(), health=health, defect=health.fatal, **options)


def run(loop: Loop) -> None:
    loop.start()
    loop.join(PATIENCE_S)
    assert not loop.is_alive()


@pytest.mark.parametrize(
    "error", [InfrastructureError("no"), OSError(28, "no"), sqlite3.OperationalError("no")]
)
def test_a_failure_of_the_machine_is_tried_again(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    outcomes: list[Exception | float | None] = [error, error, 0.0, FINISHED]
    health = Health()

    def step() -> float | None:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with caplog.at_level(logging.INFO, "smtspool"):
        run(loop_of(step, health))
    assert not outcomes
    assert health.fatal_error is None
    assert health.ailing() == {}
    assert {record.threadName for record in caplog.records} == {"worker"}  # every line begins with it
    first, second, last = (record.getMessage() for record in caplog.records)
    assert first.endswith(" (try again in 0.1 s)") and second.endswith(" (try again in 0.2 s)")
    assert last == "works again"
    assert "worker" not in first + second


def test_what_ends_before_it_worked_does_not_work_again(caplog: pytest.LogCaptureFixture) -> None:
    ended = threading.Event()
    health = Health()

    def step() -> float | None:
        if ended.is_set():
            return FINISHED
        raise InfrastructureError("disk full")

    with caplog.at_level(logging.INFO, "smtspool"):
        loop = loop_of(step, health)
        loop.start()
        until(lambda: "worker" in health.ailing())
        ended.set()
        loop.hurry()
        loop.join(PATIENCE_S)
    assert health.ailing() == {}
    assert "works again" not in caplog.text


def test_while_it_fails_its_health_says_so() -> None:
    health = Health()
    mended = threading.Event()

    def step() -> float | None:
        if not mended.is_set():
            raise InfrastructureError("disk full")
        return FINISHED

    loop = loop_of(step, health)
    loop.start()
    until(lambda: "worker" in health.ailing())
    assert health.ailing()["worker"].message == "disk full"
    mended.set()
    loop.hurry()
    loop.join(PATIENCE_S)
    assert health.ailing() == {}


def test_it_knows_since_when_and_keeps_the_last_error() -> None:
    now = [10.0]
    health = Health(wall=lambda: now[0])
    assert health.last_error is None
    health.failed("admission", OSError("disk full"))
    now[0] = 20.0
    health.failed("admission", OSError("disk still full"))
    assert health.ailing()["admission"] == Ailment(2, "disk still full", since=10.0)
    health.recovered("admission")
    assert health.ailing() == {}
    assert health.last_error == LastError(20.0, "admission", "disk still full")
    health.failed("admission", OSError("again"))
    assert health.ailing()["admission"].since == 20.0


def test_a_defect_is_kept_and_told_and_what_was_opened_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    health = Health()
    left = threading.Event()

    def step() -> float | None:
        raise ZeroDivisionError("a defect")

    run(loop_of(step, health, leave=left.set))
    assert isinstance(health.fatal_error, ZeroDivisionError)
    assert left.is_set()
    assert "please report it" in caplog.text


def test_a_failure_while_it_ends_is_no_defect(caplog: pytest.LogCaptureFixture) -> None:
    health = Health()

    def leave() -> None:
        raise InfrastructureError("database is locked")

    run(loop_of(lambda: FINISHED, health, leave=leave))
    assert health.fatal_error is None
    assert "database is locked" in caplog.text


def test_stop_ends_it_at_the_next_step() -> None:
    health, stop = Health(), threading.Event()
    loop = Loop("worker", lambda: 1000.0, stop=stop, health=health, defect=health.fatal)
    loop.start()
    stop.set()
    loop.hurry()
    loop.join(PATIENCE_S)
    assert not loop.is_alive()


def test_a_loop_whose_thread_is_refused_says_so() -> None:
    loop = loop_of(lambda: FINISHED, Health())
    with no_more_threads(), pytest.raises(InfrastructureError, match="refuses one more thread"):
        loop.start()
    assert loop.ident is None, "there is nobody to join"
