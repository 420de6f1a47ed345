"""Starting threads, which the machine may refuse, and waiting by a clock that is given.

For a refused thread Python raises a bare RuntimeError; here it becomes an InfrastructureError.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import TypeVar

from smtspool.errors import InfrastructureError

__all__ = ["Wait", "looking_at", "submit", "wait_until", "wanted"]

_T = TypeVar("_T")
# Waits for a condition, for so many seconds at most. ``Condition.wait`` is one.
Wait = Callable[[threading.Condition, float], object]
_REFUSED = "can't start new thread"
_LOOK_S = 1.0  # locks are held for microseconds


@contextmanager
def wanted() -> Iterator[None]:
    """Start one thread in this block; if the machine refuses it, ``InfrastructureError`` is raised."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != _REFUSED:
            raise
        raise InfrastructureError(
            "the machine refuses one more thread: it is out of memory or of processes (ulimit -u, pids.max)"
        ) from error


@contextmanager
def looking_at(lock: threading.Lock | threading.Condition, what: str) -> Iterator[None]:
    """Hold ``lock`` to copy what it protects. Raises :class:`InfrastructureError` if it is not free within a
    second, so that a look at a process that is stuck does not get stuck too."""
    if not lock.acquire(timeout=_LOOK_S):
        raise InfrastructureError(f"{what} cannot be looked at: it has been locked for {_LOOK_S:g} s")
    try:
        yield
    finally:
        lock.release()


def submit(pool: Executor, work: Callable[[], _T]) -> Future[_T]:
    """Have a thread of the pool do ``work``.

    Raises :class:`InfrastructureError` if that thread is refused; then the work is never done, although the
    pool keeps it in its queue.
    """
    future = Future[_T]()
    try:
        with wanted():
            pool.submit(_perform, future, work)
    except InfrastructureError:
        if future.cancel():
            raise
        # A thread that the pool has already took the work meanwhile.
    return future


def _perform(future: Future[_T], work: Callable[[], _T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - the reader of the future gets it
        future.set_exception(error)


def wait_until(
    changed: threading.Condition,
    holds: Callable[[], bool],
    deadline: float,
    *,
    clock: Callable[[], float],
    wait: Wait = threading.Condition.wait,
) -> bool:
    """Whether ``holds()`` comes true by ``deadline``, a reading of ``clock``. Called with ``changed`` held.

    ``Condition.wait_for`` does the same by a clock of Python's own.
    """
    while not holds():
        left_s = deadline - clock()
        if left_s <= 0:
            return False
        wait(changed, left_s)
    return True
