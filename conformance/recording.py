"""Recordings of ``smtspool serve --trace``: their lines, and of which protocol each is."""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.engine.trace import Recorded, TraceError, read

__all__ = ["SCHEMA", "Checked", "lines_of", "note"]

SCHEMA = "smtspool-trace-v1"


def note(trace: Path, protocol: str, pid: int, sequence: int, action: str, **params: object) -> None:
    """A line of a harness: what it did to a process that it lets run freely."""
    line = {
        "sequence": sequence,
        "pid": pid,
        "thread": "MainThread",
        "clock": time.monotonic(),
        "protocol": protocol,
        "action": action,
        "params": params,
        "outcome": None,
    }
    with trace.open("ab", buffering=0) as sink:
        sink.write(json.dumps(line).encode() + b"\n")


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of one recording."""

    accepted: bool
    text: str


def lines_of(text: str, protocols: Collection[str] = (), actions: Collection[str] = ()) -> list[Recorded]:
    """The lines of some protocols in a recording, or all. Raises :class:`TraceError` when it is no whole
    recording, has no such line, or one whose action is none of ``actions``."""
    lines = [replace(line, protocol=line.protocol or _told(line)) for line in read(text, schema=SCHEMA)]
    if not protocols:
        return lines
    found = [line for line in lines if line.protocol in protocols]
    for line in found:
        if actions and line.action not in actions:
            raise TraceError(f"line {line.number}: {line.protocol} has no action {line.action}")
    if not found:
        raise TraceError(f"the recording has no step of {' or '.join(sorted(protocols))}")
    return found


# In this order: a race names the solver of its part, too.
_PARAMETERS = {
    "consumer": "spool_admission",
    "rank": "qualification",
    "race": "race",
    "portfolio": "race",
    "solver": "cancellation",
}


def _told(line: Recorded) -> str:
    """The protocol of a line by a release whose recordings do not say it, as its parameters tell."""
    if line.action in ("Start", "Crash"):
        return "spool_admission"
    told = (protocol for name, protocol in _PARAMETERS.items() if name in line.params)
    return next(told, "profile_recovery")
