"""A file of queries as it was submitted."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from smtspool.query.compression import UNPACKERS
from smtspool.query.value import Query

__all__ = ["QueryFile", "file_mark", "file_patterns", "spelled", "split_suffix"]

_LATEST = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class QueryFile:
    """One file of the spool, decoded whole.

    ``mark`` identifies the file. If the file is read again, after a crash between the commit of its queries
    and its move, the mark is the same; another file has another mark, even with equal name and content.
    """

    name: str
    mark: bytes
    size: int  # bytes
    since: float  # when it began to wait, in seconds since the epoch
    queries: tuple[Query, ...]


def file_mark(name: str, inode: int, mtime_ns: int) -> bytes:
    """16 bytes for :attr:`QueryFile.mark`, ordered by the time of the file.

    The device is no part of it, because its number may be another one after a reboot; nor is ``ctime``, which
    changes with the owner and the mode.
    """
    identity = sha256(f"{inode}/{name}".encode("utf-8", "surrogateescape")).digest()[:8]
    return min(max(mtime_ns, 0), _LATEST).to_bytes(8, "big") + identity


def file_patterns(name: str) -> tuple[str, str]:
    """Shell patterns of the names that a file can have in a spool: its own, and, if that was taken when it
    was submitted, one with a suffix of eight hexadecimal digits. ``name`` may be a pattern itself."""
    stem, suffix = split_suffix(name)
    return name, f"{stem}~{'[0-9a-f]' * 8}{suffix}"


def spelled(name: str) -> str:
    """The name of a file as text that a log and a database take: bytes that are no UTF-8 are escapes."""
    return name.encode("utf-8", "backslashreplace").decode()


def split_suffix(name: str) -> tuple[str, str]:
    """``name`` up to its suffix, and the suffix, which decides how the file is read, such as ``.smt2.gz``."""
    stem, dot, suffix = name.rpartition(".")
    if not stem:
        return name, ""
    inner, inner_dot, kind = stem.rpartition(".")
    if inner and dot + suffix in UNPACKERS:
        return inner, f"{inner_dot}{kind}{dot}{suffix}"
    return stem, dot + suffix
