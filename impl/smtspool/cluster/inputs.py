"""The inputs of a rank: its host, its clock, and the attempt that it makes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .capability import Capability
from .lockfiles import LockFiles

__all__ = ["REAL_TIME", "STARTUP", "Host", "QualificationAttempt", "Time"]

DEFAULT_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Time:
    """The clock and the pause of a rank, in seconds."""

    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


REAL_TIME = Time()


@dataclass(frozen=True, slots=True)
class Host:
    """The parts of a rank that belong to its host.

    :param root: the shared directory, by its path on this host
    :param probe: tries what ``root`` can do; see :func:`.probe_directory`
    :param processor_name: the name of the host
    :param keeps: identity of the host's store; two hosts with the same are refused
    :param files: the system calls of the litmus
    """

    root: Path
    probe: Callable[[], Capability]
    processor_name: Callable[[], str]
    keeps: str = ""
    files: LockFiles = field(default_factory=LockFiles)


@dataclass(frozen=True, slots=True)
class QualificationAttempt:
    """The identity of an attempt, the same on all ranks, and how long it may take on this one.

    :param epoch: that of this fleet, from an earlier result; None agrees on a fresh one
    :param generation: 0 at startup, then one more for each renewal; part of the proof
    :param number: to be raised, on all ranks, whenever the same generation is tried again
    :param timeout: seconds, 0.001 to 3600: the limit of the first exchange, and again of all the others
    together
    """

    epoch: str | None = None
    generation: int = 0
    number: int = 1
    timeout: float = DEFAULT_TIMEOUT


STARTUP = QualificationAttempt()
