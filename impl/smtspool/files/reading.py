"""Reading one stable file (F364 §3): a file that changes or is replaced while it is read counts as not read.

``open`` without following links and without blocking, ``fstat``, a bounded read, then the *identity closure*:
descriptor and path must both still have the identity that was taken before the first byte. This proves a
stable read unless a writer can forge ``ctime``; it is no snapshot of a file system.

The two halves are the model's actions ``Open`` (:func:`open_entry`) and ``Verify`` (:meth:`Entry.read`).
"""

from __future__ import annotations

import errno
import os
import stat
from types import TracebackType
from typing import NamedTuple, Self

from smtspool.errors import AdmissionError, Reason
from smtspool.files.directory import Directory

__all__ = ["Entry", "Identity", "Unstable", "open_entry", "read_stable"]

_PIECE = 1 << 20
_LINK = (Reason.SYMLINK, "a symbolic link; submit the file itself")
_NOT_REGULAR = (Reason.NOT_REGULAR, "not a regular file; only regular files are read")
# Errors of opening that are about the entry itself. Every other error is about the machine.
_REFUSED = {
    errno.ELOOP: _LINK,
    errno.EMLINK: _LINK,  # the BSDs
    errno.ENXIO: _NOT_REGULAR,  # a socket
    errno.ENODEV: _NOT_REGULAR,  # a device without a driver
    errno.EACCES: (Reason.UNREADABLE, "not readable by this service; grant it and submit the file again"),
}


class Unstable(Exception):
    """The file changed while it was read, so nothing is known about its content. Read it again later."""


class Identity(NamedTuple):
    """The six numbers that must not change while a file is read (F364 §3.2)."""

    dev: int
    ino: int
    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, s: os.stat_result) -> Identity:
        return cls(s.st_dev, s.st_ino, s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns)

    def moved_from(self, before: Identity) -> bool:
        """True if this is the same unchanged file under another name: a rename touches only ``ctime``."""
        return self[:5] == before[:5]


class Entry:
    """A directory entry between ``Open`` and ``Verify``. Close it, or use it as a context manager."""

    __slots__ = ("_directory", "_fd", "_refusal", "identity", "name")

    def __init__(
        self, directory: Directory, name: str, fd: int, identity: Identity, refusal: tuple[Reason, str] | None
    ) -> None:
        self._directory = directory
        self._fd = fd  # -1 when the entry could not be opened
        self._refusal = refusal
        self.name = name
        self.identity = identity

    def read(self, max_bytes: int) -> bytes:
        """The whole content, from one stable regular file of at most ``max_bytes``.

        :raises Unstable: the closure failed; this comes before every judgement of the content
        :raises AdmissionError: stable, but a link, not regular, unreadable, or too large
        :raises OSError: the machine failed
        """
        refusal = self._refusal
        data = b""
        if refusal is None and self.identity.size > max_bytes:
            refusal = (Reason.TOO_LARGE, f"{self.identity.size} bytes; at most {max_bytes} are read")
        if refusal is None:
            data = _read_bounded(self._fd, self.identity.size, max_bytes)
        self._close_identity()
        if refusal is not None:
            raise AdmissionError(*refusal)
        if len(data) != self.identity.size:
            raise Unstable(f"{self.name!r} gave {len(data)} of its {self.identity.size} bytes")
        return data

    def _close_identity(self) -> None:
        if self._fd >= 0 and Identity.of(os.fstat(self._fd)) != self.identity:
            raise Unstable(f"{self.name!r} changed while it was read")
        try:
            now = Identity.of(self._directory.stat(self.name))
        except FileNotFoundError:
            raise Unstable(f"{self.name!r} was removed while it was read") from None
        if now != self.identity:
            raise Unstable(f"{self.name!r} was replaced while it was read")

    def close(self) -> None:
        """Close the descriptor; repeating it is harmless."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_entry(directory: Directory, name: str) -> Entry:
    """Open ``name`` and take its identity, whatever it is; judging it is left to :meth:`Entry.read`.

    :raises FileNotFoundError: nothing has that name (any more)
    :raises Unstable: a lease on the file is held (``fcntl(2)``, ``F_SETLEASE``): its writer is not done
    :raises OSError: the machine failed
    """
    try:
        fd = directory.open_file(name, os.O_RDONLY)
    except OSError as error:
        if error.errno in _REFUSED:
            return _open_refused(directory, name)
        if isinstance(error, BlockingIOError):
            raise Unstable(f"{name!r} is leased by another process") from None
        raise
    return _gate(directory, name, fd)


def _gate(directory: Directory, name: str, fd: int) -> Entry:
    try:
        identity = Identity.of(os.fstat(fd))
    except BaseException:
        os.close(fd)
        raise
    return Entry(directory, name, fd, identity, None if stat.S_ISREG(identity.mode) else _NOT_REGULAR)


def _open_refused(directory: Directory, name: str) -> Entry:
    # The first refusal may have been about another entry that had the name before. So the identity is taken
    # and the entry opened again: the closure then shows that this refusal is about the entry of this
    # identity.
    identity = Identity.of(directory.stat(name))
    try:
        fd = directory.open_file(name, os.O_RDONLY)
    except OSError as error:
        refusal = _REFUSED.get(error.errno or 0)
        if refusal is None:
            raise
        return Entry(directory, name, -1, identity, refusal)
    return _gate(directory, name, fd)


def _read_bounded(fd: int, size: int, max_bytes: int) -> bytes:
    # One byte more than expected tells a file of this size from one that has grown. EINTR: PEP 475.
    pieces = []
    left = min(size, max_bytes) + 1
    while left:
        piece = os.read(fd, min(_PIECE, left))
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def read_stable(directory: Directory, name: str, max_bytes: int) -> tuple[bytes, Identity]:
    """``Open`` and ``Verify`` in one: content and identity of a stable regular file; raises as they do."""
    with open_entry(directory, name) as entry:
        return entry.read(max_bytes), entry.identity
