"""Several ranks qualifying at once, as threads on a bus over a real directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smtspool.cluster import Capability, Communicator, QualificationResult, qualify
from tests.cluster.bus import Bus, together

EPOCH = "e" * 64


def qualify_all(
    capability: Capability,
    hosts: Sequence[str],
    *,
    comms: Sequence[Communicator] | None = None,
    each: Sequence[dict[str, Any]] | None = None,
    **common: Any,
) -> list[QualificationResult]:
    """The result of every rank; ``each`` has what differs between them. Fails if a rank raised."""
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
    defaults = {"capability": capability, "root": Path(capability.root), "timeout": 20.0, **common}

    def body(rank: int) -> Any:
        arguments = {**defaults, "processor": hosts[rank], **(each[rank] if each else {})}
        return lambda: qualify(comms[rank], **arguments)

    return together([body(rank) for rank in range(len(hosts))])
