"""State that the threads of one service share: the leases they hold, and when to stop.

The heartbeat renews the leases on the desk. If it cannot renew one, the race for that query is cancelled,
because another service may own the query by then. Nothing here uses the database.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from smtspool.solve import Cancellation, CancelReason, Portfolio
from smtspool.store import Lease

__all__ = ["Desk", "Solving"]


@dataclass(frozen=True, slots=True)
class Solving:
    """A query that a worker, named as its thread, solves with its portfolio; for how long, when asked."""

    worker: str
    query: str
    seconds: float
    portfolio: Portfolio


class Desk:
    """Leases held by this process, each with the token that cancels its race.

    Thread-safe; ``_lock`` guards ``_held`` and ``_solving``. No thread waits for anything while it has the
    lock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._solving: dict[str, tuple[str, float, Portfolio]] = {}  # thread -> query, since when
        self._held: dict[tuple[str, int], tuple[Lease, Cancellation]] = {}
        # When set, nothing more is claimed, and held leases are finished.
        self.draining = threading.Event()
        # When set, nothing more will be admitted (`--once`), so workers end when the queue is empty.
        self.admitted_all = threading.Event()
        # When set, every worker has ended, so no more results will be committed.
        self.solved_all = threading.Event()
        # Notified after every commit of answers.
        self.answered = threading.Condition()

    def hold(self, leases: Iterable[Lease]) -> None:
        """Put these leases on the desk, to be renewed from now on."""
        with self._lock:
            for lease in leases:
                self._held[lease.key] = (lease, Cancellation())

    def drop(self, leases: Iterable[Lease]) -> None:
        """Remove leases that have ended; unknown ones are ignored."""
        with self._lock:
            for lease in leases:
                self._held.pop(lease.key, None)

    def held(self) -> list[Lease]:
        """A copy."""
        with self._lock:
            return [lease for lease, _ in self._held.values()]

    def cancellation(self, lease: Lease) -> Cancellation:
        """The token of a lease that is on the desk."""
        with self._lock:
            return self._held[lease.key][1]

    @contextmanager
    def solving(self, lease: Lease, portfolio: Portfolio) -> Iterator[None]:
        """Record that the calling thread solves this query with its ``portfolio`` until the block ends."""
        worker = threading.current_thread().name
        with self._lock:
            self._solving[worker] = (lease.query.id, self._clock(), portfolio)
        try:
            yield
        finally:
            with self._lock:
                del self._solving[worker]

    def solving_now(self) -> list[Solving]:
        """The queries that are being solved, the longest first."""
        with self._lock:
            now = self._clock()
            found = [
                Solving(worker, query, now - since, portfolio)
                for worker, (query, since, portfolio) in self._solving.items()
            ]
        return sorted(found, key=lambda one: -one.seconds)

    def lost(self, leases: Sequence[Lease]) -> None:
        """Stop solving the queries of these leases, which are lost."""
        self._cancel((lease.key for lease in leases), CancelReason.LEASE_LOST)

    def cancel_all(self, reason: CancelReason) -> None:
        """Stop solving everything."""
        with self._lock:
            keys = list(self._held)
        self._cancel(keys, reason)

    def _cancel(self, keys: Iterable[tuple[str, int]], reason: CancelReason) -> None:
        with self._lock:
            tokens = [self._held[key][1] for key in keys if key in self._held]
        for token in tokens:
            token.cancel(reason)

    def announce(self) -> None:
        """Wake threads that wait for an answer, after a commit."""
        with self.answered:
            self.answered.notify_all()
