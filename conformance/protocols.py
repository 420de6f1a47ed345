"""The protocols whose models are held to the code: one row each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from conformance.cancellation.protocol import PROTOCOL as CANCELLATION
from conformance.contract import Protocol
from conformance.profile_recovery.protocol import PROTOCOL as PROFILE_RECOVERY
from conformance.qualification.protocol import PROTOCOL as QUALIFICATION
from conformance.race.protocol import PROTOCOL as RACE
from conformance.recording import Checked, lines_of
from conformance.spool_admission.protocol import PROTOCOL as SPOOL_ADMISSION

__all__ = ["PROTOCOLS", "check_file", "named"]

PROTOCOLS = [
    SPOOL_ADMISSION,
    CANCELLATION,
    RACE,
    QUALIFICATION,
    PROFILE_RECOVERY,
]


def named(text: str) -> tuple[Protocol, str]:
    """A protocol by its name, or a beginning of it that no other one has; and the graph behind a slash, the
    first one if there is none. Raises :class:`LookupError`."""
    name, _, graph = text.partition("/")
    found = [protocol for protocol in PROTOCOLS if protocol.name.startswith(name)]
    if len(found) != 1 or not name:
        raise LookupError(f"{name} is no protocol; there are {', '.join(p.name for p in PROTOCOLS)}")
    [protocol] = found
    if graph and graph not in protocol.graphs:
        raise LookupError(f"{graph} is no graph of {protocol.name}; it has {', '.join(protocol.graphs)}")
    return protocol, graph or protocol.graphs[0]


def check_file(path: Path) -> Iterator[Checked]:
    """What became of a recording, by each model that judges lines of it. Raises :class:`TraceError` when it
    is no whole recording, or has no such line."""
    judges = [protocol.judge for protocol in PROTOCOLS if protocol.judge is not None]
    lines = lines_of(path.read_text(), {name for judge in judges for name in judge.protocols})
    for judge in judges:
        if own := [line for line in lines if line.protocol in judge.protocols]:
            yield judge.check(own)
