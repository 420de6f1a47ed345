"""Processes for what must not share ours: engines that hang or hold the interpreter, peers that fork."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

__all__ = ["Child", "Overrun", "cpus", "crew", "together"]

_SPAWN = multiprocessing.get_context("spawn")  # an interpreter that inherits nothing
_START_SECONDS = 60.0


class Overrun(Exception):
    """The task passed its deadline; its process was killed."""


def cpus() -> int:
    """How many we may use; both sides of every comparison get the same."""
    return len(os.sched_getaffinity(0))


class Child:
    """A process that answers tasks with ``function``. It is killed at a deadline and then started anew."""

    def __init__(self, function: Callable[[Any], Any], warm_up: Any = None) -> None:
        """The child does ``function(warm_up)``, unless that is None, before it counts as started."""
        self._function = function
        self._warm_up = warm_up
        self._start()

    def _start(self) -> None:
        self._channel, theirs = _SPAWN.Pipe()
        # Not a daemon: those may have no children, and some peers fork.
        self._process = _SPAWN.Process(target=_serve, args=(theirs, self._function, self._warm_up))
        self._process.start()
        theirs.close()
        try:
            self._receive(time.monotonic() + _START_SECONDS)
        except BaseException:
            self.close()
            raise

    def begin(self, task: Any) -> None:
        self._channel.send(task)

    def end(self, deadline: float) -> Any:
        """The answer to what was begun; raises :class:`Overrun`, or what the function raised."""
        try:
            return self._receive(deadline)
        except (Overrun, EOFError):
            self.close()
            self._start()
            raise

    def ask(self, task: Any, limit_s: float) -> Any:
        self.begin(task)
        return self.end(time.monotonic() + limit_s)

    def _receive(self, deadline: float) -> Any:
        if not self._channel.poll(max(0.0, deadline - time.monotonic())):
            raise Overrun
        good, result = self._channel.recv()
        if not good:
            raise RuntimeError(result)
        return result

    def close(self) -> None:
        """End it, whatever it is doing; a second time is an error."""
        self._process.kill()
        self._process.join()
        self._process.close()
        self._channel.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _serve(channel: Connection, function: Callable[[Any], Any], warm_up: Any) -> None:
    """The life of a child: until its parent is gone."""
    task = warm_up
    try:
        while True:
            try:
                reply = True, None if task is None else function(task)
            except Exception as error:  # noqa: BLE001  the parent is told, and raises it
                reply = False, f"{type(error).__name__}: {error}"
            channel.send(reply)
            task = channel.recv()
    except (EOFError, BrokenPipeError):
        return


@contextmanager
def crew(function: Callable[[Any], Any], warm_up: Any, count: int) -> Iterator[list[Child]]:
    """``count`` children that are warm."""
    with ExitStack() as stack:
        yield [stack.enter_context(Child(function, warm_up)) for _ in range(count)]


def together(children: Sequence[Child], tasks: Sequence[Any], limit_s: float) -> float:
    """Wall seconds in which the children answer one task each, all at the same time."""
    started = time.perf_counter()
    for child, task in zip(children, tasks, strict=True):
        child.begin(task)
    deadline = time.monotonic() + limit_s
    for child in children:
        child.end(deadline)
    return time.perf_counter() - started
