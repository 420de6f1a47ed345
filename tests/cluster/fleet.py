"""Several ranks qualifying at once, as threads on a bus over a real directory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from smtspool.cluster import (
    Capability,
    Communicator,
    LockFiles,
    Observation,
    QualificationAttempt,
    QualificationResult,
    Time,
    qualify,
)
from tests.cluster.bus import Bus, together

EPOCH = "e" * 64
SEEN = {field.name for field in fields(Observation)}


def qualify_one(
    comm: Communicator,
    root: Path,
    seen: Observation,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
    files: LockFiles | None = None,
    **attempt: Any,
) -> QualificationResult:
    """The result of one rank; ``attempt`` has the fields of its attempt."""
    return qualify(comm, root, seen, QualificationAttempt(**attempt), time=Time(clock, pause), files=files)


def qualify_all(
    capability: Capability,
    hosts: Sequence[str],
    *,
    comms: Sequence[Communicator] | None = None,
    each: Sequence[dict[str, Any]] | None = None,
    **common: Any,
) -> list[QualificationResult]:
    """The result of every rank. Fails if a rank raised.

    ``common`` and, where ranks differ, ``each`` have fields of what they observe and arguments of
    :func:`qualify_one`.
    """
    outcomes = attempt_all(capability, hosts, comms=comms, each=each, **common)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes  # type: ignore[return-value]


def attempt_all(
    capability: Capability,
    hosts: Sequence[str],
    *,
    comms: Sequence[Communicator] | None = None,
    each: Sequence[dict[str, Any]] | None = None,
    **common: Any,
) -> list[QualificationResult | BaseException]:
    """As :func:`qualify_all`, with the exceptions that passed the boundary in their places."""
    comms = comms or Bus(len(hosts)).communicators()

    def body(rank: int) -> Any:
        own = {"timeout": 20.0, **common, **(each[rank] if each else {})}
        observed = {"capability": capability, "processor": hosts[rank]}
        seen = Observation(**observed | {name: own.pop(name) for name in SEEN & own.keys()})
        return lambda: qualify_one(comms[rank], own.pop("root", Path(capability.root)), seen, **own)

    return together([body(rank) for rank in range(len(hosts))])
