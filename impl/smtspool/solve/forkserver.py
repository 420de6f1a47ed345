"""The service's side of the fork server of one engine.

A fork server is a program of its own for three reasons. The engine is imported once, and helpers are forked
in a millisecond. Helpers are not forked from the service, whose threads hold locks and whose memory may be
large. And as the parent of every helper the fork server can kill and reap a whole process group before any of
its pids is reused.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType

from smtspool.errors import ClosedError, InfrastructureError, MisuseError

from .generation import Generation
from .serverprocess import ServerProcess
from .spec import EngineSpec, HelperLimits

__all__ = ["EngineUnusable", "ForkServer"]

_AGAIN_S = 1.0  # pause after an engine could not be started; importing one takes a good part of it
_CLOSE_S = 5.0  # bound of close(); SIGKILL to reaped takes 12-25 ms, more for gigabytes


class EngineUnusable(InfrastructureError):
    """The engine cannot be started: its fork server ended without a helper. ``cause`` has the reason."""

    def __init__(self, engine: str, cause: str) -> None:
        super().__init__(f"engine {engine} {cause}")
        self.engine = engine
        self.cause = cause


class ForkServer:
    """Makes helpers of one engine. Thread-safe; a context manager.

    The constructor starts the process, which imports the engine while the caller goes on. If the process
    dies, its helpers die too, and the next ``spawn`` starts another one; but not within a second after one
    that gave no helper.
    """

    def __init__(
        self,
        spec: EngineSpec,
        limits: HelperLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.spec = spec
        self.limits = limits or HelperLimits()
        self._clock = clock
        self._numbers = itertools.count(1)
        self._owner = os.getpid()
        self._lock = threading.Lock()  # protects the three below
        self._closed = False
        self._unusable: tuple[float, EngineUnusable] | None = None  # until when, and why
        self._process = ServerProcess(spec, self.limits, clock)

    def spawn(self, deadline: float) -> Generation:
        """A helper that is ready to serve; normally the spare, forked already.

        Raises :class:`InfrastructureError` when the machine has no process to give or ``deadline`` passes;
        when to try again is the caller's decision. :class:`EngineUnusable` when the engine cannot be started.
        """
        process = self._running()
        spare = process.has_launches
        try:
            launch = process.take(deadline)
            if spare and launch.dead:
                launch.close()
                launch = process.take(deadline)
        except InfrastructureError:
            # A spare, or a server that died unnoticed, may have failed for a reason that has passed, so try
            # again.
            if not spare and process.alive:
                raise
            process = self._running()
            launch = process.take(deadline)
        if self.limits.spare:
            process.launch_ahead()
        try:
            return Generation(
                number=next(self._numbers),
                pid=launch.pid,
                pidfd=launch.pidfd,
                channel=launch.channel,
                stderr=launch.stderr,
                limits=self.limits,
                clock=self._clock,
                wait_exit=partial(process.wait_exit, launch),
            )
        except OSError as error:  # it opens one more descriptor
            launch.close()  # the helper ends when its channel closes
            raise InfrastructureError(f"a helper process cannot be held: {error}") from error

    def close(self) -> None:
        """Kill and reap every helper and end the fork server, in bounded time. Idempotent."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed = True
            process = self._process
        process.close(self._clock() + _CLOSE_S)

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def unusable(self) -> EngineUnusable | None:
        """Why the engine could not be started last time; None if it could."""
        return None if self._unusable is None else self._unusable[1]

    @property
    def pid(self) -> int:
        """Process id of the fork server that runs now."""
        return self._process.pid

    def _running(self) -> ServerProcess:
        if os.getpid() != self._owner:
            raise MisuseError("a fork server must not cross a fork: start one in the child")
        with self._lock:
            if self._closed:
                raise ClosedError("the fork server is closed")
            if self._process.alive:
                return self._process
            if self._unusable is None:
                self._process.close(self._clock() + _CLOSE_S)
                self._unusable = self._judge(self._process)
            if self._unusable is not None:
                until, why = self._unusable
                if self._clock() < until:
                    raise EngineUnusable(why.engine, why.cause)
            self._process = ServerProcess(self.spec, self.limits, self._clock)
            self._unusable = None
            return self._process

    def _judge(self, ended: ServerProcess) -> tuple[float, EngineUnusable] | None:
        """Whether the engine is unusable, by the end of its fork server; None if that had given helpers."""
        if ended.gave:
            return None
        why = EngineUnusable(self.spec.name, f"cannot be started: {ended.last_words}")
        return self._clock() + _AGAIN_S, why
