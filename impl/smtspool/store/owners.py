"""Owners of leases, and the release of leases whose owner is dead.

A service process registers as an owner and holds the kernel's lock on ``owners/<token>.lock`` for as
long as it lives. A process that can take that lock knows that the owner is dead, even if its pid was reused,
and releases its leases at once. That conclusion is valid only under the same running kernel, and only for a
process that may open the file; otherwise the leases expire. A reaper that dies needs no clean-up, since the
kernel releases its locks.

A lock file is made before its row. It is removed after its row, by a process that holds its lock and sees no
row. So a process that dies or is refused in between leaves no row without a file.

Order of locks: the lock file of an owner, then the database.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType

from smtspool.errors import InfrastructureError

from .database import Database
from .presence import OWNERS_NAME, Presence, boot_id, host_name, try_lock
from .queue import Patience, release_owner

__all__ = ["Owner", "bury_all", "reap"]

log = logging.getLogger("smtspool")


class Owner:
    """A registered owner; ``name`` is to be passed to ``claim``. Closing it gives up its leases.

    With ``presence`` it uses a lock file that this process has already, and does not close it.
    """

    def __init__(self, db: Database, patience: Patience, presence: Presence | None = None) -> None:
        self._db = db
        self._patience = patience
        self._closed = False
        host, boot, pid = host_name(), boot_id(), os.getpid()
        self._presence = presence or Presence(db.directory)
        self._own = presence is None
        self.name = f"{host}:{boot}:{pid}:{self._presence.token}"
        self._presence.registered = True  # now: a commit that raises may have happened
        try:
            with db.write() as now:
                db.connection.execute(
                    "INSERT OR REPLACE INTO owners (name, host, boot, pid, token, registered) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (self.name, host, boot, pid, self._presence.token, now),
                )
        except BaseException:
            if self._own:
                self._presence.close()
            raise

    def close(self) -> None:
        """Release what is still leased and unregister; idempotent. A forked child does neither.

        If the store fails, a reaper does it later.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if os.getpid() == self._db.process:  # a child leaves this to the parent, which lives
                with self._db.write() as now:
                    release_owner(self._db, now, self.name, self._patience)
                    _unregister(self._db, self.name)
                self._presence.registered = False
        finally:
            if self._own:
                self._presence.close()

    def __enter__(self) -> Owner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def reap(db: Database, patience: Patience) -> int:
    """Put back the leases of every owner that is proven dead; returns how many leases that were."""
    with db.read() as connection:
        known = connection.execute("SELECT name, host, boot, token FROM owners").fetchall()
    released = 0
    this_host, this_boot = host_name(), boot_id()
    for name, host, boot, token in known:
        path = db.directory / OWNERS_NAME / f"{token}.lock"
        if boot != this_boot:
            # After a reboot of the same host no earlier owner lives. Of another host nothing is known.
            if host == this_host:
                released += _bury(db, name, patience)
                path.unlink(missing_ok=True)
            continue
        with _lock_of_dead(path) as dead:
            if dead or not path.exists():
                released += _bury(db, name, patience)
            if dead:
                path.unlink(missing_ok=True)
    _sweep(db, {token for *_, token in known})
    return released


def _sweep(db: Database, known: set[str]) -> None:
    """Remove lock files of processes that died, or were refused, before they registered or after."""
    for path in (db.directory / OWNERS_NAME).glob("*.lock"):
        if path.stem not in known:
            with _lock_of_dead(path) as dead:
                # A process that has registered since and died has a row, which the next reaper handles.
                if dead and not _registered(db, path.stem):
                    path.unlink(missing_ok=True)


def _registered(db: Database, token: str) -> bool:
    with db.read() as connection:
        return connection.execute("SELECT 1 FROM owners WHERE token = ?", (token,)).fetchone() is not None


def _bury(db: Database, name: str, patience: Patience) -> int:
    """Put back the leases of a dead owner; returns how many."""
    with db.write() as now:
        if not _unregister(db, name):
            return 0  # the owner ended in order meanwhile, or another reaper has done this
        db.bump("owners.reaped")
        return release_owner(db, now, name, patience)


def bury_all(db: Database) -> None:
    """Release every lease in a copy of a store, where no owner lives; this ends no query as an error."""
    with db.read() as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM owners")]
    for name in names:
        _bury(db, name, Patience(attempts=sys.maxsize, deaths=sys.maxsize))


def _unregister(db: Database, name: str) -> bool:
    return bool(db.connection.execute("DELETE FROM owners WHERE name = ?", (name,)).rowcount)


@contextmanager
def _lock_of_dead(path: Path) -> Iterator[bool]:
    """Hold the lock of a dead owner. Yields False if it lives or may live, or if the file is gone."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        dead = try_lock(descriptor, path)
    except (FileNotFoundError, IsADirectoryError):
        dead = False
    except PermissionError:
        # A service of another user, which may live or be dead; go on with the other owners.
        dead = False
        _say_unknown(path)
    except OSError as error:
        if error.errno != errno.ELOOP:  # a link, like a folder, is no lock file of an owner
            raise InfrastructureError(
                f"cannot see whether an owner lives: {path}: {error.strerror}"
            ) from error
        dead = False
    try:
        yield dead
    finally:
        if dead:
            os.close(descriptor)


@cache
def _say_unknown(path: Path) -> None:
    """Warn once for each file, since reaping happens every second."""
    log.warning(
        "cannot see whether an owner lives: %s belongs to another user; its leases stay until they expire; "
        "remove %s if that service is gone",
        path,
        path,
    )
