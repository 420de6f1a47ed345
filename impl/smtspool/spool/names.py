"""The names that a spool reads, and those that it makes. Lengths are in bytes, as the file system counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from smtspool.query import split_suffix

__all__ = ["ERROR", "free_names", "is_published", "may_submit", "quarantine_names"]

ERROR = ".error"
_TRIES = 8  # random tokens; a ninth collision means that something else is wrong
_LONGEST_SUFFIX = 16


def is_published(name: str) -> bool:
    """False for the temporary names of producers: ``.anything`` (rsync, editors, smtspool) and ``*.tmp``."""
    return not (name.startswith(".") or name.endswith(".tmp"))


def may_submit(name: str, limit: int) -> bool:
    """True if ``name`` can be an entry of ``incoming/`` and scans will read it."""
    plain = bool(name) and "/" not in name and "\0" not in name
    return plain and is_published(name) and len(os.fsencode(name)) <= limit


def free_names(name: str, limit: Callable[[], int]) -> Iterator[str]:
    """``name`` itself, then, in case it is taken, ``stem~token.suffix``, cut to ``limit()`` bytes."""
    yield name
    stem, suffix = split_suffix(name)
    if len(suffix) > _LONGEST_SUFFIX:
        stem, suffix = name, ""
    for _ in range(_TRIES):
        tail = os.fsencode(f"~{os.urandom(4).hex()}{suffix}")
        yield os.fsdecode(os.fsencode(stem)[: limit() - len(tail)] + tail)


def quarantine_names(name: str, limit: Callable[[], int]) -> Iterator[str]:
    """As :func:`free_names`, with room for :data:`ERROR` behind, and never ending in it.

    So every ``*.error`` in ``rejected/`` is a sidecar, whatever names producers use.
    """
    room = limit() - len(ERROR)
    if name.endswith(ERROR):
        name += "~"
    names = free_names(name, lambda: room)
    if len(os.fsencode(name)) > room:
        next(names)
    return names
