"""Long recordings of solving, cut into windows that ``TraceCancellation`` checks one by one.

A recording of ``serve --trace`` has the steps of many solvers, in their exact order for each process. It is a
behaviour of the model if each of its windows is:

* Solvers share no state of the model, so the steps of each are a recording of its own.
* While no request is registered in a solver, and no thread is about to kill or retire a helper, its state is
only the generation that the next request would find. A window begins at each such point.
* Windows that differ only in names are checked once.

The switch of a race is set outside of any solver. A request that registers after its ``CallOff`` is told at
once; the recording names it, and in the model it is a request whose race was called off from the start.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conformance import recording
from conformance.cancellation.trace import CLOSER, generation_of, validated
from conformance.engine.trace import TRACES, Recorded, TraceError, Verdict
from conformance.engine.values import Function, Value, function
from conformance.traces import ALL

__all__ = ["ACTIONS", "SOLVING", "Checked", "Window", "check", "check_recorded", "windows"]

ACTIONS = frozenset({
    "Register", "AcquireIO", "Admit", "Spawn", "Exchange", "Answer", "Settle", "Retire", "Unregister",
    "CancelSolver", "Signal", "Close",
})  # fmt: skip
# Solvers, and the races whose switches they see.
SOLVING = frozenset({"cancellation", "race"})
SPARE = "spare"
_REPLIES = frozenset({"sat", "unsat", "unknown"})
Steps = tuple[Function, ...]


@dataclass(slots=True)
class _Attempt:
    """What the recording tells of one request."""

    name: str = ""
    called_off: bool = False  # its race was over before it registered
    cause: str | None = None  # what set its event first: "user", "closed" or "deadline"
    told: str | None = None  # the reason it was told then
    late: bool = False
    unfit: bool = False  # its generation was not kept, although it had answered


@dataclass(frozen=True, slots=True)
class Window:
    """One solver's steps from one quiet point to the next. ``found`` is the generation it had at first, 0 if
    none."""

    solver: str
    lines: tuple[Recorded, ...]
    found: int
    called_off: frozenset[str] = field(default_factory=frozenset)  # attempts


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of a recording: lines, windows, windows that differ in more than names, and the first line
    that no step of the model explains."""

    lines: int
    windows: int
    kinds: int
    fault: str | None

    @property
    def accepted(self) -> bool:
        """True when every line is a step of the model."""
        return self.fault is None

    @property
    def text(self) -> str:
        """One sentence."""
        explained = f"{self.windows} windows of {self.kinds} kinds, all explained"
        return (
            f"solving: {self.lines} lines in {explained}" if self.fault is None else f"solving: {self.fault}"
        )


# --- cutting ---------------------------------------------------------------------------------------------


def windows(lines: Iterable[Recorded]) -> Iterator[Window]:
    """The windows of all solvers of a recording."""
    by_solver: dict[str, list[Recorded]] = defaultdict(list)
    called_off: dict[str, str] = {}  # race -> the thread that called it off
    too_late: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        pid, _, thread = line.who.partition("/")
        if line.protocol == "race" and line.action == "CallOff":
            called_off[f"{pid}/{line.params['race']}"] = thread
        elif line.protocol == "cancellation" and line.action in ACTIONS:
            solver = f"{pid}/{line.params['solver']}"
            by_solver[solver].append(line)
            if line.action == "Register":
                race = str(line.params["attempt"]).partition("/")[0].rpartition(".")[0]
                # The race's own thread asks for a second opinion, which its switch does not end.
                if called_off.get(f"{pid}/{race}", thread) != thread:
                    too_late[solver].add(str(line.params["attempt"]))
    for solver, steps in by_solver.items():
        yield from _cut(solver, steps, frozenset(too_late[solver]))


def _cut(solver: str, lines: Sequence[Recorded], called_off: frozenset[str]) -> Iterator[Window]:
    busy = _busy(lines)
    begin, found, held = 0, 0, 0
    registered: set[str] = set()
    for index, line in enumerate(lines):
        attempt = str(line.params.get("attempt", ""))
        if line.action == "Register" and line.error is None:
            registered.add(attempt)
        elif line.action == "Unregister":
            registered.discard(attempt)
        elif line.action == "Spawn" and line.error is None:
            held = generation_of(line)
        elif line.action == "Retire" and generation_of(line) == held:
            held = 0
        if not registered and index not in busy:
            yield Window(solver, tuple(lines[begin : index + 1]), found, called_off)
            begin, found = index + 1, held
    if begin < len(lines):
        yield Window(solver, tuple(lines[begin:]), found, called_off)


def _busy(lines: Sequence[Recorded]) -> set[int]:
    """Behind which lines somebody has a helper in hand: a canceller or closer until its Signal, and a closer
    until its Retire."""
    found: set[int] = set()
    origin: dict[str, int] = {}
    for index, line in enumerate(lines):
        if line.action in ("CancelSolver", "Close"):
            origin[line.who] = index
        elif line.action == "Register":
            origin.pop(line.who, None)
        elif line.action in ("Signal", "Retire") and line.who in origin:
            found |= set(range(origin[line.who], index))
    return found


# --- naming ----------------------------------------------------------------------------------------------


def _told(window: Window) -> dict[str, _Attempt]:
    """What the window tells of its attempts, and their names in the model."""
    found: dict[str, _Attempt] = {}
    asks: dict[str, str] = {}  # attempt -> query
    unsettled: dict[str, _Attempt] = {}
    answered: dict[str, str] = {}  # thread -> the attempt that it settled as answered
    for line in window.lines:
        attempt = str(line.params.get("attempt", ""))
        if attempt and attempt not in found:  # at its Register, or that is missing
            found[attempt] = unsettled[attempt] = _Attempt(called_off=attempt in window.called_off)
            asks[attempt] = str(line.params["query"])
        if line.action in ("CancelSolver", "Close"):
            query = line.params.get("query")
            for name, one in unsettled.items():
                if one.cause is None and query in (None, asks[name]):
                    one.cause = "user" if query else "closed"
                    one.told = str(line.params.get("reason", "closed"))
        elif line.outcome in ("cancelled", "left") and attempt in unsettled:
            one = unsettled[attempt]
            if one.cause is None and not one.called_off:
                one.cause, one.told, one.late = "deadline", "deadline", True
            if line.outcome == "left":
                del unsettled[attempt]
        elif line.action == "Settle" and attempt in unsettled:
            one = unsettled.pop(attempt)
            one.late |= line.outcome == "deadline" and one.told != "deadline"
            if line.outcome == "answered":
                answered[line.who] = attempt
        elif line.action == "Retire" and line.who in answered:
            found[answered.pop(line.who)].unfit = True
        elif line.action == "Unregister":
            answered.pop(line.who, None)
    _name(found, asks)
    return found


def _name(attempts: Mapping[str, _Attempt], asks: Mapping[str, str]) -> None:
    """Names tell the query and what the model must know of a request: TLC's windows share them."""
    letters: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for attempt, one in attempts.items():
        letter = letters.setdefault(asks[attempt], f"q{len(letters) + 1}")
        kind = f"{letter}{'.off' if one.called_off else ''}{'.late' if one.late else ''}"
        counts[kind] += 1
        one.name = f"{kind}.{counts[kind]}"


def steps(window: Window) -> Steps:
    """The window in the words of the model; equal for windows that differ in names only."""
    attempts = _told(window)
    letters = {
        str(line.params["query"]): attempts[str(line.params["attempt"])].name.partition(".")[0]
        for line in window.lines
        if line.action == "Register"
    }
    numbers = {window.found: 1} if window.found else {}
    hands: dict[str, str] = {}
    on: dict[str, str] = {}  # thread -> whom it acts for
    found: list[Function] = []
    if window.found:
        found.append(Function({"name": "Found", "by": CLOSER, "generation": 1, "needs": function({})}))
    for line in window.lines:
        record: dict[Value, Value] = {"name": line.action, "needs": function({})}
        attempt = attempts.get(str(line.params.get("attempt", "")))
        if attempt is not None:
            if line.action == "Register" and line.who in on and on[line.who] in _names(attempts):
                record["after"] = on[line.who]
            on[line.who] = attempt.name
        elif line.action == "Close":
            on[line.who] = CLOSER
        elif line.action == "CancelSolver":
            on[line.who] = hands.setdefault(line.who, f"c{len(hands) + 1}")
            record["query"] = letters.get(str(line.params["query"]), "q0")
        record["by"] = on.get(line.who, "a stranger")
        if (outcome := _outcome(line, attempt)) is not None:
            record["outcome"] = outcome
        if generation := generation_of(line):
            record["generation"] = numbers.setdefault(generation, len(numbers) + 1)
        found.append(Function(record))
    return tuple(found)


def _names(attempts: Mapping[str, _Attempt]) -> set[str]:
    return {one.name for one in attempts.values()}


def _outcome(line: Recorded, attempt: _Attempt | None) -> str | None:
    """How a step went, as the model says it."""
    if line.action == "Register":
        return "registered" if line.error is None else _error(line)
    if line.action == "Spawn":
        return None if line.error is None else "failed"
    if line.error is not None:
        return f"raised {line.error}"
    if line.action == "Answer" and line.outcome in _REPLIES:
        return "error" if attempt is not None and attempt.unfit else "sat"
    if line.action == "Settle" and attempt is not None and line.outcome != "answered":
        if attempt.called_off:
            return "lost-race"
        if attempt.told == line.outcome:
            return attempt.cause
    return line.outcome


def _error(line: Recorded) -> str:
    return "refused" if (line.error or "").startswith("ClosedError") else f"raised {line.error}"


# --- checking --------------------------------------------------------------------------------------------


def check(lines: Sequence[Recorded], *, known: set[Steps] | None = None) -> Checked:
    """Check a recording. ``known`` are windows that were checked before, and takes up those of this one."""
    kinds: dict[Steps, Window] = {}
    count = 0
    for window in windows(lines):
        count += 1
        kinds.setdefault(steps(window), window)
    if not kinds:
        raise TraceError("the recording has no step of a solver")
    seen = known if known is not None else set[Steps]()
    fresh = [kind for kind in kinds if kind not in seen]
    fresh.sort(key=len)
    for start in range(0, len(fresh), TRACES):
        batch = fresh[start : start + TRACES]
        for kind, verdict in zip(batch, _validate(batch), strict=True):
            if not verdict.accepted:
                return Checked(len(lines), count, len(kinds), _explain(kinds[kind], kind, verdict))
            seen.add(kind)
    return Checked(len(lines), count, len(kinds), None)


def check_recorded(lines: Sequence[Recorded]) -> recording.Checked:
    """Check the lines of ``smtspool serve --trace``."""
    checked = check(lines)
    return recording.Checked(checked.accepted, checked.text)


def _validate(kinds: Sequence[Steps]) -> list[Verdict]:
    every = [step for kind in kinds for step in kind]
    steppers = {str(step["by"]) for step in every}
    requests = {name: name.partition(".")[0] for name in steppers if name.startswith("q")} | {SPARE: "q0"}
    cancellers = {name for name in steppers if name.startswith("c")}
    racing, limited = ({name for name in requests if mark in name} for mark in (".off", ".late"))
    traces = [{ALL: list(kind)} for kind in kinds]
    return validated(traces, requests, {*requests.values()}, cancellers, racing, limited)


def _explain(window: Window, kind: Steps, verdict: Verdict) -> str:
    line = window.lines[max(0, verdict.explained - (1 if window.found else 0))]
    went = line.error or line.outcome
    return (
        f"no step of the model explains line {line.number}: {line.who} {line.action} {dict(line.params)} "
        f"-> {went}; of {window.solver} {verdict.explained} of {len(kind)} steps are explained from line "
        f"{window.lines[0].number} on, and the model has it at {verdict.enabled[ALL]}"
    )
