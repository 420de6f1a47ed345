"""Tells whether a directory has changed, by its ``mtime``, which every added or removed name changes."""

from __future__ import annotations

import os
from typing import NamedTuple

from smtspool.files import Directory

__all__ = ["DirectoryState"]

_COARSEST_CLOCK_S = 2.0  # of the file systems in use; FAT


class DirectoryState(NamedTuple):
    """If two states are equal and the first is at rest, no name in the directory has changed in between."""

    dev: int
    ino: int
    mtime_ns: int

    @classmethod
    def of(cls, directory: Directory) -> DirectoryState:
        status = os.fstat(directory.fd)
        return cls(status.st_dev, status.st_ino, status.st_mtime_ns)

    def is_at_rest(self, now: float) -> bool:
        """True if any change from ``now`` on gives another ``mtime``."""
        return now - self.mtime_ns / 1e9 > _COARSEST_CLOCK_S
