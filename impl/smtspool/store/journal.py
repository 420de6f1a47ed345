"""The journal of the database (``-wal``): its length, writing it back, and the readers that prevent that.

Commits go into the journal first; when it is long, it is written back into the file and begun again. A reader
holds the place up to which it reads. Until it ends, later commits stay in the journal, which grows. Nothing
is lost by that, but the disk fills.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from .database import CHECKPOINT_PAGES, Database, described
from .views import index_of, journal_of

__all__ = ["LONG_JOURNAL_BYTES", "journal_bytes", "journal_readers", "write_back"]

# From here on it is due to be written back.
LONG_JOURNAL_BYTES = CHECKPOINT_PAGES * 4096
# The bytes of the index on which readers hold a lock (SQLite file format, "WAL-index header").
_READER_LOCKS = range(123, 128)
_LOCKS = Path("/proc/locks")


def journal_bytes(path: Path) -> int:
    """Length of the journal of the database at this path; 0 if it has none."""
    with suppress(FileNotFoundError):
        return journal_of(path).stat().st_size
    return 0


def write_back(db: Database) -> tuple[int, int]:
    """Write back the part that no reader holds.

    Returns the pages in the journal and how many are written back; (-1, -1) if another connection is writing
    back.
    """
    with described(db.path):
        _, pages, written = db.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return pages, written


def journal_readers(path: Path) -> list[int]:
    """Other processes that hold a place in the journal at this moment, as far as the kernel shows them."""
    found = set()
    with suppress(OSError):
        inode = index_of(path).stat().st_ino
        for line in _LOCKS.read_text("ascii").splitlines():
            # "1: POSIX  ADVISORY  READ 4711 fd:01:23 123 123"; one who waits has an arrow in front of POSIX
            _, kind, _, _, process, file, first, *_ = line.split()
            if kind == "POSIX" and int(file.rsplit(":", 1)[1]) == inode and int(first) in _READER_LOCKS:
                found.add(int(process))
    return sorted(found - {os.getpid()})
