"""Waiting for new files: by inotify where it works, and everywhere by checking at intervals.

The kernel's interface is called directly, which takes one descriptor and no thread. A library that starts a
thread for it would end the process if the machine refuses the thread.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from smtspool.spool.names import is_published

__all__ = ["wait_for_change"]

_ROUND_S = 0.25
_STEP_S = 0.05  # the longest time until a stop is noticed
_BURST_S = 0.05  # files that follow each other are reported together, for at most so long ...
_QUIET_S = 0.01  # ... or until no file has come for so long

_IN_CLOSE_WRITE, _IN_MOVED_TO, _IN_CREATE = 0x8, 0x80, 0x100
_IN_Q_OVERFLOW = 0x4000
_IN_ONLYDIR = 0x0100_0000
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name behind it
_BUFFER = 64 * 1024


def wait_for_change(
    path: str,
    has_changed: Callable[[], bool],
    timeout_s: float,
    stop: threading.Event,
    clock: Callable[[], float],
) -> bool:
    """True when a published file appears in ``path`` or ``has_changed()``; False at timeout or on ``stop``.

    ``has_changed`` is called first, again when the watch has begun, and then four times a second, for file
    systems without notification (network, FUSE) and a used-up inotify limit.
    """
    if has_changed():
        return True
    deadline = clock() + timeout_s
    look_at = clock()
    with _Notices(path) as notices:
        while not stop.is_set():
            now = clock()
            if now >= min(look_at, deadline):
                if has_changed():
                    return True
                look_at = now + _ROUND_S
            if now >= deadline:
                return False
            if notices.come(min(_STEP_S, deadline - now)):
                _let_a_burst_pass(notices, clock)
                return True
    return False


def _let_a_burst_pass(notices: _Notices, clock: Callable[[], float]) -> None:
    until = clock() + _BURST_S
    while clock() < until and notices.come(_QUIET_S):
        pass


class _Notices:
    """Notifications of the kernel about published files that are made, written or moved into a directory.

    If there are none, :meth:`come` only waits.
    """

    def __init__(self, path: str) -> None:
        self._poller = select.poll()
        self._fd = -1
        with suppress(OSError):
            self._fd = _watch(path)
            self._poller.register(self._fd, select.POLLIN)

    def come(self, timeout_s: float) -> bool:
        """Whether a notification comes within ``timeout_s`` seconds."""
        if not self._poller.poll(timeout_s * 1000):
            return False
        with suppress(BlockingIOError):
            return any(_published(os.read(self._fd, _BUFFER)))
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def _watch(path: str) -> int:
    """A descriptor that becomes readable with each event. Raises ``OSError``."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    mask = _IN_CREATE | _IN_CLOSE_WRITE | _IN_MOVED_TO | _IN_ONLYDIR
    if libc.inotify_add_watch(fd, os.fsencode(path), ctypes.c_uint32(mask)) < 0:
        why = ctypes.get_errno()
        os.close(fd)
        raise OSError(why, os.strerror(why))
    return int(fd)


def _published(events: bytes) -> list[bool]:
    """For each event whether it is about a published file; True if events were lost."""
    found = []
    while events:
        _, mask, _, length = _EVENT.unpack_from(events)
        name = events[_EVENT.size : _EVENT.size + length].rstrip(b"\0")
        found.append(bool(mask & _IN_Q_OVERFLOW) or is_published(os.fsdecode(name)))
        events = events[_EVENT.size + length :]
    return found
