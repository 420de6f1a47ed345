"""Many small files in one compressed archive, and back.

An archive is durable under its name before the first of its files is removed. After a kill in between some
files are in both places; the next archive has them again, which readers accept.
"""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from smtspool.errors import AdmissionError
from smtspool.files import Directory, Unstable, read_stable, temporary_name
from smtspool.query import Limits

__all__ = ["ARCHIVE", "archived", "pack"]

ARCHIVE = "archive"  # folder of the spool
_SUFFIX = ".tar.xz"
# Limits of one archive, because reading a file of it means unpacking all files before that one.
MOST_FILES = 10_000
MOST_BYTES = 256 << 20
_PRESET: Final = 3  # of xz: higher presets take three times as long and save a twentieth


def pack(folder: Directory, names: Sequence[str], archives: Directory, label: str) -> Iterator[list[str]]:
    """Pack the files into as many archives as needed; yields the names in each as soon as it is durable.

    A file that changes, cannot be read, or is no file is left out.
    """
    rest = list(reversed(names))
    while rest:
        temporary = temporary_name()
        packed: list[str] = []
        try:
            descriptor = archives.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with os.fdopen(descriptor, "wb") as file:
                size = 0
                with tarfile.open(fileobj=file, mode="w:xz", preset=_PRESET) as archive:
                    while rest and len(packed) < MOST_FILES and size < MOST_BYTES:
                        name = rest.pop()
                        with suppress(Unstable, AdmissionError, FileNotFoundError):
                            size += _add(archive, folder, name)
                            packed.append(name)
                file.flush()
                os.fsync(file.fileno())
            if packed:
                stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
                archives.rename(temporary, archives, f"{label}-{stamp}-{os.urandom(4).hex()}{_SUFFIX}")
                archives.sync()
        finally:
            with suppress(FileNotFoundError):
                archives.unlink(temporary)
        if packed:
            yield packed


def _add(archive: tarfile.TarFile, folder: Directory, name: str) -> int:
    data, identity = read_stable(folder, name, Limits().file)
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mtime = identity.mtime_ns // 10**9
    archive.addfile(entry, io.BytesIO(data))
    return len(data)


def archived(archives: Directory, label: str, unread: list[str]) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file in the archives with this label, the oldest archive first.

    A damaged archive gives the files before the damage, and a message about it is added to ``unread``.
    """
    for archive_name in sorted(archives.names()):
        if not (archive_name.startswith(f"{label}-") and archive_name.endswith(_SUFFIX)):
            continue
        try:
            descriptor = archives.open_file(archive_name, os.O_RDONLY)
            with os.fdopen(descriptor, "rb") as file, tarfile.open(fileobj=file, mode="r|xz") as archive:
                for entry in archive:
                    content = archive.extractfile(entry) if entry.isreg() else None
                    if content is not None and entry.size <= Limits().file:
                        yield entry.name, content.read()
        except (tarfile.TarError, EOFError, OSError) as error:
            unread.append(f"{archives.path}/{archive_name}: {error}")
