"""Durable writes: a file is either absent, or whole and on disk, under its final name."""

from __future__ import annotations

import os
from contextlib import suppress

from smtspool.files.directory import Directory

__all__ = ["is_temporary", "temporary_name", "write_durable"]


def temporary_name() -> str:
    """A fresh name that no reader of a spool looks at: it starts with a dot and ends in ``.tmp``."""
    return f".{os.urandom(8).hex()}.tmp"


def is_temporary(name: str) -> bool:
    """Whether :func:`temporary_name` may have made it."""
    return name.startswith(".") and name.endswith(".tmp")


def write_durable(
    directory: Directory, name: str, data: bytes, *, replace: bool = True, sync: bool = True
) -> None:
    """Write ``data`` to a temporary file, sync it, and rename it to ``name``.

    ``replace=False`` raises ``FileExistsError`` where the name is taken. ``sync=False`` leaves the last part,
    ``directory.sync()``, to a caller who writes several. After an error no temporary file remains; after a
    crash one may.
    """
    temporary = temporary_name()
    fd = directory.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            _write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        if replace:
            directory.replace(temporary, directory, name)
        else:
            directory.rename(temporary, directory, name)
    except BaseException:
        with suppress(FileNotFoundError):  # interrupted between the rename and here
            directory.unlink(temporary)
        raise
    if sync:
        directory.sync()


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
