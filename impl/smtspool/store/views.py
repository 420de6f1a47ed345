"""Connections that only read, with or without the right to write.

A reader of a database with a journal takes part in it: SQLite makes the journal and its index where they are
missing and marks in the index how far it reads. Where none of that is allowed, or wanted:

* a process has the store open, or died with it open: journal and index are there, and SQLite reads what it
  may not write, with an index of its own in memory if no process keeps the one on disk;
* no process has it open: there is no journal, and the file is everything. Opened as *immutable* it stays
  without one, but then SQLite takes no locks either, and only the file can tell whether all that was read was
  one state;
* a journal without its index, as in a copy that forgot a file, in a folder that may not be written: there is
  no way to read that where it lies, and an error says so.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from smtspool.errors import InfrastructureError

__all__ = ["Unused", "connect_view", "index_of", "journal_of", "unused"]

# What changes in a file that nobody has open when it is used again: inode, size, time.
Unused = tuple[int, int, int]


def connect_view(
    path: Path, timeout_s: float = 5.0, *, damaged: bool = False
) -> tuple[sqlite3.Connection, Unused | None]:
    """A connection that writes nothing, and what :func:`unused` said of the file if it is immutable to it.

    Where the schema may be ``damaged``, a line of it that cannot be read costs that one table.
    Raises InfrastructureError for a journal that cannot be read here; SQLite's errors are left as they are.
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
                continue  # the process that had it open has closed it in between
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
    """What changes when a store that nobody has open is used; None if it may be open, or is not there."""
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
