"""Cancellation of a solve, and its reasons."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

__all__ = ["CancelReason", "Cancellation"]


class CancelReason(StrEnum):
    """The real cause of a cancellation, as attempts record it."""

    LOST_RACE = "lost-race"  # another engine's answer was accepted
    CLOSED = "closed"  # the solver or the portfolio was closed
    DEADLINE = "deadline"  # the request's own absolute deadline passed
    LEASE_LOST = "lease-lost"  # another service may own the query by now
    USER = "user"  # the caller asked for it

    @property
    def sentence(self) -> str:
        """The reason of an answer that was cancelled, for people."""
        return "timeout" if self is CancelReason.DEADLINE else f"cancelled: {self}"


class Cancellation:
    """A switch that cancels one solve, from any thread, and stays set.

    The first reason counts. Each listener is called exactly once, on the thread that cancels, or at
    once if the switch is set already.
    """

    __slots__ = ("_listeners", "_lock", "_reason")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: CancelReason | None = None
        self._listeners: list[Callable[[CancelReason], object]] = []

    @property
    def reason(self) -> CancelReason | None:
        """Why it was cancelled; None while it was not."""
        return self._reason

    def cancel(self, reason: CancelReason) -> bool:
        """Cancel for ``reason``; False if another cancellation came first."""
        with self._lock:
            if self._reason is not None:
                return False
            self._reason = reason
            listeners, self._listeners = self._listeners, []
        for tell in listeners:
            tell(reason)
        return True

    @contextmanager
    def listening(self, tell: Callable[[CancelReason], object]) -> Iterator[None]:
        """Call ``tell(reason)`` on a cancellation before the block ends. ``tell`` must not block."""
        with self._lock:
            reason = self._reason
            if reason is None:
                self._listeners.append(tell)
        if reason is not None:
            tell(reason)
        try:
            yield
        finally:
            with self._lock:
                if tell in self._listeners:
                    self._listeners.remove(tell)
