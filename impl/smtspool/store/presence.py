"""Which service processes live, and what each reports about itself.

A service holds the kernel's lock on ``owners/<token>.lock`` for as long as it lives. The content of the file,
its *plate*, is the latest report of the service. It is written in place into space that was allocated with
the file, so it can be written on a full disk; and it is read without the database by all who may read the
file. A reader may meet a half-written plate, notices it by the checksum in the first line, and reads again.
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
# Space for the report of a service, which is cut to fit.
PLATE_BYTES = 32 * 1024
# How often a plate is read that is half-written each time.
LOOKS = 5
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Presence:
    """The lock file of this process. It needs no database, so it exists before one can be opened.

    This process holds its lock; forked children do not.
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
        # If set, a row of the database refers to the lock file, which then stays until a reaper removes it.
        self.registered = False
        with suppress(OSError):  # the disk is full already; show() raises then
            os.posix_fallocate(self._descriptor, 0, PLATE_BYTES)

    def show(self, members: Mapping[str, object]) -> None:
        """Write ``members`` as the report of this service; OSError if the disk has no space for it."""
        text = json.dumps(members, ensure_ascii=False).encode("utf-8", "backslashreplace")
        plate = b"%08x %08x\n%s" % (zlib.crc32(text), len(text), text)
        if len(plate) > PLATE_BYTES:
            raise MisuseError(f"a plate has room for {PLATE_BYTES} bytes, not for {len(plate)}")
        assert self._descriptor is not None
        os.pwrite(self._descriptor, plate, 0)

    def close(self) -> None:
        """Release the lock and remove the file; idempotent. A forked child only closes its descriptor."""
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
    """A lock file. ``alive`` is None if the file cannot be opened; its service may live or be dead."""

    token: str
    alive: bool | None
    plate: Mapping[str, Any] | None  # the latest report; None if there is none that can be read


def present(directory: Path) -> list[Seen]:
    """The services of the store in ``directory``, also dead ones that are not yet reaped. Changes nothing."""
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
    """Whether an owner holds the lock, tested with a shared lock, which several readers can take.

    A starting owner that meets this lock takes another file.
    """
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
    """A fresh token, its lock file, and the descriptor that holds the lock."""
    while True:
        token = secrets.token_hex(16)
        path = folder / f"{token}.lock"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            if try_lock(descriptor, path):
                return token, path, descriptor
        except FileNotFoundError as error:  # as after a change of the setting `store`
            raise MisuseError(f"{folder} does not exist: create the store with `smtspool init`") from error
        except OSError as error:
            raise refused("cannot register as an owner", path, error) from error
        # Another process locked the file first: a reaper, which takes it for that of a dead owner and removes
        # it, or a reader that tests it. If the file stays, a later sweep removes it.


def try_lock(descriptor: int, path: Path) -> bool:
    """Lock the file without waiting. If that fails, or the file is not at the path, close it: False."""
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
    """The name of this machine."""
    return socket.gethostname()


def boot_id() -> str:
    """The id of the running kernel, which changes with every boot."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError as error:
        raise InfrastructureError(f"cannot tell which boot this is: {_BOOT_ID}: {error.strerror}") from error
