"""Functions of Linux that make sure that no process outlives its purpose."""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import select
import signal
from contextlib import suppress

__all__ = ["Children", "become_subreaper", "die_with_parent", "die_with_pipe", "lower", "yield_to_others"]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Descendants whose parent dies become children of this process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


class Children:
    """The children of this single-threaded process, dead ones included.

    The kernel's list stays open, so that it can be read when no more descriptors can be opened.
    """

    def __init__(self) -> None:
        self._list = os.open("/proc/thread-self/children", os.O_RDONLY | os.O_CLOEXEC)

    def __call__(self) -> set[int]:
        os.lseek(self._list, 0, os.SEEK_SET)
        text = b"".join(iter(lambda: os.read(self._list, 4096), b""))
        return {int(pid) for pid in text.split()}

    def close(self) -> None:
        os.close(self._list)


def die_with_parent(parent: int) -> None:
    """Let the kernel SIGKILL this process when ``parent`` dies; at once if it is dead already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def die_with_pipe(reading_end: int) -> int:
    """Let the kernel SIGKILL this process when the last writer of the pipe is gone.

    Returns the descriptor to keep open. The signal works inside native code and on a stopped process. The
    pipe is opened anew, because the owner of its signals belongs to the open file, which forked processes
    share.
    """
    own = os.open(f"/proc/self/fd/{reading_end}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.fcntl(own, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(own, fcntl.F_SETFL, fcntl.fcntl(own, fcntl.F_GETFL) | os.O_ASYNC)
    poller = select.poll()
    poller.register(own, 0)
    if poller.poll(0):
        os._exit(1)
    return own


def lower(which: int, limit: int) -> None:
    """Set both limits of a resource, never above the hard one there is."""
    _, hard = resource.getrlimit(which)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(which, (limit, limit))


def yield_to_others(niceness: int) -> None:
    """Lower the priority of this process, which has a session of its own, until it ends."""
    os.nice(niceness)
    # If the kernel gives every session a share of its own (sched_autogroup), niceness counts only within the
    # session, so the session's value is set too. The kernel may refuse that soon after any process has made
    # such a change.
    with suppress(OSError), open("/proc/self/autogroup", "w") as group:
        group.write(str(os.getpriority(os.PRIO_PROCESS, 0)))


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
