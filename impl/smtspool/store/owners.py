"""Who holds leases, and who is dead.

A service process registers as an owner and holds the kernel's lock on ``owners/<token>.lock`` for as
long as it lives. Whoever can take that lock knows that the owner is dead, whatever became of its pid,
and puts its leases back at once. Only processes under the same running kernel may draw that conclusion;
for others the lease expires. A reaper that dies leaves nothing behind: its locks go with it.

Order of locks: the lock file of an owner, then the database.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from smtspool.errors import InfrastructureError

from .database import Database
from .queue import Patience, release_owner

__all__ = ["OWNERS_NAME", "Owner", "reap"]

OWNERS_NAME = "owners"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Owner:
    """A registered, living owner; ``name`` is what ``claim`` wants. Close it to give up its leases.

    The lock is held by this process and by children it forks without exec, so fork none that outlive it.
    """

    def __init__(self, db: Database, patience: Patience) -> None:
        self._db = db
        self._patience = patience
        token = secrets.token_hex(16)
        host, boot, pid = _host(), _boot(), os.getpid()
        self.name = f"{host}:{boot}:{pid}:{token}"
        self._path = db.directory / OWNERS_NAME / f"{token}.lock"
        self._descriptor: int | None = _locked(self._path)
        try:
            with db.write() as now:
                db.connection.execute(
                    "INSERT INTO owners (name, host, boot, pid, token, registered) VALUES (?, ?, ?, ?, ?, ?)",
                    (self.name, host, boot, pid, token, now),
                )
        except BaseException:
            self._unlock()
            raise

    def close(self) -> None:
        """Put back what is still leased and unregister; idempotent."""
        if self._descriptor is None:
            return
        try:
            with self._db.write() as now:
                _bury(self._db, now, self.name, self._patience)
        finally:
            self._unlock()

    def _unlock(self) -> None:
        assert self._descriptor is not None
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = None

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
    for name, host, boot, token in known:
        path = db.directory / OWNERS_NAME / f"{token}.lock"
        if boot != _boot():
            # The same host after a reboot: nothing of before is alive. Another host: we cannot know.
            if host == _host():
                released += _bury_committed(db, name, patience)
                path.unlink(missing_ok=True)
            continue
        descriptor = _lock_of_dead(path)
        if descriptor is not None or not path.exists():
            released += _bury_committed(db, name, patience)
        if descriptor is not None:
            path.unlink(missing_ok=True)
            os.close(descriptor)
    _sweep(db.directory / OWNERS_NAME, {token for *_, token in known})
    return released


def _sweep(folder: Path, registered: set[str]) -> None:
    """Remove lock files of processes that died between creating theirs and registering."""
    for path in folder.glob("*.lock"):
        if path.stem not in registered:
            descriptor = _lock_of_dead(path)
            if descriptor is not None:
                path.unlink(missing_ok=True)
                os.close(descriptor)


def _bury_committed(db: Database, name: str, patience: Patience) -> int:
    with db.write() as now:
        db.bump("owners.reaped")
        return _bury(db, now, name, patience)


def _bury(db: Database, now: float, name: str, patience: Patience) -> int:
    released = release_owner(db, now, name, patience)
    db.connection.execute("DELETE FROM owners WHERE name = ?", (name,))
    return released


def _locked(path: Path) -> int:
    """Create the file and lock it; the file at the path is the one that is locked."""
    try:
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _same_file(descriptor, path):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            # A reaper saw the file before it was locked, took it for a dead owner's and removed it.
            os.close(descriptor)
    except OSError as error:
        raise InfrastructureError(f"cannot register as an owner: {path}: {error.strerror}") from error


def _lock_of_dead(path: Path) -> int | None:
    """Take the lock of an owner that lives no more; None if it lives, or if the file is gone."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InfrastructureError(f"cannot see whether an owner lives: {path}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        dead = _same_file(descriptor, path)
    except BlockingIOError:
        dead = False
    except BaseException:
        os.close(descriptor)
        raise
    if dead:
        return descriptor
    os.close(descriptor)
    return None


def _same_file(descriptor: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


def _host() -> str:
    return socket.gethostname()


def _boot() -> str:
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError as error:
        raise InfrastructureError(f"cannot tell which boot this is: {_BOOT_ID}: {error.strerror}") from error
