"""A queue of letters from many threads to one, which waits for them by a clock that is given."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from smtspool import threads

__all__ = ["Mailbox"]

_L = TypeVar("_L")


class Mailbox(Generic[_L]):
    """First in, first out. One thread calls :meth:`get`; any may call the rest."""

    def __init__(self, clock: Callable[[], float], wait: threads.Wait) -> None:
        self._clock = clock
        self._wait = wait
        self._changed = threading.Condition()  # protects the two below
        self._letters: deque[_L] = deque()
        self._waits_until: float | None = None

    def put(self, letter: _L) -> None:
        """Post a letter."""
        with self._changed:
            self._letters.append(letter)
            self._changed.notify()

    def get(self, until: float) -> _L | None:
        """Wait for the oldest letter; None if there is none by ``until``."""
        with self._changed:
            self._waits_until = until
            try:
                there = threads.wait_until(
                    self._changed, lambda: bool(self._letters), until, clock=self._clock, wait=self._wait
                )
                return self._letters.popleft() if there else None
            finally:
                self._waits_until = None

    def view(self) -> tuple[tuple[_L, ...], float | None]:
        """The letters that are not read yet, and until when the reader waits for one."""
        with threads.looking_at(self._changed, "a mailbox"):
            return tuple(self._letters), self._waits_until
