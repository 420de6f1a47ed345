"""Recordings of fleets, made ready for ``TraceQualification``."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial

from conformance import traces
from conformance.engine import trace as engine
from conformance.engine.trace import Recorded, Trace, Verdict, needs, validate
from conformance.engine.values import Value, function
from conformance.qualification.projection import MODULE
from conformance.traces import ALL, changed

__all__ = ["check", "damage", "explain", "prepare"]

_TRACE = MODULE.with_name("TraceQualification.tla")
_CONTROL = {"KeyboardInterrupt", "SystemExit", "GeneratorExit"}
_FILES = {"OSError", "FileNotFoundError", "PermissionError"}
_ENDED = "Gone"  # the process of the rank was ended meanwhile
_KEPT = ("phase", "round", "at", "code")
OTHER = {
    "Agreed": "Refused",
    "Refused": "Agreed",
    "Expired": "Agreed",
    "Acquired": "Blocked",
    "Blocked": "Acquired",
    "Same": "Changed",
    "EveryMaster": "OneOwner",
    "OneOwner": "EveryMaster",
    "Success": "Failure",
    "Failure": "Success",
}


def prepare(lines: Sequence[Recorded], *, ordered: bool = True) -> Trace:
    """The lines as one sequence if their order is exact, else as one for each rank."""
    if ordered:
        return {ALL: [_record(line, {}) for line in _told(lines)]}
    trace: dict[str, list[Value]] = defaultdict(list)
    told = _told(lines)
    for line, required in zip(told, needs(told), strict=True):
        trace[line.who].append(_record(line, required))
    return trace


def _told(lines: Sequence[Recorded]) -> list[Recorded]:
    """What happened while there was a job: up to the first Abort, and no step that it cut short."""
    ended = min((line.clock for line in lines if line.action == "Abort"), default=math.inf)
    return [
        line for line in lines if line.clock <= ended and (line.error != _ENDED or line.action == "Abort")
    ]


def _record(line: Recorded, required: Mapping[str, int]) -> Value:
    record: dict[Value, Value] = {"name": line.action, "by": int(line.who.rpartition(" ")[2])}
    record |= {key: line.params[key] for key in _KEPT if key in line.params}
    if line.action == "CloseIdentity":
        record["outcome"] = line.outcome or "Changed"
    elif line.error in _FILES and line.action == "Reacquire" and line.error == "FileNotFoundError":
        record["outcome"] = "Gone"
    elif line.error is not None and line.error != _ENDED:
        kind = "control" if line.error in _CONTROL else "file" if line.error in _FILES else "ordinary"
        record["raised"] = kind
    elif line.outcome is not None:
        record["outcome"] = line.outcome
    if line.error is not None and line.action == "CloseIdentity" and line.error not in _FILES:
        del record["outcome"]
        record["raised"] = "control" if line.error in _CONTROL else "ordinary"
    record["needs"] = function(dict(required.items()))
    return function(record)


def check(
    recordings: Sequence[Sequence[Recorded]],
    hosts: Sequence[str],
    *,
    start_at: int = 0,
    ordered: bool = True,
) -> list[Verdict]:
    """Validate recordings of fleets on ``hosts`` with TLC, all in one run."""
    numbers = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    ranks = frozenset(range(len(hosts)))
    constants: dict[str, Value] = {
        "Ranks": ranks,
        "HostOf": function({rank: numbers[host] for rank, host in enumerate(hosts)}),
        "StartAt": start_at,
        "Present": ranks,
    }
    return validate(_TRACE, [prepare(lines, ordered=ordered) for lines in recordings], constants)


def explain(lines: Sequence[Recorded], verdict: Verdict) -> str:
    """The first lines that no step of the model explains, and where the model has the ranks."""
    return traces.explain(_told(lines), verdict)


def damage(lines: Sequence[Recorded]) -> dict[str, list[Recorded]]:
    """Every systematic damage of a recording."""

    def place(line: Recorded) -> str:
        return f"{line.who} {line.action} {line.params.get('phase', '')} -> {line.outcome or line.error}"

    return engine.damage(lines, place, partial(changed, outcomes=OTHER), engine.of_one_thread)
