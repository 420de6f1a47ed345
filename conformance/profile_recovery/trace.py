"""Recordings of profile recovery, made ready for ``TraceProfileRecovery``.

The harness that makes them adds lines about its own acts (restarts, kills, damage) and the value of each
record. A recording of a service has only the digest of a record, so such recordings are not checked here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from conformance import recording
from conformance.engine import trace as engine
from conformance.engine.trace import Recorded, Trace, Verdict, needs, validate
from conformance.engine.values import Value, function
from conformance.profile_recovery.system import MODULE, Bounds

__all__ = ["check", "damage", "explain", "lines_of"]

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


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A recording as TLC takes it: the lines by thread, under the names c1, c2, ..."""

    trace: Trace
    who: Mapping[str, str]  # c1 -> thread


def _prepare(lines: Sequence[Recorded]) -> _Prepared:
    who = {who: f"c{n}" for n, who in enumerate(dict.fromkeys(line.who for line in lines), 1)}
    trace: dict[str, list[Value]] = {}
    for line, needed in zip(lines, needs(lines), strict=True):
        told: dict[Value, Value] = {key: _plain(value) for key, value in line.params.items()}
        told["name"] = line.action
        told["outcome"] = line.outcome or ""
        told["needs"] = function({who[other]: count for other, count in needed.items()})
        trace.setdefault(who[line.who], []).append(function(told))
    return _Prepared(trace, {number: name for name, number in who.items()})


def _plain(value: object) -> Value:
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    assert isinstance(value, str | int)
    return value


def check(
    recordings: Sequence[Sequence[Recorded]], bounds: Bounds, *, timeout_s: float = 120.0
) -> list[Verdict]:
    """Validate recordings with TLC, all in one run. Records are told by their values."""
    prepared = [_prepare(lines) for lines in recordings]
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
    verdicts = validate(_TRACE, [one.trace for one in prepared], constants, timeout_s=timeout_s)
    return [
        replace(
            verdict,
            at={who: verdict.at[short] for short, who in one.who.items()},
            enabled={who: verdict.enabled[short] for short, who in one.who.items()},
        )
        for one, verdict in zip(prepared, verdicts, strict=True)
    ]


def explain(lines: Sequence[Recorded], verdict: Verdict) -> str:
    """The first lines that no step of the model explains, and where the model has the coordinator then."""
    if verdict.accepted:
        return f"{len(lines)} lines, all explained"
    seen: dict[str, int] = {}
    stuck = []
    for line in lines:
        seen[line.who] = seen.get(line.who, 0) + 1
        if seen[line.who] == verdict.at.get(line.who, 0) + 1:
            went = f" -> {line.outcome}" if line.outcome else ""
            stuck.append(f"  line {line.number}: {line.who} {line.action} {dict(line.params)}{went}")
    where = next(iter(verdict.enabled.values()), "?")
    listed = "\n".join(stuck)
    return f"{verdict.explained} lines are explained; at {where!r}, no step of the model is\n{listed}"


def damage(lines: Sequence[Recorded]) -> dict[str, list[Recorded]]:
    """Every systematic damage of a recording; also another action, artifact, record or number of records."""
    artifacts = sorted({str(line.params["artifact"]) for line in lines if line.params.get("artifact")})
    values = sorted({str(line.params["record"]) for line in lines if "record" in line.params})

    def changes(line: Recorded) -> Mapping[str, Recorded]:
        changed: dict[str, Recorded] = {}
        if line.action in _NEXT:
            changed[f"becomes {_NEXT[line.action]}"] = replace(line, action=_NEXT[line.action])
        if line.outcome in _OTHER:
            other = _OTHER[line.outcome]
            changed[f"goes {other} not {line.outcome}"] = replace(line, outcome=other)
        for member, choices in (("artifact", artifacts), ("record", values)):
            wrong = next((one for one in choices if one != line.params.get(member)), None)
            if member in line.params and wrong is not None:
                changed[f"has another {member}"] = replace(line, params={**line.params, member: wrong})
        if "records" in line.params:
            more = {**line.params, "records": line.params["records"] + 1}
            changed["counts one record more"] = replace(line, params=more)
        return changed

    return engine.damage(lines, lambda line: line.action, changes)
