"""Durable writes: a file is either absent, or whole and on disk, under its final name.

:func:`write_durable` writes one file. To write many, make a :class:`Draft` of each; :func:`sync_drafts` makes
all of them durable together, and then each gets its name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from smtspool.files.directory import Directory

__all__ = ["Draft", "is_temporary", "sync_drafts", "temporary_name", "write_durable"]

_FEW = 8  # files synced one by one: the sync of a file system waits for other programs' files too


def temporary_name() -> str:
    """A fresh name that no reader of a spool looks at: it starts with a dot and ends in ``.tmp``."""
    return f".{os.urandom(8).hex()}.tmp"


def is_temporary(name: str) -> bool:
    """Whether :func:`temporary_name` may have made it."""
    return name.startswith(".") and name.endswith(".tmp")


@dataclass(frozen=True, slots=True)
class Draft:
    """A whole file under a temporary name, not durable yet."""

    directory: Directory
    temporary: str

    @classmethod
    def write(cls, directory: Directory, data: bytes) -> Draft:
        """After an error no file remains; after a crash one may."""
        draft = cls(directory, temporary_name())
        fd = directory.open_file(draft.temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            try:
                _write_all(fd, data)
            finally:
                os.close(fd)
        except BaseException:
            draft.discard()
            raise
        return draft

    def sync(self) -> None:
        """The content survives a power failure from here on."""
        fd = self.directory.open_file(self.temporary, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def publish(self, name: str, *, replace: bool = True) -> None:
        """Give it its name, durable after ``directory.sync()``. After an error it is still a draft.

        ``replace=False`` raises ``FileExistsError`` where the name is taken.
        """
        move = self.directory.replace if replace else self.directory.rename
        move(self.temporary, self.directory, name)

    def discard(self) -> None:
        """Remove it; harmless once it is published."""
        with suppress(FileNotFoundError):
            self.directory.unlink(self.temporary)


def sync_drafts(drafts: Sequence[Draft]) -> None:
    """Make the contents of all drafts durable. After an error none of them can be relied on."""
    directories = {os.fstat(draft.directory.fd).st_dev: draft.directory for draft in drafts}
    if len(drafts) > _FEW and all(directory.sync_file_system() for directory in directories.values()):
        return
    for draft in drafts:
        draft.sync()


def write_durable(
    directory: Directory, name: str, data: bytes, *, replace: bool = True, sync: bool = True
) -> None:
    """Write ``data`` to a temporary file, sync it, and rename it to ``name``.

    ``replace=False`` raises ``FileExistsError`` where the name is taken. ``sync=False`` leaves the last part,
    ``directory.sync()``, to a caller who writes several. After an error no temporary file remains; after a
    crash one may.
    """
    draft = Draft.write(directory, data)
    try:
        draft.sync()
        draft.publish(name, replace=replace)
    except BaseException:
        draft.discard()
        raise
    if sync:
        directory.sync()


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
