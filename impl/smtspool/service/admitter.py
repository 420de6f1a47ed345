"""The thread that admits: from the spool folder to the store, one scan at a time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from smtspool.backoff import backoff_seconds
from smtspool.query import QueryFile
from smtspool.spool import Outcome, ScanReport, Spool
from smtspool.store import Store

from .campaign import Campaign
from .config import Settings
from .desk import Desk
from .increments import Increments
from .loops import FINISHED

__all__ = ["Admitter"]

log = logging.getLogger("smtspool")

# Pause after another consumer had the lock; short, since that one may die.
BUSY_PAUSE_SECONDS = 0.05
# With `once`, a file that keeps changing is read this often before it is left where it is.
UNSTABLE_PASSES = 20
# With `once`, a follower (a service that does not admit) checks this often whether there is work...
FOLLOWER_LOOK_SECONDS = 1.0
# ...and ends if the owner of the spool has made no progress for so long: it may have ended, or wait for its
# disk. Reading the largest file takes half as long. If the follower ends too early, the owner solves later
# files alone.
OWNER_PATIENCE_SECONDS = 60.0


class Admitter:
    """The step of the admission thread; owns its database connection and its spool."""

    def __init__(
        self,
        campaign: Campaign,
        settings: Settings,
        desk: Desk,
        increments: Increments,
        *,
        consumer: str,
        admits: bool,
        once: bool,
        open_store: Callable[[], Store],
        admitted: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._campaign = campaign
        self._settings = settings
        self._desk = desk
        self._increments = increments
        self._consumer = consumer
        self._admits = admits
        self._once = once
        self._open_store = open_store
        self._admitted = admitted
        self._clock = clock
        self._serving_since = wall()
        self._unstable_passes = 0
        self._least: int | None = None  # the smallest number of files that a follower has seen in incoming/
        self._patient_until = 0.0
        self._store: Store | None = None
        self._spool: Spool | None = None

    def close(self) -> None:
        for resource in (self._spool, self._store):
            if resource is not None:
                resource.close()

    def step(self) -> float | None:
        """One scan, then wait for news. Returns the pause before the next, in seconds."""
        if self._desk.draining.is_set():
            return FINISHED
        if self._spool is None:
            self._spool = Spool.open(self._campaign.spool)
        if not self._admits:
            return self._follow(self._spool)
        if self._store is None:
            self._store = self._open_store()
        report = self._spool.scan(
            self._commit,
            self._count_rejected,
            consumer=self._consumer,
            budget_s=self._settings.scan_budget_seconds,
            batch=self._settings.batch,
            serving_since=self._serving_since,
        )
        self._increments.scan(report)
        if report.outcome is Outcome.BUSY:
            return BUSY_PAUSE_SECONDS
        if not report.finished:
            return 0
        self._unstable_passes = self._unstable_passes + 1 if report.deferred else 0
        if self._once and self._is_last(report):
            return self._end()
        if report.deferred and self._once:
            return BUSY_PAUSE_SECONDS
        if report.deferred:
            self._spool.wait(self._patience(), self._desk.draining)
        elif report.outcome is Outcome.IDLE:
            self._spool.wait(self._settings.poll_seconds, self._desk.draining)
        return 0

    def _patience(self) -> float:
        """Seconds until deferred files are read again if nothing new comes before. They grow, since a file
        may change for hours, or may be one that cannot be moved."""
        most = max(BUSY_PAUSE_SECONDS, self._settings.poll_seconds)
        return backoff_seconds(self._unstable_passes, first=BUSY_PAUSE_SECONDS, most=most)

    def _follow(self, spool: Spool) -> float | None:
        """Leave the spool to its owner. With ``once`` it ends when the owner has emptied the spool or makes
        no progress. Even if that is too early, no query of this store stays unsolved, since the workers of a
        service go on until its store has none open."""
        if not self._once:
            return FINISHED
        backlog, now = spool.backlog(), self._clock()
        if self._least is None or backlog < self._least:
            self._least = backlog
            self._patient_until = now + OWNER_PATIENCE_SECONDS
        if backlog and now < self._patient_until:
            return min(self._settings.poll_seconds, FOLLOWER_LOOK_SECONDS)
        if backlog:
            log.info("%d spool files are left in incoming/ to the service that admits", backlog)
        return self._end()

    def _end(self) -> float | None:
        """Nothing more will be admitted."""
        self._desk.admitted_all.set()
        self._admitted()
        return FINISHED

    def _commit(self, files: Sequence[QueryFile]) -> Sequence[bool]:
        assert self._store is not None
        created = self._store.admit(files, limit_ms=self._settings.timeout_ms)
        self._admitted()
        return created

    def _count_rejected(self, number: int) -> None:
        """Count at once and durably, so that a failure or a kill loses at most the count of one batch."""
        assert self._store is not None
        self._increments.add({"admission.rejected": number})
        self._increments.flush(self._store)

    def _is_last(self, report: ScanReport) -> bool:
        if self._unstable_passes >= UNSTABLE_PASSES:
            log.warning(
                "%d spool files keep changing, or cannot be moved, and are left in incoming/", report.deferred
            )
            return True
        return report.backlog == 0
