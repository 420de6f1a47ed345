"""A lock that the kernel releases when its holder dies: one consumer per spool (F364 §4), one publisher."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from types import TracebackType
from typing import Self

from smtspool import forks
from smtspool.errors import LockRefused, MisuseError
from smtspool.files.directory import Directory

__all__ = ["FileLock"]

_NO_LOCK_FILE = frozenset({errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR, errno.ENODEV})


class FileLock:
    """A kernel ``flock`` on a verified regular file.

    The file is made when it is missing (0600) and never removed: a removed lock file lets two holders lock
    two inodes. It is empty, since a process id in it would prove nothing. The lock belongs to this object:
    two objects in one process exclude each other, and a forked child does not have it. Leaving the ``with``
    block always releases it.
    """

    __slots__ = ("_directory", "_fd", "_name")

    def __init__(self, directory: Directory, name: str) -> None:
        self._directory = directory
        self._name = name
        self._fd = -1

    def try_acquire(self) -> bool:
        """Take the lock without waiting; False if another holder has it.

        :raises MisuseError: this object has it
        :raises LockRefused: the name is a link, a FIFO or anything else but one regular file, or it was
            replaced while it was locked; an operator must restore it
        :raises OSError: the machine failed, or its file system has no locks
        """
        if self._fd >= 0:  # a second descriptor would replace the first, which nobody could close
            raise MisuseError(f"the lock {self._name} is held already; release it first")
        try:
            with forks.held_off():
                self._fd = self._directory.open_file(self._name, os.O_RDWR | os.O_CREAT, 0o600)
                forks.keep(self._fd)
        except OSError as error:
            if error.errno in _NO_LOCK_FILE:
                raise self._refused(f"not a regular file ({error.strerror})") from error
            raise
        try:
            self._require_same_inode()
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._require_same_inode()  # again: replaced before the flock, the lock would exclude nobody
        except BlockingIOError:
            self.release()
            return False
        except BaseException:
            self.release()
            raise
        return True

    def _require_same_inode(self) -> None:
        mine = os.fstat(self._fd)
        if not stat.S_ISREG(mine.st_mode):
            raise self._refused("not a regular file")
        try:
            named = self._directory.stat(self._name)
        except FileNotFoundError:
            raise self._refused("it was removed while it was locked") from None
        if not os.path.samestat(mine, named):
            raise self._refused("it was replaced while it was locked")

    def _refused(self, why: str) -> LockRefused:
        path = f"{self._directory.path.rstrip('/')}/{self._name}"
        return LockRefused(f"the lock {path} is unusable: {why}; remove it and try again")

    def release(self) -> None:
        """Release the lock; harmless if this object does not have it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            forks.give_up(fd)
            try:
                # Closing would not release it while a child that Python did not fork has the descriptor.
                fcntl.flock(fd, fcntl.LOCK_UN)
            finally:
                os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
