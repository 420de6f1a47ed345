"""Who holds leases, and who is dead.

A service process registers as an owner and holds the kernel's lock on ``owners/<token>.lock`` for as
long as it lives. Whoever can take that lock knows that the owner is dead, whatever became of its pid,
and puts its leases back at once. Only processes under the same running kernel may draw that conclusion,
and only those that may open the file; for others the lease expires. A reaper that dies leaves nothing behind:
its locks go with it.

The file is there before the row and is removed after it, by whoever holds its lock and sees no row: whenever
anybody dies or is refused in between, a row without its file never remains, and a file without its row means
nothing and is swept away.

Order of locks: the lock file of an owner, then the database.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import TracebackType

from smtspool.errors import InfrastructureError

from .database import Database
from .queue import Patience, release_owner

__all__ = ["OWNERS_NAME", "Owner", "reap"]

log = logging.getLogger("smtspool")

OWNERS_NAME = "owners"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Owner:
    """A registered, living owner; ``name`` is what ``claim`` wants. Close it to give up its leases.

    The lock is held by this process and by children it forks without exec, so fork none that outlive it.
    """

    def __init__(self, db: Database, patience: Patience) -> None:
        self._db = db
        self._patience = patience
        host, boot, pid = _host(), _boot(), os.getpid()
        self._descriptor: int | None
        token, self._path, self._descriptor = _fresh_lock(db.directory / OWNERS_NAME)
        self.name = f"{host}:{boot}:{pid}:{token}"
        try:
            with db.write() as now:
                db.connection.execute(
                    "INSERT INTO owners (name, host, boot, pid, token, registered) VALUES (?, ?, ?, ?, ?, ?)",
                    (self.name, host, boot, pid, token, now),
                )
        except BaseException:
            self._let_go()  # a commit that was refused may have happened: the file stays for a reaper
            raise

    def close(self) -> None:
        """Put back what is still leased and unregister; idempotent, and nothing of it in a forked child."""
        if self._descriptor is None:
            return
        if os.getpid() != self._db.process:
            self._let_go()  # the file and the lock are the parent's, who lives
            return
        try:
            with self._db.write() as now:
                release_owner(self._db, now, self.name, self._patience)
                _unregister(self._db, self.name)
            self._path.unlink(missing_ok=True)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """Give the lock back with its descriptor, but for one that a forked parent has too."""
        assert self._descriptor is not None
        descriptor, self._descriptor = self._descriptor, None
        os.close(descriptor)

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
    this_host, this_boot = _host(), _boot()
    for name, host, boot, token in known:
        path = db.directory / OWNERS_NAME / f"{token}.lock"
        if boot != this_boot:
            # The same host after a reboot: nothing of before is alive. Another host: we cannot know.
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
                # Who registered since and died has a row: the next reaper's business.
                if dead and not _registered(db, path.stem):
                    path.unlink(missing_ok=True)


def _registered(db: Database, token: str) -> bool:
    with db.read() as connection:
        return connection.execute("SELECT 1 FROM owners WHERE token = ?", (token,)).fetchone() is not None


def _bury(db: Database, name: str, patience: Patience) -> int:
    """Put back the leases of a dead owner; returns how many."""
    with db.write() as now:
        if not _unregister(db, name):
            return 0  # it ended in order meanwhile, or another reaper was faster
        db.bump("owners.reaped")
        return release_owner(db, now, name, patience)


def _unregister(db: Database, name: str) -> bool:
    return bool(db.connection.execute("DELETE FROM owners WHERE name = ?", (name,)).rowcount)


def _fresh_lock(folder: Path) -> tuple[str, Path, int]:
    """A token that nobody had, its lock file, and the descriptor that holds the lock."""
    while True:
        token = secrets.token_hex(16)
        path = folder / f"{token}.lock"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            if _try_lock(descriptor, path):
                return token, path, descriptor
        except OSError as error:
            raise InfrastructureError(f"cannot register as an owner: {path}: {error.strerror}") from error
        # A reaper saw the file before it was locked, takes it for a dead owner's and removes it.


@contextmanager
def _lock_of_dead(path: Path) -> Iterator[bool]:
    """Hold the lock of an owner that lives no more; False if it lives, may live, or the file is gone."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        dead = _try_lock(descriptor, path)
    except FileNotFoundError:
        dead = False
    except PermissionError:
        # A service of another user, living or dead. The others are looked at all the same.
        dead = False
        _say_unknown(path)
    except OSError as error:
        raise InfrastructureError(f"cannot see whether an owner lives: {path}: {error.strerror}") from error
    try:
        yield dead
    finally:
        if dead:
            os.close(descriptor)


@cache
def _say_unknown(path: Path) -> None:
    """Once for each file: reapers come by every second."""
    log.warning(
        "cannot see whether an owner lives: %s belongs to another user; its leases stay until they expire; "
        "remove %s if that service is gone",
        path,
        path,
    )


def _try_lock(descriptor: int, path: Path) -> bool:
    """Lock the file without waiting. False, and closed, if another has the lock or it is not at the path."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        locked = _same_file(descriptor, path)
    except BlockingIOError:
        locked = False
    except BaseException:
        os.close(descriptor)
        raise
    if not locked:
        os.close(descriptor)
    return locked


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
