"""Loops that go on after failures of the machine.

A service is a handful of :class:`Loop` threads. Each repeats one step. An infrastructure error (disk
full, database locked, a fork refused) is counted, logged, and tried again after a capped exponential
delay; it never ends the service. Any other exception is a defect: it is reported once, kept as the
service's fatal error, and everything stops, because going on would hide it.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from smtspool import threads
from smtspool.backoff import backoff_seconds
from smtspool.errors import InfrastructureError

__all__ = ["FINISHED", "MACHINE_FAILURES", "Ailment", "Health", "LastError", "Loop"]

log = logging.getLogger("smtspool")

# Errors that the machine causes; all others are defects.
MACHINE_FAILURES = (InfrastructureError, OSError, MemoryError, sqlite3.Error)

# Returned by a step that will never have anything to do again.
FINISHED = None

BACKOFF_FIRST_SECONDS = 0.1
BACKOFF_MAX_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Ailment:
    """Why a loop is backing off: failures in a row, the last message, since when (seconds of the epoch)."""

    failures: int
    message: str
    since: float


@dataclass(frozen=True, slots=True)
class LastError:
    """The latest failure of any loop, also of one that has recovered."""

    at: float
    loop: str
    message: str


class Health:
    """Which loops are failing right now. Thread-safe; the lock guards what follows it."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._lock = threading.Lock()
        self._last: LastError | None = None
        self._ailing: dict[str, Ailment] = {}
        self._fatal: Exception | None = None

    def failed(self, loop: str, error: Exception) -> int:
        """Count one more failure of ``loop`` in a row and return how many there are."""
        now = self._wall()
        with self._lock:
            known = self._ailing.get(loop)
            failures, since = (known.failures, known.since) if known else (0, now)
            ailment = Ailment(failures + 1, _words(error), since)
            self._last = LastError(now, loop, ailment.message)
            self._ailing[loop] = ailment
            return ailment.failures

    def recovered(self, loop: str) -> bool:
        """A step of ``loop`` succeeded; returns whether the one before had failed."""
        with self._lock:
            return self._ailing.pop(loop, None) is not None

    def fatal(self, error: Exception) -> None:
        """Keep the first defect."""
        with self._lock:
            self._fatal = self._fatal or error

    @property
    def fatal_error(self) -> Exception | None:
        """The defect that ended the service, if one did."""
        with self._lock:
            return self._fatal

    @property
    def last_error(self) -> LastError | None:
        """The latest failure of any loop."""
        with self._lock:
            return self._last

    def ailing(self) -> dict[str, Ailment]:
        """Loop name to ailment, as a copy; empty when all is well."""
        with self._lock:
            return dict(self._ailing)


def _words(error: Exception) -> str:
    return "out of memory" if isinstance(error, MemoryError) else str(error)


class Loop(threading.Thread):
    """Repeat ``step`` until it returns FINISHED or ``stop`` is set.

    ``step()`` returns how many seconds may pass before it is needed again (0: at once); setting :attr:`wake`
    shortens that, :meth:`hurry` shortens a back-off too. ``leave()`` always runs on the same thread at the
    end, so that the thread itself closes what it opened (its database connection, its solvers).
    ``defect(error)`` is called with an error that the machine did not cause.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], float | None],
        *,
        stop: threading.Event,
        health: Health,
        defect: Callable[[Exception], None],
        leave: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name=name)
        self.wake = threading.Event()
        self._hurried = threading.Event()
        self._step = step
        self._stop_event = stop
        self._health = health
        self._defect = defect
        self._leave = leave

    def start(self) -> None:
        """Raises InfrastructureError if the machine refuses the thread."""
        with threads.wanted():
            super().start()

    def run(self) -> None:
        try:
            with ExitStack() as stack:
                stack.callback(self._close)
                self._repeat()
        except Exception as error:  # any other error is a defect, which is kept and ends the service
            log.exception("this thread ends by a defect of smtspool; please report it")
            self._defect(error)

    def hurry(self) -> None:
        """Take the next step now, even from a back-off."""
        self._hurried.set()
        self.wake.set()

    def _repeat(self) -> None:
        while not self._stop_event.is_set():
            self.wake.clear()
            self._hurried.clear()
            try:
                pause = self._step()
            except MACHINE_FAILURES as error:
                failures = self._health.failed(self.name, error)
                pause = backoff_seconds(failures, first=BACKOFF_FIRST_SECONDS, most=BACKOFF_MAX_SECONDS)
                log.warning("%s (try again in %.1f s)", _words(error), pause)
                self._hurried.wait(pause)
                continue
            # A step that only ends the loop, as in a drain, shows nothing about the machine.
            if self._health.recovered(self.name) and pause is not FINISHED:
                log.info("works again")
            if pause is FINISHED:
                return
            if pause > 0:
                self.wake.wait(pause)

    def _close(self) -> None:
        try:
            self._leave()
        except MACHINE_FAILURES as error:
            # Nothing is lost but counts since the last heartbeat: leases are released with the owner.
            log.warning("while this thread ended: %s", error)
