"""The state predicates of ``models/cancellation``, for projections of the real state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.engine.replay import Invariant, State
from conformance.engine.values import Value
from conformance.states import each, members

__all__ = ["INVARIANTS", "NOBODY", "NONE", "UNSETTLED"]

NOBODY, NONE = "nobody", "none"
UNSETTLED = frozenset(
    {"acquire", "queued", "admit", "bury", "spawn", "exchange", "asked", "answer", "settle"}
)


INSIDE = UNSETTLED - {"acquire", "queued"}
WORKING = frozenset({"exchange", "asked", "answer", "settle"})


def _pcs(state: State) -> Iterator[tuple[Value, Value]]:
    return iter(each(state, "pc").items())


def _running(state: State, name: str = "running") -> frozenset[Value]:
    return members(state, name)


def _lives(state: State) -> tuple[Value, ...]:
    value = state["life"]
    assert isinstance(value, tuple)
    return value


def _life(state: State, number: Value) -> Value:
    assert isinstance(number, int)
    return _lives(state)[number - 1]


def _captured(state: State) -> set[Value]:
    """The generations in the hands of those who cancel and close."""
    return {g for w, g in each(state, "hand").items() if w not in each(state, "pc") and g != 0}


def _exact_interrupt(state: State) -> bool:
    return all(
        each(state, "reason")[r] != NONE
        for r, at in _pcs(state)
        if at in WORKING and each(state, "used")[r] in _captured(state)
    )


def _lost(state: State, request: Value, at: Value) -> bool:
    knows = each(state, "reason" if at in UNSETTLED else "ended")[request]
    return request in _running(state, "due") and knows == NONE


def _exactly(state: State, request: Value) -> bool:
    ended, due = each(state, "ended")[request], request in _running(state, "due")
    if ended == "deadline":
        return request in _running(state, "late")
    return due == (ended != NONE)


INVARIANTS: Mapping[str, Invariant] = {
    "RegistrationBeforeIO": lambda s: all(r in _running(s) for r, at in _pcs(s) if at in UNSETTLED),
    "ExactActiveInterrupt": _exact_interrupt,
    "NoLostCancellation": lambda s: not any(_lost(s, r, at) for r, at in _pcs(s)),
    "CleanupTotality": lambda s: all(
        r not in (s["holder"], s["active"]) and each(s, "hand")[r] == 0
        for r, at in _pcs(s)
        if at in ("register", "done")
    ),
    "ColdRecovery": lambda s: all(
        each(s, "used")[r] != s["generation"]
        for r, ended in each(s, "ended").items()
        if ended != NONE and each(s, "used")[r] != 0
    ),
    "SignalHitsOnlyTold": lambda s: all(
        each(s, "reason")[r] != NONE for r, heard in each(s, "heard").items() if heard == "killed"
    ),
    "CancelledExactly": lambda s: all(_exactly(s, r) for r, at in _pcs(s) if at in ("retire", "unregister")),
    "NoEventSurvives": lambda s: all(
        r not in _running(s) and each(s, "reason")[r] == NONE
        for r, at in _pcs(s)
        if at in ("register", "done")
    ),
    "RetiredNeverAnswers": lambda s: (
        all(_life(s, each(s, "used")[r]) == "valid" for r, at in _pcs(s) if at == "asked")
        and (s["generation"] == 0 or _life(s, s["generation"]) != "retired")
    ),
    "ClosedIsEmpty": lambda s: (
        s["closer"] != "done"
        or (
            not _running(s)
            and s["active"] == s["holder"] == NOBODY
            and s["generation"] == 0
            and set(_lives(s)) <= {"unborn", "retired"}
        )
    ),
    "OneInside": lambda s: all((at in INSIDE) == (s["holder"] == r) for r, at in _pcs(s)),
    "ToldIsAimedAt": lambda s: all(
        each(s, "used")[r] in _captured(s)
        for r, at in _pcs(s)
        if at == "asked" and each(s, "reason")[r] != NONE
    ),
}
