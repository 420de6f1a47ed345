"""Recording of every protocol action of this process: one NDJSON line each, in the order in which they ended.

The first line names the schema. Each further line says ``sequence``, ``pid``, ``thread``, ``clock``
(seconds, monotonic: shared by the processes of one host), ``protocol``, ``action``, ``params``, ``outcome``
and, if the body raised, ``error``. A line is written in one piece to a file opened for appending, so several
processes may record into one file; a process that is killed loses no line that it had written.

The steps of an ordered protocol are recorded in their exact order: while one is taken the others wait. That
makes a recorded service a little slower.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from smtspool.actions import Step, observed_by
from smtspool.errors import MisuseError

__all__ = ["TRACE_SCHEMA", "traced"]

log = logging.getLogger("smtspool")

TRACE_SCHEMA = "smtspool-trace-v1"


class _Recorder:
    """Writes a line after each step. ``_lock`` gives ``_sequence`` and the lines the same order; who takes a
    step of an ordered protocol has the turn from before it until it is written."""

    def __init__(self, descriptor: int, clock: Callable[[], float]) -> None:
        self._descriptor = descriptor
        self._clock = clock
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._sequence = 0
        self._ended = False

    def before(self, step: Step) -> None:
        """Wait for the turn, for a step of an ordered protocol; nobody else is held up."""
        if step.protocol.ordered:
            self._turn.acquire()

    def after(self, step: Step) -> None:
        try:
            self._record(step)
        finally:
            if step.protocol.ordered:
                self._turn.release()

    def _record(self, step: Step) -> None:
        members = {
            "pid": os.getpid(),
            "thread": threading.current_thread().name,
            "protocol": step.protocol.name,
            "action": step.name,
            "params": step.params,
            "outcome": step.outcome,
        }
        if step.error is not None:
            members["error"] = f"{type(step.error).__name__}: {step.error}"
        with self._lock:
            self._sequence += 1
            self.write({"sequence": self._sequence, "clock": self._clock(), **members})

    def write(self, members: dict[str, object]) -> None:
        """Append one line. A record that cannot go on ends; the step has happened all the same."""
        line = json.dumps(members, default=_plain).encode() + b"\n"
        try:
            while line and not self._ended:
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            self._ended = True
            log.error("the trace ends here: %s", error)


@contextmanager
def traced(path: Path, *, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Append every action of this process to ``path`` until the block ends.

    Raises MisuseError for a pipe: a step would wait for its reader.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, 0o644)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise _pipe(path) from error
        raise
    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            raise _pipe(path)
        recorder = _Recorder(descriptor, clock)
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # for the header: only one process finds the file empty
        if os.fstat(descriptor).st_size == 0:
            recorder.write({"schema": TRACE_SCHEMA})
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        with observed_by(recorder):
            yield
    finally:
        os.close(descriptor)


def _pipe(path: Path) -> MisuseError:
    return MisuseError(f"{path} is a pipe, and a trace needs a file: a step would wait for its reader")


def _plain(value: object) -> object:
    """Parameters that are not JSON: collections as lists, the rest as text."""
    return list(value) if isinstance(value, (set, frozenset)) else str(value)
