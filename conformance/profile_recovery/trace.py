"""Recordings of profile recovery, made ready for ``TraceProfileRecovery``.

The harness that makes them adds lines about its own acts (restarts, kills, damage) and the value of each
record. A recording of a service has only the digest of a record, so such recordings are not checked here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from conformance import recording
from conformance.engine import trace as engine
from conformance.engine.trace import Recorded, Trace, Verdict, needs, validate
from conformance.engine.values import Value, function
from conformance.profile_recovery.system import MODULE, Bounds
from conformance.traces import changed, in_full, short_names

__all__ = ["check", "damage", "lines_of"]

_TRACE = MODULE.with_name("TraceProfileRecovery.tla")
RECOVERY = ("LoadState", "VerifyRuntime", "Replay")
PUBLISHING = ("Build", "WriteArtifact", "WriteRuntime", "WriteState", "Switch")
ENVIRONMENT = ("Restart", "Crash", "Drift", "Truncate", "Corrupt", "Remove", "ChangePolicy")
ACTIONS = frozenset({"Observe", "Serve", *RECOVERY, *PUBLISHING, *ENVIRONMENT})
_OTHER = {
    "loaded": "damaged", "damaged": "loaded", "verified": "refused", "refused": "verified",
    "equal": "different", "different": "equal", "same": "new", "new": "same", "nothing": "served",
    "served": "nothing", "written": "failed", "failed": "written",
}  # fmt: skip
_NEXT = {"WriteArtifact": "WriteRuntime", "WriteRuntime": "WriteState", "WriteState": "Switch"}


def lines_of(text: str) -> list[Recorded]:
    """The lines of the protocol in a recording."""
    return recording.lines_of(text, {"profile_recovery"}, ACTIONS)


def _prepare(lines: Sequence[Recorded], who: Mapping[str, str]) -> Trace:
    """The lines by thread, under the names c1, c2, ..."""
    trace: dict[str, list[Value]] = {}
    for line, needed in zip(lines, needs(lines), strict=True):
        told: dict[Value, Value] = {key: _plain(value) for key, value in line.params.items()}
        told["name"] = line.action
        told["outcome"] = line.outcome or ""
        told["needs"] = function({who[other]: count for other, count in needed.items()})
        trace.setdefault(who[line.who], []).append(function(told))
    return trace


def _plain(value: object) -> Value:
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    assert isinstance(value, str | int)
    return value


def check(recordings: Sequence[Sequence[Recorded]], bounds: Bounds) -> list[Verdict]:
    """Validate recordings with TLC, all in one run. Records are told by their values."""
    names = [short_names(lines) for lines in recordings]
    prepared = [_prepare(lines, who) for lines, who in zip(recordings, names, strict=True)]
    limits = bounds.thresholds()
    constants: dict[str, Value] = {
        "Values": frozenset(bounds.values),
        "Window": bounds.window,
        "Policies": frozenset(limits),
        "Least": function({name: limit.least for name, limit in limits.items()}),
        "Widest": function({name: limit.widest for name, limit in limits.items()}),
        "Counted": frozenset(),
        "Most": 1,
        "Nobodys": "nobody",
    }
    verdicts = validate(_TRACE, prepared, constants)
    return [in_full(verdict, who) for verdict, who in zip(verdicts, names, strict=True)]


def damage(lines: Sequence[Recorded]) -> dict[str, list[Recorded]]:
    """Every systematic damage of a recording; also another action, artifact, record or number of records."""
    artifacts = sorted({str(line.params["artifact"]) for line in lines if line.params.get("artifact")})
    values = sorted({str(line.params["record"]) for line in lines if "record" in line.params})

    def changes(line: Recorded) -> Mapping[str, Recorded]:
        found = changed(line, _OTHER, _NEXT)
        for member, choices in (("artifact", artifacts), ("record", values)):
            wrong = next((one for one in choices if one != line.params.get(member)), None)
            if member in line.params and wrong is not None:
                found[f"has another {member}"] = replace(line, params={**line.params, member: wrong})
        if "records" in line.params:
            more = {**line.params, "records": line.params["records"] + 1}
            found["counts one record more"] = replace(line, params=more)
        return found

    return engine.damage(lines, lambda line: line.action, changes)
