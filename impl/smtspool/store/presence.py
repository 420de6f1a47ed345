"""Which service processes live, and what each says of itself.

A service holds the kernel's lock on ``owners/<token>.lock`` for as long as it lives. The file is its *plate*:
there stands what the service last said of itself, written in place into room that was taken when the file was
made. So it can be written on a full disk, and read without the database by all who may read the file. A look
may meet a half-written plate; the checksum in its first line tells, and another look follows.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smtspool import forks
from smtspool.errors import InfrastructureError, MisuseError

from .rights import refused

__all__ = ["OWNERS_NAME", "Presence", "Seen", "boot_id", "host_name", "present", "try_lock"]

OWNERS_NAME = "owners"
# Room for what a service says; the service cuts it to fit.
PLATE_BYTES = 32 * 1024
# Looks at a plate that is being written each time.
LOOKS = 5
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Presence:
    """The lock file of this process. It needs no database, so it is there before one can be opened.

    The lock is held by this process and by no child that it forks.
    """

    def __init__(self, directory: Path) -> None:
        """Make and lock a new file below the store in ``directory``.

        Raises MisuseError if there is no store, InfrastructureError if the machine fails.
        """
        self._process = os.getpid()
        self._descriptor: int | None
        with forks.held_off():
            self.token, self._path, self._descriptor = _fresh_lock(directory / OWNERS_NAME)
            forks.keep(self._descriptor)
        # Set: a row of the database speaks of the lock file. It stays until a reaper has seen it free.
        self.registered = False
        with suppress(OSError):  # a disk that is full already: show() says so
            os.posix_fallocate(self._descriptor, 0, PLATE_BYTES)

    def show(self, members: Mapping[str, object]) -> None:
        """Have others read ``members`` from now on; OSError if there is no room for a plate."""
        text = json.dumps(members, ensure_ascii=False).encode("utf-8", "backslashreplace")
        plate = b"%08x %08x\n%s" % (zlib.crc32(text), len(text), text)
        if len(plate) > PLATE_BYTES:
            raise MisuseError(f"a plate has room for {PLATE_BYTES} bytes, not for {len(plate)}")
        assert self._descriptor is not None
        os.pwrite(self._descriptor, plate, 0)

    def close(self) -> None:
        """Be gone; idempotent, and nothing but a closed descriptor in a forked child."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        try:
            if os.getpid() == self._process and not self.registered:
                self._path.unlink(missing_ok=True)
        finally:
            forks.give_up(descriptor)
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Seen:
    """A lock file: of a service that lives, or died, or may be either (None) because it cannot be opened."""

    token: str
    alive: bool | None
    plate: Mapping[str, Any] | None  # what it said last; None if it has said nothing that can be read


def present(directory: Path) -> list[Seen]:
    """The services of the store in ``directory``, also dead ones that are not yet buried. Changes nothing."""
    found = [_look(path) for path in sorted((directory / OWNERS_NAME).glob("*.lock"))]
    return [one for one in found if one is not None]


def _look(path: Path) -> Seen | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        return Seen(path.stem, None, None)
    try:
        return Seen(path.stem, _is_locked(descriptor), _read_plate(descriptor))
    except OSError:
        return Seen(path.stem, None, None)
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    """By a shared lock, which other looks do not meet. A starting owner that meets it takes another file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _read_plate(descriptor: int) -> Mapping[str, Any] | None:
    for _ in range(LOOKS):
        head, _, rest = os.pread(descriptor, PLATE_BYTES, 0).partition(b"\n")
        with suppress(ValueError, RecursionError):
            checksum, length = (int(number, 16) for number in head.split())
            text = rest[:length]
            if zlib.crc32(text) == checksum and len(text) == length:
                members = json.loads(text)
                return members if isinstance(members, dict) else None
    return None


def _fresh_lock(folder: Path) -> tuple[str, Path, int]:
    """A token that nobody had, its lock file, and the descriptor that holds the lock."""
    while True:
        token = secrets.token_hex(16)
        path = folder / f"{token}.lock"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            if try_lock(descriptor, path):
                return token, path, descriptor
        except FileNotFoundError as error:  # as after a changed setting `store`: waiting mends nothing
            raise MisuseError(f"{folder} does not exist: create the store with `smtspool init`") from error
        except OSError as error:
            raise refused("cannot register as an owner", path, error) from error
        # Another process locked the file first: a reaper, which takes it for a dead owner's and removes it,
        # or a look at who lives. A sweep removes what is left.


def try_lock(descriptor: int, path: Path) -> bool:
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


def host_name() -> str:
    """Which machine this is, as far as its name tells."""
    return socket.gethostname()


def boot_id() -> str:
    """Which run of this machine's kernel this is."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError as error:
        raise InfrastructureError(f"cannot tell which boot this is: {_BOOT_ID}: {error.strerror}") from error
