"""The file layer of the litmus: each method is one system call, or the few that make one step.

The protocol uses files only through an object of this class, so that a test can replace it. All names are
relative to an open directory, nothing is opened through a link, and a platform without such opens is refused
(F351).
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

from smtspool.files import Directory

__all__ = ["LOCK_PREFIX", "LockFiles", "Node"]

LOCK_PREFIX = ".smtspool-lock-"
CONTENT_LIMIT = 4096
# No attempt takes longer than twice the longest timeout, which is an hour.
ABANDONED_SECONDS = 4 * 3600.0
_BLOCKED = (errno.EACCES, errno.EAGAIN)

# The identity of a file on one host: (st_dev, st_ino). It is never compared between hosts.
Node = tuple[int, int]


class LockFiles:
    """Files and locks of one rank; without state. Methods raise ``OSError`` where the machine refuses."""

    def open_root(self, path: Path) -> Directory:
        """The shared directory itself, held by descriptor."""
        return Directory.open(path)

    def file_system(self, directory: Directory) -> tuple[int, int]:
        """``st_dev`` and ``f_fsid`` of the file system of ``directory``."""
        return os.fstat(directory.fd).st_dev, os.fstatvfs(directory.fd).f_fsid

    def create(self, root: Directory, name: str, content: bytes) -> None:
        """Make the lock file; ``FileExistsError`` if anything has that name.

        It is closed, not synced: it need not survive a crash, and after a close network file systems show the
        content to other hosts that open the file.
        """
        fd = root.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if os.write(fd, content) != len(content):
                raise OSError(errno.ENOSPC, "the lock file was written in part", name)
        finally:
            os.close(fd)

    def remove(self, root: Directory, name: str) -> None:
        """Unlink the lock file, if it still exists, and old ones that killed attempts left."""
        with suppress(FileNotFoundError):
            now = root.stat(name).st_mtime  # by the clock of the file system, like the others
            root.unlink(name)
            for other in root.names():
                if other.startswith(LOCK_PREFIX):
                    # It may be removed meanwhile, or belong to another user.
                    with suppress(FileNotFoundError, PermissionError):
                        if root.stat(other).st_mtime < now - ABANDONED_SECONDS:
                            root.unlink(other)

    def open(self, root: Directory, name: str) -> int:
        """A fresh descriptor of the lock file, with locks of its own."""
        fd = root.open_file(name, os.O_RDWR)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "the lock file is not a regular file", name)
        return fd

    def content(self, fd: int) -> bytes:
        """The content of the file, up to one byte more than a lock file may have."""
        return os.pread(fd, CONTENT_LIMIT + 1, 0)

    def node(self, fd: int) -> Node:
        """The identity of the file that a descriptor leads to."""
        seen = os.fstat(fd)
        return seen.st_dev, seen.st_ino

    def try_lock(self, fd: int, *, shared: bool = False) -> bool:
        """Take the lock without waiting; False if another holder has it."""
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _BLOCKED:
                return False
            raise
        return True

    def release(self, fd: int) -> None:
        """Release the lock and close the descriptor, even if the first raises."""
        try:
            # Closing would not release it while a child that was forked meanwhile has the descriptor.
            fcntl.flock(fd, fcntl.LOCK_UN)
        finally:
            os.close(fd)
