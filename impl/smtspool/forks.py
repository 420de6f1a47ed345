"""Descriptors that end with this process, whatever children it has forked.

A lock belongs to an open file, the end of a pipe comes when nobody has it open, and a fork makes the child
one more who has. So a child that outlives its parent would keep the parent's locks and the parent's helpers.
In each child that Python forks, what is kept here becomes ``/dev/null``: the numbers stay taken, so that
whoever closes them there closes nothing else.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["give_up", "held_off", "keep"]

_kept: set[int] = set()
_forking = threading.RLock()  # held by who forks, and by who has opened and not yet kept


@contextmanager
def held_off() -> Iterator[None]:
    """No fork happens in this block: for opening what is to be kept. Nothing that waits belongs in it."""
    with _forking:
        yield


def keep(descriptor: int) -> None:
    """Keep it from children."""
    _kept.add(descriptor)


def give_up(descriptor: int) -> None:
    """It is about to be closed; one that is not kept is no matter."""
    _kept.discard(descriptor)


def _in_child() -> None:
    if _kept:
        some = next(iter(_kept))
        os.close(some)  # there may be no descriptor to be had
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for descriptor in _kept - {null}:
            os.dup2(null, descriptor, inheritable=False)
        if null not in _kept:
            os.close(null)
        _kept.clear()
    _forking.release()


os.register_at_fork(before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_in_child)
