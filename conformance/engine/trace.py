"""Recorded runs as behaviours of a model.

A recording is NDJSON: a first line that names its schema, then one line a step with ``sequence``, ``pid``,
``thread``, ``clock``, ``action``, ``params``, ``outcome`` and, after a failure, ``error``. Lines are written
when a step has ended, by every process into one file. A line may say its ``protocol``, where several are
recorded together. So a step lies between the line before it of the same
thread and its own line, and two steps are ordered exactly where these spans do not overlap; TLC looks for
one order that explains everything. An empty, cut, foreign or non-advancing recording is an error, never a
pass.
"""

from __future__ import annotations

import json
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .tlc import Outcome, Tlc
from .values import Function, Value, function, parse, show

__all__ = [
    "TRACES",
    "Recorded",
    "Trace",
    "TraceError",
    "Verdict",
    "damage",
    "needs",
    "of_one_thread",
    "read",
    "validate",
]

TRACES = 200  # in one run: TLC keeps the text, the tree and the value of all
_MEMBERS = {"sequence", "pid", "thread", "clock", "action", "params", "outcome"}


class TraceError(ValueError):
    """The recording itself is damaged; the message names the line."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One line. ``who`` is the process and thread that took the step."""

    number: int
    who: str
    sequence: int
    clock: float
    action: str
    params: Mapping[str, Any]
    outcome: str | None
    error: str | None
    begun: float | None = None  # when the recorder knows; else the line before of the same process
    protocol: str = ""  # when the recorder says


def read(text: str, *, schema: str) -> list[Recorded]:
    """The lines of a recording. Raises :class:`TraceError` unless it is whole and goes on."""
    if not text:
        raise TraceError("the recording is empty")
    if not text.endswith("\n"):
        raise TraceError(f"line {text.count(chr(10)) + 1} is cut")
    head, *lines = text.splitlines()
    if _document(1, head) != {"schema": schema}:
        raise TraceError(f"line 1: not a recording of {schema}")
    found = [_line(number, line) for number, line in enumerate(lines, 2)]
    if not found:
        raise TraceError("the recording has no step")
    last: dict[str, Recorded] = {}
    for line in found:
        before = last.get(line.who)
        if before is not None and (line.clock < before.clock or line.sequence <= before.sequence):
            raise TraceError(f"line {line.number}: does not go on from line {before.number} of {line.who}")
        last[line.who] = line
    return found


def _document(number: int, line: str) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except ValueError as error:
        raise TraceError(f"line {number}: {error}") from None
    if not isinstance(document, dict):
        raise TraceError(f"line {number}: not an object")
    return document


def _line(number: int, text: str) -> Recorded:
    document = _document(number, text)
    if lacking := _MEMBERS - set(document):
        raise TraceError(f"line {number}: lacks {sorted(lacking)}")
    pid, sequence, clock = document["pid"], document["sequence"], document["clock"]
    if type(pid) is not int or type(sequence) is not int or type(clock) not in (int, float):
        raise TraceError(f"line {number}: pid, sequence and clock are numbers")
    if type(document["action"]) is not str or type(document["params"]) is not dict:
        raise TraceError(f"line {number}: action and params are a name and an object")
    return Recorded(
        number,
        f"{pid}/{document['thread']}",
        sequence,
        float(clock),
        document["action"],
        document["params"],
        document["outcome"],
        document.get("error"),
        protocol=str(document.get("protocol", "")),
    )


def needs(lines: Sequence[Recorded]) -> list[Mapping[str, int]]:
    """For each line: of whom how many lines come before it, because they ended before it can have begun."""
    clocks: dict[str, list[float]] = {}
    for line in lines:
        clocks.setdefault(line.who, []).append(line.clock)
    began: dict[str, float] = {}
    required: list[Mapping[str, int]] = []
    for line in lines:
        # A process begins with its first line.
        begin = line.begun if line.begun is not None else began.get(line.who, line.clock)
        began[line.who] = line.clock
        counts = {who: bisect_left(others, begin) for who, others in clocks.items() if who != line.who}
        required.append({who: count for who, count in counts.items() if count})
    return required


@dataclass(frozen=True, slots=True)
class Verdict:
    """How far one trace was explained: ``at`` says how many lines of each process, ``enabled`` what the
    model would explain next of each."""

    lines: int
    explained: int
    at: Mapping[str, int]
    enabled: Mapping[str, Value]

    @property
    def accepted(self) -> bool:
        """True when every line is a step of the model."""
        return self.explained == self.lines > 0


Trace = Mapping[str, Sequence[Value]]


def validate(
    module: Path, traces: Sequence[Trace], constants: Mapping[str, Value], *, timeout_s: float = 120.0
) -> list[Verdict]:
    """Check all ``traces`` (who -> lines), so many in each run of TLC as its memory holds.

    ``module`` defines ``TraceSpec`` and ``Told``, which prints <<"explained", trace, lines, at, enabled>>
    whenever more of a trace is explained. ``timeout_s`` is for each run.
    """
    parts = [traces[first : first + TRACES] for first in range(0, len(traces), TRACES)]
    return [verdict for part in parts for verdict in _validate(module, part, constants, timeout_s)]


def _validate(
    module: Path, traces: Sequence[Trace], constants: Mapping[str, Value], timeout_s: float
) -> list[Verdict]:
    everybody = sorted({who for trace in traces for who in trace})
    data: Value = tuple(function({who: tuple(trace.get(who, ())) for who in everybody}) for trace in traces)
    with tempfile.TemporaryDirectory(prefix="trace-") as scratch:
        run = Path(scratch) / "TraceRun.tla"
        given = {name: show(value) for name, value in constants.items()}
        definitions = [f"Given_{name} == {text}" for name, text in given.items()]
        run.write_text(
            "\n".join(
                [
                    "---- MODULE TraceRun ----",
                    f"EXTENDS {module.stem}",
                    *definitions,
                    # SANY takes time that grows with the square of the length of a line.
                    f"Given_Traces == {show(data)}".replace("], [", "],\n["),
                    f"Given_Consumers == {show(frozenset(everybody))}",
                    "====",
                    "",
                ]
            )
        )
        cfg = Path(scratch) / "TraceRun.cfg"
        names = [*given, "Traces", "Consumers"]
        overrides = "\n".join(f"CONSTANT {name} <- Given_{name}" for name in names)
        cfg.write_text(f"SPECIFICATION TraceSpec\nINVARIANT Told\n{overrides}\n")
        result = Tlc().run(run, cfg, libraries=[module.parent], timeout_s=timeout_s)
    if result.outcome is not Outcome.OK:
        raise TraceError(f"TLC: {result.outcome} {result.violated}")
    far: dict[int, Verdict] = {}
    lengths = [sum(map(len, trace.values())) for trace in traces]
    for line in result.printed:
        if line.startswith('"<<'):
            text = parse(line)
            assert isinstance(text, str)
            value = parse(text)
            assert isinstance(value, tuple)
            _, index, count, at, enabled = value
            assert isinstance(index, int) and isinstance(count, int)
            far[index] = Verdict(lengths[index - 1], count, _names(at), _names(enabled))
    return [far[index] for index in range(1, len(traces) + 1)]


def _names(value: Value) -> Mapping[str, Any]:
    assert isinstance(value, Function)
    return {str(key): image for key, image in value.items()}


def damage(
    lines: Sequence[Recorded],
    place: Callable[[Recorded], str],
    changes: Callable[[Recorded], Mapping[str, Recorded]],
    swapped: Callable[[Recorded, Recorded], Sequence[Recorded]] = lambda line, after: (after, line),
) -> dict[str, list[Recorded]]:
    """Every systematic damage of a recording, by its name: each line dropped, doubled, ``swapped`` with the
    next, or changed in one of the ways that a protocol knows."""
    found: dict[str, list[Recorded]] = {}
    for index, line in enumerate(lines):
        before, after = list(lines[:index]), list(lines[index + 1 :])
        at = f"line {line.number} ({place(line)})"
        found[f"{at} dropped"] = [*before, *after]
        found[f"{at} doubled"] = [*before, line, line, *after]
        if after and (pair := swapped(line, after[0])):
            found[f"{at} swapped with {after[0].action}"] = [*before, *pair, *after[1:]]
        found |= {f"{at} {how}": [*before, one, *after] for how, one in changes(line).items()}
    return found


def of_one_thread(line: Recorded, after: Recorded) -> Sequence[Recorded]:
    """Lines swapped whose order the recording says; nothing for those of two threads."""
    return (after, line) if after.who == line.who else ()
