"""Descriptors that are closed when this process ends, even if a forked child lives on.

A forked child shares the open files of its parent. A lock belongs to an open file, and a pipe ends when its
last open end is closed, so a child that outlives its parent would keep the parent's locks and helpers. In
each child that Python forks, the descriptors that are kept here become ``/dev/null``. Their numbers stay
taken, so that code of the child which closes them closes no other file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["give_up", "held_off", "keep"]

_kept: set[int] = set()
_forking = threading.RLock()  # held during a fork, and from opening a descriptor to keeping it


@contextmanager
def held_off() -> Iterator[None]:
    """Hold off forks in this block, so that a descriptor opened in it can be kept first. It must not wait."""
    with _forking:
        yield


def keep(descriptor: int) -> None:
    """Replace this descriptor by ``/dev/null`` in every child that is forked from here on."""
    _kept.add(descriptor)


def give_up(descriptor: int) -> None:
    """Forget a descriptor that is about to be closed; one that is not kept is ignored."""
    _kept.discard(descriptor)


def _in_child() -> None:
    if _kept:
        some = next(iter(_kept))
        os.close(some)  # frees a number, in case the limit on descriptors is reached
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for descriptor in _kept - {null}:
            os.dup2(null, descriptor, inheritable=False)
        if null not in _kept:
            os.close(null)
        _kept.clear()
    _forking.release()


os.register_at_fork(before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_in_child)
