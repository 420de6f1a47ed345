"""The state predicates of ``models/cancellation/Race.tla``, for projections of the real state."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.engine.replay import Invariant, State
from conformance.engine.values import Value
from conformance.states import each, members

__all__ = ["invariants"]

NOBODY, NONE = "nobody", "none"
REASONS = frozenset({"lost-race", "user", "closed", "deadline"})
AFTERWARDS = frozenset({"settle", "leave", "done"})


def _known(state: State) -> frozenset[Value]:
    return members(state, "known")


def _solvers(state: State) -> list[Value]:
    return list(each(state, "future"))


def _check_of(state: State, solver: Value) -> str | None:
    check = f"k{str(solver)[1:]}"
    return check if check in each(state, "stage") else None


def _end(state: State, call: Value | None) -> Value:
    return NONE if call is None else each(state, "end")[call]


def _accepted(state: State, solver: Value) -> bool:
    ends = _end(state, solver), _end(state, _check_of(state, solver))
    return ends[0] == "unsat" or ends == ("sat", "sat")


def _only_verified(state: State, contested: frozenset[str] = frozenset({"no helper"})) -> bool:
    winner, ends = state["winner"], [_end(state, solver) for solver in _known(state)]
    if state["answer"] == "sat":
        return _accepted(state, winner) and _end(state, winner) == "sat" and "unsat" not in ends
    if state["answer"] == "unsat":
        models = [solver for solver in _known(state) if _end(state, solver) == "sat"]
        return _end(state, winner) == "unsat" and all(
            _end(state, _check_of(state, solver)) in contested for solver in models
        )
    return True


def _nobody_runs_on(state: State) -> bool:
    if state["race"] not in AFTERWARDS:
        return True
    stages, reasons = each(state, "stage"), each(state, "reason")
    return "queued" not in each(state, "future").values() and all(
        at != "asked" and (at != "settle" or reasons[call] != NONE) for call, at in stages.items()
    )


def _recorded_exactly(state: State) -> bool:
    for solver, record in each(state, "record").items() if state["race"] == "done" else ():
        end = _end(state, solver)
        if record in REASONS and end not in REASONS | {NONE, "refused"}:
            return False
        if record not in REASONS | {NONE} and end in REASONS | {NONE}:
            return False
    return True


def _for_cause(state: State, end: Value) -> bool:
    over = state["over"] is True
    return {
        "lost-race": over and state["why"] == "lost-race",
        "user": over and state["token"] is True,
        "closed": over and state["closer"] != "open",
        "deadline": state["late"] is True,
    }.get(str(end), True)


def _fresh_ids(state: State) -> bool:
    solvers = set(_solvers(state))
    ids = [(call in solvers, number) for call, number in each(state, "id").items() if number != 0]
    return len(set(ids)) == len(ids)


def _one_winner(state: State) -> bool:
    if state["race"] != "done":
        return True
    if state["answer"] in ("sat", "unsat"):
        return state["winner"] != NOBODY and each(state, "record")[state["winner"]] == state["answer"]
    return state["winner"] == NOBODY


def _unheard(state: State) -> list[Value]:
    asked = {s for s, part in each(state, "future").items() if part in ("queued", "running", "done")}
    return sorted(asked - _known(state), key=str)


def _still(state: State) -> bool:
    return set(each(state, "stage").values()) <= {"idle", "done"}


def invariants(cpus: int, *, third: bool = False) -> Mapping[str, Invariant]:
    """The predicates by their names in the module, where so many engines may be asked at once. A ``third``
    engine, which the module leaves out, can refute a model that speaks against an unsat."""
    judged = frozenset({"no helper", "unsat"}) if third else frozenset({"no helper"})
    return {
        **_INVARIANTS,
        "OnlyVerified": lambda state: _only_verified(state, judged),
        "WithinBudget": lambda state: len(_unheard(state)) <= cpus,
    }


_INVARIANTS: Mapping[str, Invariant] = {
    "VerifiedBeforeDismissal": lambda s: (
        not (s["over"] is True and s["why"] == "lost-race")
        or any(_accepted(s, solver) for solver in _known(s))
        or _known(s) == frozenset(_solvers(s))
    ),
    "LosersAwaited": lambda s: (
        not (s["race"] == "done" and s["patience"] is True)
        or (_still(s) and not {"queued", "running"} & set(each(s, "future").values()))
    ),
    "NobodyRunsOn": _nobody_runs_on,
    "RecordedExactly": _recorded_exactly,
    "CancelledForCause": lambda s: all(_for_cause(s, end) for end in each(s, "end").values()),
    "FreshIds": _fresh_ids,
    "OneWinner": _one_winner,
    "HeardIsOver": lambda s: all(
        each(s, "stage")[solver] == "done"
        and each(s, "stage").get(str(_check_of(s, solver)), "idle") in ("idle", "done")
        for solver in _known(s)
    ),
    "ClosedIsStill": lambda s: s["closer"] != "done" or (s["race"] in ("enter", "done") and _still(s)),
}
