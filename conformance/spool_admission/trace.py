"""Recordings of spool admission, made ready for ``TraceSpoolAdmission``.

A recording has no steps of producers. They are inferred from later lines: the content of an opened file is
what its ``Verify`` found, and a file is published at the latest when it is first listed by a pass that opens
it. A name that is opened again after it was settled is another file.

A recording of the service does not tell the size of a batch, which process was killed, or when a process
began;
:func:`check_recorded` leaves these open. It must have all consumers of one spool since the host was started.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from conformance import recording
from conformance.engine import trace as engine
from conformance.engine.trace import Recorded, Trace, Verdict, needs, validate
from conformance.engine.values import Value, function
from conformance.recording import Checked
from conformance.spool_admission.projection import MODULE
from conformance.traces import changed, explain, in_full, short_names

__all__ = ["check", "check_recorded", "damage", "lines_of", "prepare"]

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
SETTLED = {("Move", "moved"), ("Move", "gone"), ("Open", "gone")}
_TRACE = MODULE.with_name("TraceSpoolAdmission.tla")


def lines_of(text: str) -> list[Recorded]:
    """The lines of the protocol in a recording."""
    return recording.lines_of(text, {"spool_admission"}, ACTIONS)


def unbound(lines: Sequence[Recorded]) -> list[Recorded]:
    """The recording of a service: any process may have begun long before its first line, and may have been
    killed at any time after its last."""
    first: set[str] = set()
    opened = []
    for line in lines:
        opened.append(line if line.who in first else replace(line, begun=-math.inf))
        first.add(line.who)
    last = {line.who: line for line in lines}
    return opened + [
        Recorded(0, line.who, line.sequence + 1, math.inf, "Crash", {}, None, None) for line in last.values()
    ]


File = tuple[str, int]  # a name, and how many files of that name were settled before


def _files(lines: Sequence[Recorded]) -> list[File | None]:
    """The file of each line."""
    times: dict[str, int] = {}
    settled: set[str] = set()
    found: list[File | None] = []
    for line in lines:
        if "file" not in line.params:
            found.append(None)
            continue
        name = str(line.params["file"])
        if line.action == "Open" and name in settled:
            settled.remove(name)
            times[name] = times.get(name, 0) + 1
        if (line.action, line.outcome) in SETTLED:
            settled.add(name)
        found.append((name, times.get(name, 0)))
    return found


@dataclass(frozen=True, slots=True)
class Prepared:
    """A recording as TLC takes it: the lines by process, under the names c1, c2, ... and f1, f2, ..."""

    trace: Trace
    who: Mapping[str, str]  # process -> c1
    names: Mapping[str, str]  # f1 -> name of the file


def prepare(lines: Sequence[Recorded], *, early: bool) -> Prepared:
    """The lines by process, each with what it needs: other lines, files, contents. ``early`` if nobody knows
    what ended a pass."""
    who = short_names(lines)
    files = _files(lines)
    short = {file: f"f{n}" for n, file in enumerate(sorted({f for f in files if f is not None}), 1)}
    now = {name: short[name, 0] for name, times in short if times == 0}
    verdicts = _verdicts(lines)
    absent = _absent(lines, files, early)
    news = _news(lines, files, verdicts, absent)
    trace: dict[str, list[Value]] = {}
    begins: set[str] = set()
    for index, (line, file, needed) in enumerate(zip(lines, files, needs(lines), strict=True)):
        if file is not None:
            now[file[0]] = short[file]
        record: dict[Value, Value] = {
            "name": line.action,
            "outcome": _outcome(line),
            "file": "" if file is None else short[file],
            "files": tuple(now.get(str(name), "unknown") for name in line.params.get("files", ())),
            "content": verdicts.get(index, "any"),
            "begins": line.who in begins,
            "news": frozenset(
                function({"file": short[f], "content": k}) for f, k in news.get(index, {}).items()
            ),
            "absent": frozenset(short[f] for f in absent.get(index, ())),
            "needs": function({who[other]: count for other, count in needed.items()}),
        }
        (begins.add if line.action == "List" else begins.discard)(line.who)
        trace.setdefault(who[line.who], []).append(function(record))
    return Prepared(trace, who, {number: name for (name, _), number in short.items()})


def _outcome(line: Recorded) -> str:
    if line.error is not None and line.outcome is None:
        return "failed"
    return line.outcome or ""


def _verdicts(lines: Sequence[Recorded]) -> dict[int, str]:
    """For each Open the result of the Verify after it, "any" if that is not known."""
    opened: dict[str, int] = {}
    found: dict[int, str] = {}
    for index, line in enumerate(lines):
        if line.action == "Open":
            opened[line.who] = index
        elif line.action == "Verify" and line.who in opened:
            found[opened.pop(line.who)] = {"good": "g", "bad": "bad"}.get(line.outcome or "", "any")
    return found


@dataclass(slots=True)
class _Pass:
    """What was seen of one pass: its List, the files that waited then, what it opened, how it ended."""

    index: int
    waiting: frozenset[File]
    opened: list[File] = field(default_factory=list)
    clean: bool = False

    def went_past(self, name: str, *, early: bool) -> bool:
        """True if the pass would have opened a file of that name, so that there was none."""
        names = [opened for opened, _ in self.opened]
        if not early:
            return self.clean or any(name < other for other in names)
        # It may have begun behind the name, and may have ended ahead of it; it may also come round.
        return any(
            before < name < after if before < after else name > before or name < after
            for before, after in pairwise(names)
        )


def _absent(
    lines: Sequence[Recorded], files: Sequence[File | None], early: bool
) -> dict[int, frozenset[File]]:
    """For each List: the files that were opened before and not settled, and that the pass goes past."""
    waiting: set[File] = set()
    passes: list[_Pass] = []
    current: dict[str, _Pass] = {}
    for index, (line, file) in enumerate(zip(lines, files, strict=True)):
        if line.action == "List":
            current[line.who] = _Pass(index, frozenset(waiting))
            passes.append(current[line.who])
        elif line.action in ("Release", "Start", "Crash") and line.who in current:
            current.pop(line.who).clean = line.action == "Release" and not _outcome(line)
        elif file is not None and line.action == "Open":
            waiting.add(file)
            if line.who in current:
                current[line.who].opened.append(file)
        if file is not None and (line.action, line.outcome) in SETTLED:
            waiting.discard(file)
    return {
        one.index: frozenset(
            f for f in one.waiting if f not in one.opened and one.went_past(f[0], early=early)
        )
        for one in passes
    }


def _news(
    lines: Sequence[Recorded],
    files: Sequence[File | None],
    verdicts: Mapping[int, str],
    absent: Mapping[int, frozenset[File]],
) -> dict[int, dict[File, str]]:
    """For each List: the files that the pass is the first to open, with their contents; also the first since
    they were absent."""
    listed: dict[str, int] = {}
    known: set[File] = set()
    found: dict[int, dict[File, str]] = {}
    for index, (line, file) in enumerate(zip(lines, files, strict=True)):
        if line.action == "List":
            listed[line.who] = index
            known -= absent.get(index, frozenset())
        elif line.action == "Open" and file is not None and file not in known and line.who in listed:
            known.add(file)
            content = verdicts.get(index, "any")
            found.setdefault(listed[line.who], {})[file] = "g" if content == "any" else content
    return found


def check(
    recordings: Sequence[Sequence[Recorded]], *, batch: int | None, timeout_s: float = 120.0
) -> list[Verdict]:
    """Validate recordings with TLC, all in one run. ``batch`` is the number of files in a full batch; None
    where nobody knows what ended a batch, or a pass."""
    prepared = [prepare(lines, early=batch is None) for lines in recordings]
    most = max(len(one.names) for one in prepared)
    constants: dict[str, Value] = {
        "Names": tuple(f"f{number}" for number in range(1, most + 1)),
        "Good": frozenset({"g"}),
        "Bad": frozenset({"bad"}),
        "Torn": "torn",
        "Nothing": "nothing",
        "Nobody": "nobody",
        "BatchLimit": batch or most + 1,
        "Early": batch is None,
    }
    verdicts = validate(_TRACE, [one.trace for one in prepared], constants, timeout_s=timeout_s)
    return [_in_full(one, verdict) for one, verdict in zip(prepared, verdicts, strict=True)]


def _in_full(prepared: Prepared, verdict: Verdict) -> Verdict:
    """The verdict with the names of the recording."""

    def told(steps: Value) -> Value:
        assert isinstance(steps, frozenset)
        texts = [[str(part) for part in step] for step in steps if isinstance(step, tuple)]
        return " or ".join(sorted(f"{name} {prepared.names.get(f, f)}".strip() for name, f in texts))

    return in_full(verdict, prepared.who, told)


def check_recorded(lines: Sequence[Recorded]) -> Checked:
    """Check the lines of ``smtspool serve --trace``."""
    whole = unbound(lines)
    (verdict,) = check([whole], batch=None, timeout_s=600.0)
    return Checked(verdict.accepted, explain(whole, verdict))


def damage(lines: Sequence[Recorded]) -> dict[str, list[Recorded]]:
    """Every systematic damage of a recording; also another action, file or process."""
    others = sorted({line.who for line in lines})
    files = sorted({str(line.params["file"]) for line in lines if "file" in line.params})

    def swapped(line: Recorded, after: Recorded) -> Sequence[Recorded]:
        return replace(after, clock=line.clock), replace(line, clock=after.clock)

    def changes(line: Recorded) -> Mapping[str, Recorded]:
        found = changed(line, OTHER, NEXT)
        if "file" in line.params and len(files) > 1:
            wrong = next(name for name in files if name != line.params["file"])
            found[f"is about {wrong}"] = replace(line, params={**line.params, "file": wrong})
        if len(others) > 1 and line.action not in ("Start", "Crash"):
            wrong = next(name for name in others if name != line.who)
            found[f"is of {wrong}"] = replace(line, who=wrong)
        return found

    return engine.damage(lines, lambda line: line.action, changes, swapped)
