"""Recordings of spool admission, made ready for ``TraceSpoolAdmission``.

A recording does not say what producers did. What a line needs of them is read from the lines behind it: the
content with which a file is opened is what its ``Verify`` found, and a file is published at the latest when
it is first listed by a pass that opens it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from conformance.engine.trace import Recorded, Trace, TraceError, Verdict, needs, read, validate
from conformance.engine.values import Value, function
from conformance.spool import MODULE

__all__ = ["SCHEMA", "check", "damage", "explain", "lines_of", "prepare"]

SCHEMA = "smtspool-trace-v1"
ACTIONS = {"TryLock", "List", "Open", "Verify", "Commit", "WriteSidecar", "Move", "Release", "Start", "Crash"}
NEXT = {
    "TryLock": "List",
    "List": "Open",
    "Open": "Verify",
    "Verify": "Commit",
    "Commit": "Move",
    "WriteSidecar": "Move",
    "Move": "WriteSidecar",
    "Release": "List",
}
OTHER = {"Acquire": "Busy", "Busy": "Acquire", "good": "bad", "bad": "good", "moved": "replaced"}
_TRACE = MODULE.with_name("TraceSpoolAdmission.tla")


def lines_of(text: str) -> list[Recorded]:
    """The lines of the protocol in a recording; other actions of the service are other models' business."""
    lines = [line for line in read(text, schema=SCHEMA) if line.action in ACTIONS]
    if not lines:
        raise TraceError("the recording has no step of spool admission")
    return lines


def prepare(lines: Sequence[Recorded]) -> Trace:
    """The lines by process, each with what it needs: other lines, files, contents."""
    verdicts = _verdicts(lines)
    news = _news(lines, verdicts)
    trace: dict[str, list[Value]] = {}
    for index, (line, needed) in enumerate(zip(lines, needs(lines), strict=True)):
        outcome = line.outcome or ""
        if line.error is not None and line.action in ("Commit", "Move"):
            outcome = "failed"
        elif line.error is not None:
            outcome = f"raised {line.error}"
        record: dict[Value, Value] = {
            "name": line.action,
            "outcome": outcome,
            "file": str(line.params.get("file", "")),
            "files": tuple(str(name) for name in line.params.get("files", ())),
            "content": verdicts.get(index, "any"),
            "news": frozenset(function({"file": f, "content": k}) for f, k in news.get(index, {}).items()),
            "needs": function(needed),
        }
        trace.setdefault(line.who, []).append(function(record))
    return trace


def _verdicts(lines: Sequence[Recorded]) -> dict[int, str]:
    """For each Open: what the Verify behind it found, "any" where nobody can tell."""
    opened: dict[str, int] = {}
    found: dict[int, str] = {}
    for index, line in enumerate(lines):
        if line.action == "Open":
            opened[line.who] = index
        elif line.action == "Verify" and line.who in opened:
            found[opened.pop(line.who)] = {"good": "g", "bad": "bad"}.get(line.outcome or "", "any")
    return found


def _news(lines: Sequence[Recorded], verdicts: Mapping[int, str]) -> dict[int, dict[str, str]]:
    """For each List: the files that the pass is the first to open, with their contents."""
    listed: dict[str, int] = {}
    known: set[str] = set()
    found: dict[int, dict[str, str]] = {}
    for index, line in enumerate(lines):
        if line.action == "List":
            listed[line.who] = index
        elif line.action == "Open" and "file" in line.params and line.who in listed:
            file = str(line.params["file"])
            if file in known:
                continue
            known.add(file)
            content = verdicts.get(index, "any")
            found.setdefault(listed[line.who], {})[file] = "g" if content == "any" else content
    return found


def check(recordings: Sequence[Sequence[Recorded]], *, batch: int) -> list[Verdict]:
    """Validate recordings with TLC, all in one run. ``batch`` is the service's batch size."""
    files = sorted(
        {str(line.params["file"]) for lines in recordings for line in lines if "file" in line.params}
    )
    constants: dict[str, Value] = {
        "Names": tuple(files),
        "Good": frozenset({"g"}),
        "Bad": frozenset({"bad"}),
        "Torn": "torn",
        "Nothing": "nothing",
        "Nobody": "nobody",
        "BatchLimit": batch,
    }
    # TLC's states are as wide as there are names, so each recording numbers its processes from one.
    names = [
        {who: f"c{n}" for n, who in enumerate(dict.fromkeys(line.who for line in r), 1)} for r in recordings
    ]
    traces = [
        prepare([replace(line, who=known[line.who]) for line in r])
        for r, known in zip(recordings, names, strict=True)
    ]
    return [
        replace(
            verdict,
            at={who: verdict.at[short] for who, short in known.items()},
            standing={who: verdict.standing[short] for who, short in known.items()},
        )
        for verdict, known in zip(validate(_TRACE, traces, constants), names, strict=True)
    ]


def explain(lines: Sequence[Recorded], verdict: Verdict) -> str:
    """The first lines that no step of the model explains, and what it would allow instead."""
    if verdict.accepted:
        return f"{verdict.lines} lines, all explained"
    seen: dict[str, int] = {}
    stuck = []
    for line in lines:
        seen[line.who] = seen.get(line.who, 0) + 1
        if seen[line.who] == verdict.at.get(line.who, 0) + 1:
            went = f" -> {line.error or line.outcome}" if line.error or line.outcome else ""
            stuck.append(
                f"  line {line.number}: {line.who} {line.action} {dict(line.params)}{went}; "
                f"the model has it at {verdict.standing.get(line.who)!r}"
            )
    return (
        f"{verdict.explained} of {verdict.lines} lines are explained, none of these is next:\n"
        + "\n".join(stuck)
    )


def damage(lines: Sequence[Recorded]) -> dict[str, list[Recorded]]:
    """Every systematic damage of a recording: each line dropped, doubled, swapped with the next, or with
    another action, outcome, file or process."""
    others = sorted({line.who for line in lines})
    files = sorted({str(line.params["file"]) for line in lines if "file" in line.params})
    found: dict[str, list[Recorded]] = {}
    for index, line in enumerate(lines):
        before, after = list(lines[:index]), list(lines[index + 1 :])
        at = f"line {line.number} ({line.action})"
        found[f"{at} dropped"] = [*before, *after]
        found[f"{at} doubled"] = [*before, line, line, *after]
        if after:
            following = after[0]
            swapped = [replace(following, clock=line.clock), replace(line, clock=following.clock)]
            found[f"{at} swapped with {following.action}"] = [*before, *swapped, *after[1:]]
        if line.action in NEXT:
            found[f"{at} becomes {NEXT[line.action]}"] = [
                *before,
                replace(line, action=NEXT[line.action]),
                *after,
            ]
        if line.outcome in OTHER:
            went = OTHER[line.outcome]
            found[f"{at} goes {went} not {line.outcome}"] = [*before, replace(line, outcome=went), *after]
        if "file" in line.params and len(files) > 1:
            wrong = next(name for name in files if name != line.params["file"])
            changed = replace(line, params={**line.params, "file": wrong})
            found[f"{at} is about {wrong}"] = [*before, changed, *after]
        if len(others) > 1 and line.action not in ("Start", "Crash"):
            wrong = next(name for name in others if name != line.who)
            found[f"{at} is of {wrong}"] = [*before, replace(line, who=wrong), *after]
    return found


def main(path: Path, batch: int) -> tuple[bool, str]:
    """Check one recording file."""
    lines = lines_of(path.read_text())
    verdict = check([lines], batch=batch)[0]
    return verdict.accepted, explain(lines, verdict)
