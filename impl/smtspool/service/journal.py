"""Watching the journal of the store, which grows while a reader does not end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from smtspool.store import LONG_JOURNAL_BYTES, Store

from .figures import size

__all__ = ["Journal", "JournalWatch", "journal"]

log = logging.getLogger("smtspool")

KNOWLEDGE = "journal"


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal at one moment."""

    bytes: int
    # Since when a reader has kept it from being written back, in seconds since the epoch; None if none does.
    stuck_since: float | None


def journal(store: Store) -> Journal:
    """The length of the journal; ``stuck_since`` is what a service last stored."""
    length = store.journal_bytes()
    told = store.get(KNOWLEDGE) if length >= LONG_JOURNAL_BYTES else None
    return Journal(length, told if isinstance(told, float) else None)


class JournalWatch:
    """Checks the journal at times, on the thread of the store; warns if it is stuck and when it doubles."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._written = -1  # pages that were written back at the last look, -1 if there was nothing to do
        self._warn_at = 0  # bytes

    def look(self, store: Store) -> None:
        """Write the journal back if that is due. It is stuck if that got no further than the last time."""
        length = store.journal_bytes()
        pages, written = store.write_back() if length >= LONG_JOURNAL_BYTES else (0, 0)
        if written < 0:
            return  # another service is writing it back
        stuck = written < pages and written == self._written
        self._written = written if written < pages else -1
        known = store.get(KNOWLEDGE)
        if stuck and known is None:
            store.put(KNOWLEDGE, self._clock())
        elif written == pages and known is not None:
            store.put(KNOWLEDGE, None)
        if stuck and length >= self._warn_at:
            self._warn_at = 2 * length
            readers = ", ".join(map(str, store.journal_readers())) or "unknown"
            log.warning(
                "the journal of the store has grown to %s, because a reader that does not end keeps it from "
                "being written back (process %s); end that process, or the disk fills",
                size(length),
                readers,
            )
        elif written == pages and self._warn_at:
            self._warn_at = 0
            log.info("the journal of the store is written back again")
