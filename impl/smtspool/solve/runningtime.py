"""A clock of the time in which this process could run, by which limits on solving are measured.

While a process is stopped (SIGSTOP, a frozen cgroup or virtual machine), the machine's clock goes on. By that
clock, a service that was stopped together with its helpers would find all limits passed although nothing was
tried.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from smtspool import threads

__all__ = ["RunningTime"]

_TICK_S = 0.5
_STANDSTILL_S = 2.0  # a thread may wait almost so long on a busy machine


class RunningTime:
    """A clock that leaves out the times in which this process stood still. Thread-safe.

    While it is entered, a thread reads it twice a second. If two readings lie more than two seconds apart,
    the process did not run in between, and that time is left out. Before and afterwards nothing is left out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # protects the three below
        self._ticking = False
        self._read_at = 0.0
        self._left_out = 0.0
        self._end = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="running-time")

    def __call__(self) -> float:
        """Seconds."""
        with self._lock:
            now = self._clock()
            if self._ticking and now - self._read_at > _STANDSTILL_S:
                self._left_out += now - self._read_at
            self._read_at = now
            return now - self._left_out

    def stood_still(self) -> float:
        """The seconds left out so far."""
        self()
        return self._left_out

    def _tick(self) -> None:
        while not self._end.wait(_TICK_S):
            self()

    def __enter__(self) -> Self:
        with threads.wanted():
            self._ticker.start()
        self()
        self._ticking = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ticking = False
        self._end.set()
        self._ticker.join()
