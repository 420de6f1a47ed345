"""The report of one scan, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Outcome", "ScanReport"]


class Outcome(StrEnum):
    """How a scan ended. An empty spool and a busy lock are told apart, which F364 §8.7 leaves open."""

    BUSY = "busy"  # another consumer has the spool; nothing was listed, stored, made or moved
    IDLE = "idle"  # this scan had the lock and found no files
    SCANNED = "scanned"


@dataclass(frozen=True, slots=True)
class ScanReport:
    """One scan. Counts are of files, except ``created`` and ``replayed``, which are of queries."""

    outcome: Outcome
    accepted: int = 0  # stored, and moved or removed by its producer
    rejected: int = 0  # quarantined with a sidecar
    deferred: int = 0  # changing, replaced, or bad and immovable: left for the next scan
    created: int = 0
    replayed: int = 0  # already stored under the same content
    bytes: int = 0  # of the accepted files
    backlog: int | None = None  # files left in incoming/ by this scan; None when busy
    finished: bool = True  # False: the budget ran out, and the next scan goes on after the last name
    lock_wait_ns: int = 0  # since this spool object first found the lock busy; so far, when still busy
    latency: tuple[float, ...] = ()  # seconds that each accepted file waited for its commit
