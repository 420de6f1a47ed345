"""Starting threads. If the machine refuses one, Python raises a bare RuntimeError; here it is told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import TypeVar

from smtspool.errors import InfrastructureError

__all__ = ["submit", "wanted"]

_T = TypeVar("_T")
_REFUSED = "can't start new thread"


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
