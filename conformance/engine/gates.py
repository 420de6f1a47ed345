"""Gates: real participants, released one step at a time, killed at any of them.

A *participant* is a process (or a thread) that runs real code. The code reports each atomic step twice: ahead
of it (the *gate*, where the participant stands until the scheduler releases it) and after it. Between two
steps a participant is not held. So one that waits for another without a gate is reported as blocked, one that
takes a step that was not expected stands at an unexpected gate, and one that ends is dead; each of these has
a deadline.

The code's side is :class:`Gate`: ``before`` and ``after`` fit any seam that calls around its steps. The
scheduler's side is :class:`Participant`. Between them runs one socket with one JSON document per packet.
Processes come from a :class:`Nursery`, a small single-threaded process that has imported the code once and
forks; a fork of the scheduler itself would copy its threads' locks.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import TracebackType
from typing import Any, Self

from . import mutants

__all__ = [
    "LEDGER",
    "At",
    "Dead",
    "Gate",
    "GateError",
    "Idle",
    "InjectedFault",
    "Nursery",
    "Participant",
    "Passed",
    "Position",
]

PACKET = 1 << 18


class GateError(AssertionError):
    """A participant did not take the step it was released for. The message names participant and steps."""


@dataclass(frozen=True, slots=True)
class At:
    """Standing at the gate of a step."""

    name: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Idle:
    """Waiting for a call; ``result`` is what the last one returned."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class Dead:
    """The participant ended, by a signal or by itself."""


Position = At | Idle | Dead


@dataclass(frozen=True, slots=True)
class Passed:
    """A step that was taken: its outcome, or the error that ended it."""

    name: str
    params: Mapping[str, Any]
    outcome: str | None
    error: str | None


class InjectedFault(OSError):
    """What a released step raises when the environment refuses it."""


# --- the participant's side --------------------------------------------------------------------------


class Gate:
    """The participant's end. ``before`` holds the calling thread until it is released."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link

    def before(self, name: str, params: Mapping[str, Any]) -> None:
        """Stand at the gate. Raises :class:`InjectedFault` when the scheduler lets the step fail."""
        self._send({"at": name, "params": params})
        verdict = self._receive()
        if "fail" in verdict:
            raise InjectedFault(getattr(errno, verdict["fail"]), os.strerror(getattr(errno, verdict["fail"])))

    def after(self, name: str, params: Mapping[str, Any], outcome: str | None, error: str | None) -> None:
        """Say that the step was taken."""
        self._send({"passed": name, "params": params, "outcome": outcome, "error": error})

    def serve(self, calls: Mapping[str, Callable[..., Any]]) -> None:
        """Carry out calls until the scheduler hangs up. An exception of a call is its result."""
        self._send({"idle": None})
        while request := self._receive():
            try:
                result = calls[request["call"]](**request["params"])
            except Exception as error:  # noqa: BLE001  whatever the code raises is an observation
                result = {"raised": type(error).__name__, "text": str(error)}
            self._send({"idle": result})

    def _send(self, document: Mapping[str, Any]) -> None:
        try:
            self._link.send(json.dumps(document, default=_plain).encode())
        except (BrokenPipeError, ConnectionResetError):
            raise SystemExit(0) from None  # the scheduler is gone

    def _receive(self) -> dict[str, Any]:
        try:
            packet = self._link.recv(PACKET)
        except ConnectionResetError:
            packet = b""
        if not packet:
            raise SystemExit(0)  # the scheduler is gone
        request: dict[str, Any] = json.loads(packet)
        return request


def _plain(value: object) -> object:
    return sorted(value) if isinstance(value, (set, frozenset)) else str(value)


class Ledger(threading.local):
    """What this thread really made participants do; a harness that only pretends adds nothing."""

    released: int = 0
    killed: int = 0


LEDGER = Ledger()


# --- the scheduler's side ----------------------------------------------------------------------------


class Participant:
    """One real process or thread, seen from the scheduler.

    ``position`` is where it stands now. Every method that lets it go waits until it stands again, at most
    ``patience_s``, and raises :class:`GateError` when it does not.
    """

    def __init__(self, name: str, link: socket.socket, pid: int | None, *, patience_s: float = 10.0) -> None:
        self.name = name
        self.pid = pid
        self._link = link
        self._pidfd = os.pidfd_open(pid) if pid is not None else -1
        self._patience_s = patience_s
        self._last: str = "start"
        self.position: Position = Dead()
        self.position = self._until_standing(None)[1]

    def call(self, what: str, **params: Any) -> Position:
        """Make an idle participant call ``what``; it then stands at the first gate, or is idle again."""
        if not isinstance(self.position, Idle):
            raise GateError(f"{self.name} cannot be called: {self.position}")
        self._last = what
        self._send({"call": what, "params": params})
        passed, self.position = self._until_standing(None)
        assert passed is None
        return self.position

    def release(self, *, fail: str | None = None) -> Passed | None:
        """Let it take the step it stands at; None when the environment made it ``fail`` (an errno name)."""
        if not isinstance(self.position, At):
            raise GateError(f"{self.name} stands at no gate: {self.position}")
        step = self.position
        self._last = step.name
        LEDGER.released += 1
        self._send({"fail": fail} if fail else {"go": True})
        passed, self.position = self._until_standing(None if fail else step)
        return passed

    def kill(self) -> None:
        """SIGKILL now, and wait until the kernel has closed everything it held."""
        if self.pid is None:
            raise GateError(f"{self.name} is a thread; threads cannot be killed")
        signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        if not select.select([self._pidfd], [], [], self._patience_s)[0]:
            raise GateError(f"{self.name} survived SIGKILL for {self._patience_s:g} s")
        LEDGER.killed += 1
        self.position = Dead()
        self.close()

    def close(self) -> None:
        """Close the connection; a participant that still runs ends at its next gate. Idempotent."""
        self._link.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def _send(self, document: Mapping[str, Any]) -> None:
        try:
            self._link.send(json.dumps(document).encode())
        except BrokenPipeError:
            raise GateError(f"{self.name} is dead before {self._last}") from None

    def _until_standing(self, step: At | None) -> tuple[Passed | None, Position]:
        """Wait until it stands again; on the way it reports ``step``, and nothing else."""
        passed: Passed | None = None
        deadline = time.monotonic() + self._patience_s
        while True:
            packet = self._packet(deadline)
            if not packet:
                return passed, Dead()
            document = json.loads(packet)
            if "passed" in document:
                passed = Passed(
                    document["passed"], document["params"], document["outcome"], document["error"]
                )
                if step is None or passed.name != step.name:
                    raise GateError(f"{self.name} took {passed.name}, released was {self._last}")
                continue
            if step is not None and passed is None:
                raise GateError(f"{self.name} passed the gate of {step.name} and did not report the step")
            if "at" in document:
                return passed, At(document["at"], document["params"])
            return passed, Idle(document["idle"])

    def _packet(self, deadline: float) -> bytes:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self._link], [], [], left)[0]:
            raise GateError(f"{self.name} is blocked: no gate for {self._patience_s:g} s after {self._last}")
        try:
            return self._link.recv(PACKET)
        except ConnectionResetError:
            return b""


# --- where processes come from -----------------------------------------------------------------------


class Nursery:
    """Forks participants, for any thread, that run ``entry`` ("module:function", called with its
    :class:`Gate` and ``params`` as keyword arguments), with a mutant if one is given (see :mod:`.mutants`).
    Milliseconds per process. A context manager."""

    def __init__(self, entry: str, mutant: str = "[]") -> None:
        self._spawning = threading.Lock()  # protects one request and its answer
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, entry, str(theirs.fileno()), mutant],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )

    def spawn(self, name: str, params: Mapping[str, Any], *, patience_s: float = 10.0) -> Participant:
        """A new process, idle."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with self._spawning, theirs:
            socket.send_fds(self._link, [json.dumps(params).encode()], [theirs.fileno()])
            if not select.select([self._link], [], [], 60.0)[0]:
                raise GateError("the nursery does not answer")
            answer = self._link.recv(PACKET)
        if not answer:
            raise GateError(f"the nursery ended with {self._process.wait()}")
        return Participant(name, ours, int(answer), patience_s=patience_s)

    def close(self) -> None:
        """End the nursery. Its children end when their participants are closed."""
        self._link.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _nurse(entry: str, link: socket.socket, mutant: str) -> None:
    module, _, function = entry.partition(":")
    finder = mutants.install(mutant)
    run = attrgetter(function)(importlib.import_module(module))
    mutants.require_applied(finder)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the children
    while True:
        request, descriptors, _, _ = socket.recv_fds(link, PACKET, 1)
        if not request:
            return
        pid = os.fork()
        if pid == 0:
            link.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _live(run, socket.socket(fileno=descriptors[0]), json.loads(request))
        os.close(descriptors[0])
        link.send(str(pid).encode())


def _live(run: Callable[..., None], link: socket.socket, params: Mapping[str, Any]) -> None:
    """The whole life of a forked participant; never returns into the nursery's loop."""
    code = 1
    try:
        run(Gate(link), **params)
        code = 0
    except SystemExit:
        code = 0
    except BaseException:  # noqa: BLE001  the end of this process: told, not passed to the nursery's loop
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _nurse(sys.argv[1], socket.socket(fileno=int(sys.argv[2])), sys.argv[3])
