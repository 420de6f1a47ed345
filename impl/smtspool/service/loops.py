"""Loops that outlive failures of the machine.

A service is a handful of :class:`Loop` threads. Each repeats one step. An infrastructure error (disk
full, database locked, a fork refused) is counted, logged, and tried again after a capped exponential
delay; it never ends the service. Any other exception is a defect: it is kept as the service's fatal
error and everything stops, because going on would hide it.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass

from smtspool.errors import InfrastructureError

__all__ = ["FINISHED", "Health", "Loop", "backoff_seconds"]

log = logging.getLogger("smtspool")

# What a step returns when it will never have anything to do again.
FINISHED = None

BACKOFF_FIRST_SECONDS = 0.1
BACKOFF_MAX_SECONDS = 30.0


def backoff_seconds(failures: int) -> float:
    """Delay after the ``failures``-th failure in a row: 0.1 s, doubled each time, at most 30 s."""
    return min(BACKOFF_MAX_SECONDS, BACKOFF_FIRST_SECONDS * 2.0 ** min(failures - 1, 20))


@dataclass(frozen=True, slots=True)
class Ailment:
    """Why a loop is backing off: how often in a row, and the last message."""

    failures: int
    message: str


class Health:
    """Which loops are failing right now. Thread-safe; the lock guards ``_ailing`` and ``_fatal``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ailing: dict[str, Ailment] = {}
        self._fatal: BaseException | None = None

    def failed(self, loop: str, error: Exception) -> int:
        """Count one more failure of ``loop`` in a row and return how many there are."""
        with self._lock:
            known = self._ailing.get(loop)
            ailment = Ailment(known.failures + 1 if known else 1, str(error))
            self._ailing[loop] = ailment
            return ailment.failures

    def recovered(self, loop: str) -> None:
        if loop in self._ailing:
            with self._lock:
                self._ailing.pop(loop, None)
            log.info("%s works again", loop)

    def fatal(self, error: BaseException) -> None:
        with self._lock:
            self._fatal = self._fatal or error

    @property
    def fatal_error(self) -> BaseException | None:
        return self._fatal

    def ailing(self) -> dict[str, Ailment]:
        """A copy: loop name to ailment; empty when all is well."""
        with self._lock:
            return dict(self._ailing)


class Loop(threading.Thread):
    """Repeat ``step`` until it returns FINISHED or ``stop`` is set.

    ``step()`` returns how many seconds may pass before it is needed again (0: at once); setting :attr:`wake`
    shortens the wait. ``leave()`` runs on the same thread at the end, whatever happened, so that what the
    thread opened (its database connection, its solvers) is closed by its owner.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], float | None],
        *,
        stop: threading.Event,
        health: Health,
        leave: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name=name)
        self._step = step
        self._stop_event = stop
        self.wake = threading.Event()
        self._health = health
        self._leave = leave

    def run(self) -> None:
        try:
            try:
                self._repeat()
            finally:
                self._leave()
        except Exception as error:  # the boundary of the thread: kept, and it ends the service
            log.exception("%s failed; this is a defect of smtspool, please report it", self.name)
            self._health.fatal(error)
            self._stop_event.set()

    def _repeat(self) -> None:
        while not self._stop_event.is_set():
            self.wake.clear()
            try:
                pause = self._step()
            except (InfrastructureError, OSError, sqlite3.Error) as error:
                failures = self._health.failed(self.name, error)
                pause = backoff_seconds(failures)
                log.warning("%s: %s (try again in %.1f s)", self.name, error, pause)
                self._stop_event.wait(pause)
                continue
            self._health.recovered(self.name)
            if pause is FINISHED:
                return
            if pause > 0:
                self.wake.wait(pause)
