"""The environment of a solver: its clock, and helpers that answer on command."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar

from conformance.engine.gates import LEDGER
from conformance.engine.replay import Divergence
from smtspool.errors import InfrastructureError
from smtspool.solve import EngineSpec, Generation, HelperLimits, RequestView, SolverView, Waiting

__all__ = ["Clock", "Helpers", "Server", "looked", "stands"]

_V = TypeVar("_V")
_HELPER = Path(__file__).with_name("helper.py")


class Clock:
    """Real time, plus leaps; and the waits of the code under test, which a leap ends when it is told to."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._guard = threading.Lock()  # protects the one below
        self._waits: list[threading.Condition] = []

    def __call__(self) -> float:
        return time.monotonic() + self._ahead

    def leap(self, seconds: float) -> None:
        """Let time pass."""
        self._ahead += seconds

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Wait for a condition, for so many seconds or until :meth:`wake`."""
        with self._guard:
            self._waits.append(condition)
        try:
            condition.wait(seconds)
        finally:
            with self._guard:
                self._waits.remove(condition)

    def wake(self) -> None:
        """Make waiting threads read the clock again."""
        with self._guard:
            waits = list(self._waits)
        for condition in waits:
            with condition:
                condition.notify_all()


def looked(view: Callable[[], _V]) -> _V:
    """A view. Raises :class:`Divergence` if a thread stands with the lock that is needed for it."""
    try:
        return view()
    except InfrastructureError as error:
        raise Divergence(str(error), "blocked") from error


def stands(request: RequestView, solver: SolverView, now: float) -> bool:
    """Whether a request waits for what has not come: its turn, or the reply of a helper that lives."""
    if now >= request.deadline:
        return False
    if request.waiting is Waiting.TURN:
        return solver.holder is not None and request.reason is None
    helper = solver.helper
    return (
        request.waiting is Waiting.REPLY
        and helper is not None
        and helper.generation == request.generation
        and helper.alive
        and helper.asked
    )


class Helpers:
    """One small process that forks helpers; for all systems of this process, one after the other."""

    def __init__(self) -> None:
        self.link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-S", "-E", str(_HELPER), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
            )

    def __enter__(self) -> Helpers:
        return self

    def __exit__(self, *_: object) -> None:
        self.link.close()
        self._process.wait()


class Server:
    """The fork server's place: real processes behind real generations."""

    def __init__(self, helpers: Helpers, clock: Clock, name: str = "told") -> None:
        self.spec = EngineSpec(name)
        self.refuses = False
        self.spawned: list[Generation] = []
        self._helpers = helpers
        self._clock = clock
        self._commands: list[socket.socket] = []
        self._pidfds: list[int] = []

    def spawn(self, deadline: float) -> Generation:
        """A helper that waits for a request."""
        if self.refuses:
            raise InfrastructureError("the machine has no process to give")
        with ExitStack() as theirs:
            ends = []
            mine = []
            for _ in range(3):
                ours, end = socket.socketpair()
                ends.append(theirs.enter_context(end))
                mine.append(ours)
            socket.send_fds(self._helpers.link, [b"fork"], [end.fileno() for end in ends])
            pid = int(self._helpers.link.recv(64))
        channel, errors, commands = mine
        channel.setblocking(False)
        errors.setblocking(False)
        self._commands.append(commands)
        self._pidfds.append(os.pidfd_open(pid))
        generation = Generation(
            number=len(self.spawned) + 1,
            pid=pid,
            pidfd=os.dup(self._pidfds[-1]),
            channel=channel,
            stderr=errors.detach(),
            limits=HelperLimits(frame=1 << 20),
            clock=self._clock,
            wait_exit=partial(self._wait_exit, self._pidfds[-1]),
        )
        self.spawned.append(generation)
        return generation

    @staticmethod
    def _wait_exit(pidfd: int, deadline: float) -> str | None:
        return "signal 9" if select.select([pidfd], [], [], 5.0)[0] else None

    def tell(self, number: int, command: str) -> None:
        """A command for the helper of a generation."""
        self._commands[number - 1].send(command.encode())

    def kill(self, number: int) -> None:
        """The helper crashes: as a process does, at once and whatever it does."""
        signal.pidfd_send_signal(self._pidfds[number - 1], signal.SIGKILL)
        self.require_dead(number)
        LEDGER.killed += 1

    def require_dead(self, number: int) -> None:
        """Raises :class:`Divergence` if the process lives on."""
        if not self._wait_exit(self._pidfds[number - 1], 0.0):
            raise Divergence(f"the helper of generation {number} lives on")

    def life(self, generation: Generation) -> str:
        """What became of it."""
        if generation.retired_for is not None:
            return "retired"
        return "valid" if generation.alive else "broken"

    def close(self) -> None:
        """End every helper, also one that the code under test has left behind."""
        for generation, commands, pidfd in zip(self.spawned, self._commands, self._pidfds, strict=True):
            generation.retire("over")
            commands.close()
            os.close(pidfd)
