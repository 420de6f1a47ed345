"""Recordings of one solver's requests and cancellations, made ready for ``TraceCancellation``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from conformance.cancellation.projection import MODULE
from conformance.engine import trace as engine
from conformance.engine.trace import Recorded, Trace, Verdict, validate
from conformance.engine.values import Value, function
from conformance.traces import ALL, changed

__all__ = ["CLOSER", "check", "damage", "generation_of", "prepare", "validated"]

CLOSER = "k"
_TRACE = MODULE.with_name("TraceCancellation.tla")
_REPLIES = {"sat": "sat", "unsat": "sat", "unknown": "sat"}
OTHER = {
    "acquired": "busy",
    "busy": "acquired",
    "left": "busy",
    "cancelled": "warm",
    "warm": "cold",
    "cold": "warm",
    "sent": "cancelled",
    "sat": "failed",
    "unsat": "failed",
    "failed": "sat",
    "answered": "user",
    "user": "answered",
    "deadline": "answered",
    "closed": "answered",
    "told": "nobody",
    "nobody": "told",
}


def prepare(lines: Sequence[Recorded], letters: Mapping[str, str]) -> Trace:
    """The lines in their order, each with who of the model took the step; ``letters`` names the queries.

    The order is exact, so it is one sequence: what a thread did before another one need not be said.
    """
    trace: list[Value] = []
    on: dict[str, str] = {}  # thread -> the attempt it works on, or the closer
    for line in lines:
        attempt = line.params.get("attempt")
        before = on.get(line.who, "") if line.action == "Register" else ""
        if attempt is not None:
            on[line.who] = str(attempt)
        elif line.action == "Close":
            on[line.who] = CLOSER
        elif line.action == "CancelSolver":
            on[line.who] = f"c.{line.who}"
        record: dict[Value, Value] = {
            "name": line.action,
            "by": on.get(line.who, line.who),
            "outcome": _outcome(line),
            "generation": generation_of(line),
            "query": letters.get(str(line.params.get("query", "")), ""),
            "after": before,
            "needs": function({}),
        }
        trace.append(function({key: value for key, value in record.items() if value not in ("", 0)}))
    return {ALL: trace}


def _outcome(line: Recorded) -> str:
    if line.action == "Register":
        return "refused" if line.error == "ClosedError" else line.error or "registered"
    if line.action == "Spawn":
        return "" if line.error is None else "failed"
    if line.error is not None:
        return f"raised {line.error}"
    if line.action == "Answer":
        return _REPLIES.get(line.outcome or "", line.outcome or "")
    return line.outcome or ""


def generation_of(line: Recorded) -> int:
    """The number of the helper that a step is about, 0 for none."""
    if line.action == "Spawn" and line.outcome:
        return int(line.outcome.removeprefix("generation "))
    number = line.params.get("generation", 0)
    assert isinstance(number, int)
    return number


def _renamed(lines: Sequence[Recorded], letters: Mapping[str, str]) -> list[Recorded]:
    """The attempts named by their query and a number."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    found = []
    for line in lines:
        if "attempt" in line.params:
            attempt, letter = str(line.params["attempt"]), letters[str(line.params["query"])]
            if attempt not in names:
                counts[letter] += 1
                names[attempt] = f"{letter}.{counts[letter]}"
            line = replace(line, params={**line.params, "attempt": names[attempt]})
        found.append(line)
    return found


def check(recordings: Sequence[Sequence[Recorded]]) -> list[Verdict]:
    """Validate recordings with TLC, all in one run."""
    ids = sorted(
        {str(line.params["query"]) for lines in recordings for line in lines if "query" in line.params}
    )
    letters = {query: f"q{number}" for number, query in enumerate(ids, 1)}
    # TLC's states are as wide as there are names, so all recordings share theirs.
    shared = [_renamed(lines, letters) for lines in recordings]
    every = [line for lines in shared for line in lines]
    asked = [line for line in every if "attempt" in line.params]
    requests = {str(line.params["attempt"]): letters[str(line.params["query"])] for line in asked}
    # Only who ends for its deadline, or is not told why it left, may have been late.
    limited = {str(line.params["attempt"]) for line in asked if line.outcome in ("deadline", "left")}
    threads = {line.who for line in every}
    cancellers = {f"c.{who}" for who in threads}
    return validated(
        [prepare(lines, letters) for lines in shared], requests, {*letters.values()}, cancellers, (), limited
    )


def validated(
    traces: Sequence[Trace],
    requests: Mapping[str, str],
    queries: Collection[str],
    cancellers: Collection[str],
    racing: Collection[str],
    limited: Collection[str],
) -> list[Verdict]:
    """Validate traces of ``requests`` (name -> query) with TLC, all in one run."""
    constants: dict[str, Value] = {
        "Requests": frozenset(requests),
        "Queries": frozenset(queries),
        "QueryOf": function({**requests}),
        "Racing": frozenset(racing),
        "Limited": frozenset(limited),
        "Cancellers": frozenset(cancellers),
        "Closer": CLOSER,
        "Nobody": "nobody",
    }
    return validate(_TRACE, traces, constants, timeout_s=600.0)


def damage(lines: Sequence[Recorded]) -> dict[str, list[Recorded]]:
    """Every systematic damage of a recording."""

    def place(line: Recorded) -> str:
        return f"{line.action} -> {line.outcome}"

    return engine.damage(lines, place, partial(changed, outcomes=OTHER), engine.of_one_thread)
