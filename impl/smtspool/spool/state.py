"""Has a directory changed? Its ``mtime`` moves with every name that is added, renamed or removed."""

from __future__ import annotations

import os
from typing import NamedTuple

from smtspool.files import Directory

__all__ = ["DirectoryState"]

_COARSEST_CLOCK_S = 2.0  # of the file systems in use; FAT


class DirectoryState(NamedTuple):
    """Equal states, the first of them at rest: no name in the directory has changed in between."""

    dev: int
    ino: int
    mtime_ns: int

    @classmethod
    def of(cls, directory: Directory) -> DirectoryState:
        status = os.fstat(directory.fd)
        return cls(status.st_dev, status.st_ino, status.st_mtime_ns)

    def is_at_rest(self, now: float) -> bool:
        """True if a change from now on must give another ``mtime``."""
        return now - self.mtime_ns / 1e9 > _COARSEST_CLOCK_S
