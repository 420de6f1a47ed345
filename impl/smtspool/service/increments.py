"""Counts that a process keeps in memory: scans and races, added to the store's counters at a heartbeat.

Other counters of the store, also those of admitted files, change in the transaction of what they count.
Nothing depends on the counts here, so a kill may lose those since the last heartbeat, or the last minute of
those of an idle service.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from smtspool.solve import RaceSummary
from smtspool.spool import ScanReport
from smtspool.store import Store

from .histogram import Histogram

__all__ = ["Increments"]

# Counters that change even if a pass finds nothing.
_IDLE = ("admission.scans.", "admission.lock_wait_seconds")


class Increments:
    """Increments since the last flush, and histograms of this process. Thread-safe; the lock guards
    ``_pending``."""

    def __init__(self) -> None:
        self.raced = Histogram()  # seconds that races took
        self.waited = Histogram()  # seconds that accepted files waited
        self._lock = threading.Lock()
        self._pending: dict[str, float] = {}

    def add(self, increments: Mapping[str, float]) -> None:
        with self._lock:
            for name, value in increments.items():
                self._pending[name] = self._pending.get(name, 0) + value

    def scan(self, report: ScanReport) -> None:
        """Count one admission pass."""
        self.waited.observe(report.latency)
        self.add(
            {
                f"admission.scans.{report.outcome}": 1,
                "admission.deferred": report.deferred,
                "admission.lock_wait_seconds": report.lock_wait_ns / 1e9,
            }
        )

    def race(self, summary: RaceSummary) -> None:
        """Count one race."""
        self.raced.observe([summary.elapsed_ms / 1e3])
        self.add(
            {
                "races": 1,
                "races.hedged": len(summary.asked) > 1,
                "races.seconds": summary.elapsed_ms / 1e3,
            }
        )

    @property
    def news(self) -> bool:
        """Whether anything but passes without work was counted since the last flush."""
        with self._lock:
            return any(value and not name.startswith(_IDLE) for name, value in self._pending.items())

    def flush(self, store: Store) -> None:
        """Add what was counted to the store's counters; kept for the next flush if that fails."""
        with self._lock:
            pending, self._pending = self._pending, {}
        increments = {name: value for name, value in pending.items() if value}
        try:
            if increments:
                store.bump(increments)
        except BaseException:
            self.add(increments)
            raise
