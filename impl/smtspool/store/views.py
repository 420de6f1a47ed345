"""Connections that only read, with or without the right to write.

A reader of a database with a journal usually writes too: SQLite makes the journal and its index if they are
missing, and marks in the index how far it reads. There are three cases in which it may not write:

* A process has the store open, or died with it open. Journal and index exist, and SQLite can read them
without writing; if no process maintains the index on disk, it makes one in memory.
* No process has it open. There is no journal, and the file has everything. Opened as *immutable*, SQLite
makes no journal, but takes no locks either. Whether all that was read is one state can then only be told by
comparing the file before and after.
* There is a journal without its index, as in an incomplete copy, in a folder that may not be written. It
cannot be read there, and an error says so.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from smtspool.errors import InfrastructureError

__all__ = ["Unused", "connect_view", "index_of", "journal_of", "unused"]

# What changes in a file that no process has open as soon as one writes to it: inode, size, time.
Unused = tuple[int, int, int]


def connect_view(
    path: Path, timeout_s: float = 5.0, *, damaged: bool = False
) -> tuple[sqlite3.Connection, Unused | None]:
    """A connection that writes nothing; and, if it was opened as immutable, what :func:`unused` gave before.

    With ``damaged``, a line of the schema that cannot be read makes only its own table unreadable.
    Raises InfrastructureError for a journal that cannot be read here; errors of SQLite propagate.
    """
    while True:
        state = unused(path)
        mode = "mode=ro" if state is None else "mode=ro&immutable=1"
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{mode}",
            uri=True,
            timeout=timeout_s,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            if damaged:
                connection.execute("PRAGMA writable_schema = ON")
            connection.execute("SELECT 1 FROM sqlite_schema").fetchone()  # opens the journal as well
        except sqlite3.Error as error:
            connection.close()
            if state is None and unused(path) is not None:
                continue  # the process that had it open has closed it meanwhile
            if state is None and not index_of(path).exists() and not os.access(path.parent, os.W_OK):
                raise InfrastructureError(
                    f"{path}: its journal has no index (-shm), and none can be made here: "
                    "read it as its owner, or copy the folder and read the copy"
                ) from error
            raise
        except BaseException:
            connection.close()
            raise
        return connection, state


def unused(path: Path) -> Unused | None:
    """The state of a file that no process has open, to be compared later; None if it may be open."""
    try:
        status = path.stat()
    except OSError:
        return None
    return None if journal_of(path).exists() else (status.st_ino, status.st_size, status.st_mtime_ns)


def journal_of(path: Path) -> Path:
    """Where SQLite keeps what is committed and not yet in the file itself."""
    return path.with_name(path.name + "-wal")


def index_of(path: Path) -> Path:
    """Where SQLite keeps its index of the journal, and the locks of readers."""
    return path.with_name(path.name + "-shm")
