"""The heartbeat: renew the leases of this service, store its counts, release the leases of dead owners."""

from __future__ import annotations

import time
from collections.abc import Callable

from smtspool.store import Store

from .config import Settings
from .desk import Desk
from .increments import Increments
from .journal import JournalWatch

__all__ = ["Heartbeat", "renew_leases"]

BEAT_SECONDS = 1.0
BEATS_PER_LEASE = 3
# Counts of an idle service are stored this often, since a commit every second would keep the disk busy.
IDLE_FLUSH_SECONDS = 60.0


class Heartbeat:
    """The step of the heartbeat thread; owns its database connection."""

    def __init__(
        self,
        settings: Settings,
        desk: Desk,
        increments: Increments,
        *,
        open_store: Callable[[], Store],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._desk = desk
        self._increments = increments
        self._open_store = open_store
        self._clock = clock
        self._store: Store | None = None
        self._renew_at = 0.0
        self._flush_at = 0.0
        self._journal = JournalWatch()

    def close(self) -> None:
        if self._store is not None:
            with self._store as store:
                self._increments.flush(store)

    def step(self) -> float:
        """One beat; returns the pause before the next, in seconds."""
        if self._store is None:
            self._store = self._open_store()
        # Leases are renewed first, so that no failure below loses them.
        now = self._clock()
        if now >= self._renew_at:
            renew_leases(self._store, self._desk, self._settings.lease_seconds)
            self._renew_at = now + self._settings.lease_seconds / BEATS_PER_LEASE
        if self._increments.news or now >= self._flush_at:
            self._increments.flush(self._store)
            self._flush_at = now + IDLE_FLUSH_SECONDS
        self._store.reap()
        self._journal.look(self._store)
        return min(BEAT_SECONDS, self._settings.lease_seconds / BEATS_PER_LEASE)


def renew_leases(store: Store, desk: Desk, lease_seconds: float) -> int:
    """Renew all held leases; the races of lost ones are cancelled. Returns how many are lost."""
    held = desk.held()
    if not held:
        return 0
    kept = {lease.key for lease in store.renew(held, lease_seconds)}
    lost = [lease for lease in held if lease.key not in kept]
    desk.lost(lost)
    return len(lost)
