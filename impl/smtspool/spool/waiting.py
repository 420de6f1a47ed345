"""Waiting for new files: notification where the system has it, a cheap look now and then everywhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import closing

from watchfiles import Change, watch

from smtspool.spool.names import is_published

__all__ = ["wait_for_change"]

_ROUND_S = 0.25
_STEP_MS = 10  # the delay of a notification


def wait_for_change(
    path: str,
    has_changed: Callable[[], bool],
    timeout_s: float,
    stop: threading.Event,
    clock: Callable[[], float],
) -> bool:
    """True when a published file appears in ``path`` or ``has_changed()``; False at timeout or on ``stop``.

    ``has_changed`` is asked first and then four times a second. It serves file systems without notification
    (network, FUSE, a used-up inotify limit) and closes the gap before the watch begins. The watcher's thread
    and descriptors end with the call.
    """
    deadline = clock() + timeout_s
    if has_changed():
        return True
    with closing(_rounds(path, stop, min(_ROUND_S, timeout_s))) as rounds:
        for notified in rounds:
            if stop.is_set():
                return False
            if notified or has_changed():
                return True
            if clock() >= deadline:
                return False
    return False


def _rounds(path: str, stop: threading.Event, round_s: float) -> Generator[bool, None, None]:
    """One value per event or per ``round_s``, until ``stop``: was a published file added or modified?"""
    round_ms = max(1, int(round_s * 1000))
    try:
        for changes in watch(
            path,
            watch_filter=None,  # a filtered change would not end the round
            debounce=_STEP_MS * 5,
            step=_STEP_MS,
            stop_event=stop,
            rust_timeout=round_ms,
            yield_on_timeout=True,
            recursive=False,
        ):
            yield any(
                change is not Change.deleted and is_published(changed.rpartition("/")[2])
                for change, changed in changes
            )
    except (OSError, RuntimeError):  # RuntimeError: the watcher's own "internal error"
        while not stop.wait(round_s):  # no notification here; the looks go on
            yield False
