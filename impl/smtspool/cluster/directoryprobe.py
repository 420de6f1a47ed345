"""The capability probe (F327, F328): nine real operations in private folders, which it removes.

It shows which operations work from this host. It does not test crashes or power failures, and its test of
locks is between processes of this host only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from smtspool.errors import InfrastructureError
from smtspool.files import Directory, FileLock

from .capability import FULL, Capability, Operation, Requirements
from .mounts import is_distributed, mount_of

__all__ = ["ProbeFailed", "probe_directory"]

PREFIX = ".smtspool-probe-"
LOCK = "record.lock"
DEFAULT_SECONDS = 5.0
LONGEST_SECONDS = 60.0

# Another process tries the lock: exit 0 if it got it, 73 if it was refused, anything else is an error.
_BLOCKED = 73
_CHILD = f"""
import errno, fcntl, os, sys
fd = os.open({LOCK!r}, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=int(sys.argv[1]))
try:
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError as error:
    sys.exit({_BLOCKED} if error.errno in (errno.EACCES, errno.EAGAIN) else 74)
"""


class ProbeFailed(InfrastructureError):
    """A required operation does not work; ``operation`` is the first that failed, if any was tried."""

    def __init__(self, operation: Operation | None, message: str) -> None:
        super().__init__(message)
        self.operation = operation


def probe_directory(
    root: Path,
    *,
    publication_root: Path | None = None,
    requirements: Requirements = FULL,
    timeout: float = DEFAULT_SECONDS,
) -> Capability:
    """Try the required operations under ``root``, and the replacement into ``publication_root``.

    Both must exist. ``timeout`` is in seconds, for each of the two processes that try the lock. Raises
    ProbeFailed for the first operation that does not work. Its folders are removed, except after a kill.
    """
    if not 0 < timeout < float("inf"):
        raise ValueError(f"the timeout of a probe must be above 0 and finite, not {timeout!r}")
    here, there = str(root.absolute()), str((publication_root or root).absolute())
    at: list[Operation] = []  # the operation that is being tried
    try:
        with ExitStack() as stack:
            directory = stack.enter_context(Directory.open(here))
            publication = stack.enter_context(Directory.open(there))
            left, right = (stack.enter_context(_private(folder)) for folder in (directory, directory))
            away = stack.enter_context(_private(publication))
            trials = _trials(left, right, away, min(timeout, LONGEST_SECONDS))
            for operation, trial in trials.items():
                if operation in requirements.operations:
                    at.append(operation)
                    trial()
            device, publication_device = os.fstat(directory.fd), os.fstat(publication.fd)
            statistics, publication_statistics = os.fstatvfs(directory.fd), os.fstatvfs(publication.fd)
    except (OSError, InfrastructureError, subprocess.SubprocessError) as error:
        failed = at[-1] if at else None
        name = failed.value.replace("_", " ") if failed else "opening it"
        raise ProbeFailed(failed, f"{here} cannot be shared: {name}: {error}") from error
    mount = mount_of(here)
    return Capability(
        root=here,
        publication_root=there,
        device=device.st_dev,
        filesystem_id=statistics.f_fsid,
        publication_device=publication_device.st_dev,
        publication_filesystem_id=publication_statistics.f_fsid,
        filesystem_type=mount.kind,
        mount_point=mount.point,
        mount_source=mount.source,
        distributed=is_distributed(mount.kind),
        requirements=requirements,
        operations={one: True if one in requirements.operations else None for one in Operation},
    )


@contextmanager
def _private(parent: Directory) -> Iterator[Directory]:
    """A private folder in ``parent``, which is removed at the end with all that is in it."""
    name = f"{PREFIX}{os.getpid()}-{os.urandom(8).hex()}"
    os.mkdir(name, 0o700, dir_fd=parent.fd)
    try:
        with parent.child(name) as folder:
            try:
                yield folder
            finally:
                for one in folder.names():
                    with suppress(FileNotFoundError):
                        folder.unlink(one)
    finally:
        os.rmdir(name, dir_fd=parent.fd)
        parent.sync()


def _trials(
    left: Directory, right: Directory, away: Directory, timeout: float
) -> dict[Operation, Callable[[], None]]:
    """Each operation with the function that tries it and raises if it does not work, in order."""
    lock = FileLock(left, LOCK)

    def file_fsync() -> None:
        _write(left, "a", b"file")

    def same_directory_replace() -> None:
        _write(left, "b", b"same")
        left.replace("b", left, "a")
        _require_content(left, "a", b"same")

    def replace_into(folder: Directory, content: bytes) -> None:
        _write(left, "b", content)
        _write(folder, "a", b"old")
        left.replace("b", folder, "a")
        _require_content(folder, "a", content)
        left.sync()
        folder.sync()

    def hard_link() -> None:
        _write(left, "c", b"link")
        os.link("c", "d", src_dir_fd=left.fd, dst_dir_fd=left.fd, follow_symlinks=False)
        if not os.path.samestat(left.stat("c"), left.stat("d")):
            raise OSError("the link is another file")

    def durable_unlink() -> None:
        _write(left, "e", b"gone")
        left.unlink("e")
        left.sync()
        if left.exists("e"):
            raise OSError("the file is still there")

    def exclusion() -> None:
        if not lock.try_acquire():
            raise OSError("a lock that nobody holds is refused")
        try:
            if (code := _locked_by_another(left, timeout)) != _BLOCKED:
                raise OSError(
                    "two processes have the same lock" if code == 0 else f"trying it failed with {code}"
                )
        finally:
            lock.release()

    def release() -> None:
        if (code := _locked_by_another(left, timeout)) != 0:
            raise OSError(
                "a released lock is refused" if code == _BLOCKED else f"trying it failed with {code}"
            )

    return {
        Operation.FILE_FSYNC: file_fsync,
        Operation.DIRECTORY_FSYNC: left.sync,
        Operation.SAME_DIRECTORY_REPLACE: same_directory_replace,
        Operation.CROSS_DIRECTORY_REPLACE: lambda: replace_into(right, b"cross"),
        Operation.PUBLICATION_REPLACE: lambda: replace_into(away, b"publication"),
        Operation.HARD_LINK: hard_link,
        Operation.DURABLE_UNLINK: durable_unlink,
        Operation.ADVISORY_LOCK_EXCLUSION: exclusion,
        Operation.ADVISORY_LOCK_RELEASE: release,
    }


def _write(directory: Directory, name: str, content: bytes) -> None:
    fd = directory.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)


def _require_content(directory: Directory, name: str, content: bytes) -> None:
    fd = directory.open_file(name, os.O_RDONLY)
    try:
        if os.read(fd, len(content) + 1) != content:
            raise OSError("the replaced file has its old content")
    finally:
        os.close(fd)


def _locked_by_another(directory: Directory, timeout: float) -> int:
    """The exit code of another process that tries the lock."""
    command = [sys.executable, "-I", "-S", "-c", _CHILD, str(directory.fd)]
    ended = subprocess.run(
        command,
        pass_fds=(directory.fd,),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return ended.returncode
