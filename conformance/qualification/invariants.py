"""The state predicates of ``models/qualification``, for projections of the real state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.engine.replay import Invariant, State
from conformance.states import each, members

__all__ = ["INVARIANTS"]

INSIDE = frozenset({"act", "enter", "wait", "exchange", "commit"})
OUT = frozenset({"consume", "abort", "shutdown", "leaving", "work"})
ENDING = frozenset({"shutdown", "leaving", "abort", "gone", "unwound"})
FAILED = frozenset({"failed", "contained"})


def _all(state: State, name: str) -> Mapping[Any, Any]:
    value = state[name]
    if isinstance(value, tuple):
        return dict(enumerate(value, 1))
    return each(state, name)


def _total(state: State, rank: Any) -> bool:
    pc, met = _all(state, "pc")[rank], _all(state, "met")[rank]
    if pc == "unwound":
        return bool(met == "control")
    valued = _all(state, "result")[rank] == "contained"
    stops = _all(state, "fatal")[rank] in ("configuration", "fleet")
    return met != "ordinary" or pc not in OUT or valued or stops


def _works_on(state: State, rank: Any) -> bool:
    """A rank that admits has no reason not to."""
    pc, failed = _all(state, "pc")[rank], _all(state, "result")[rank] in FAILED
    return (
        state["code"] == 0
        and _all(state, "fatal")[rank] == "none"
        and _all(state, "failures")[rank] == 0
        and pc not in ENDING
        and (not failed or (pc == "consume" and _all(state, "flight")[rank] != 0))
    )


def _ranks(state: State) -> list[Any]:
    return list(_all(state, "pc"))


def _hosts_shared(state: State, rank: Any) -> bool:
    proof = _all(state, "proof")[rank]
    return state["shared"] is True and proof > 1 and proof == max(_all(state, "proof").values())


def _one_holder(state: State) -> bool:
    locks = members(state, "locks")
    alone = len(locks) + (state["outside"] is True) < 2
    return all(_all(state, "kept")[rank] == 3 for rank in locks) and (state["shared"] is not True or alone)


def _abort_is_total(state: State) -> bool:
    if state["code"] == 0:
        return True
    why = _all(state, "result") if state["code"] == 65 else _all(state, "fatal")
    wanted = any(value in FAILED if state["code"] == 65 else value != "none" for value in why.values())
    return wanted and all(pc in ("gone", "unwound") for pc in _all(state, "pc").values())


def _step_by_step(state: State) -> bool:
    inside = [
        (stage, _all(state, "flight")[rank]) for rank, stage in _all(state, "stage").items() if stage != 0
    ]
    return all(one[0] <= two[0] + 1 for one in inside for two in inside if one[1] == two[1])


INVARIANTS: Mapping[str, Invariant] = {
    "Totality": lambda s: all(_total(s, r) for r in _ranks(s)),
    "ControlPasses": lambda s: all(
        _all(s, "pc")[r] == "unwound" for r in _ranks(s) if _all(s, "met")[r] == "control"
    ),
    "ZeroProof": lambda s: all(
        _all(s, "proof")[r] == 0 for r in _ranks(s) if _all(s, "result")[r] == "contained"
    ),
    "GenerationExact": lambda s: all(
        _all(s, "stamp")[r] == 0
        for r in _ranks(s)
        if _all(s, "given")[r] == "bool" and _all(s, "attempts")[r] == 0 and _all(s, "flight")[r] == 0
    ),
    "VerifiedTogether": lambda s: all(
        min(_all(s, "sworn").values()) > _all(s, "stamp")[r]
        for r in _ranks(s)
        if _all(s, "result")[r] == "verified"
    ),
    "ProofIsWhole": lambda s: all(
        _hosts_shared(s, r) for r in _ranks(s) if _all(s, "result")[r] == "verified"
    ),
    "NoWorkAfterFailure": lambda s: all(_works_on(s, r) for r in members(s, "admits")),
    "Accounting": lambda s: all(
        _all(s, "attempts")[r] == _all(s, "successes")[r] + _all(s, "failures")[r] for r in _ranks(s)
    ),
    "FailureIsCounted": lambda s: all(
        _all(s, "failures")[r] == 1 and _all(s, "flight")[r] == 0
        for r in _ranks(s)
        if _all(s, "fatal")[r] == "proof"
    ),
    "ConsumerIsNotCounted": lambda s: all(
        _all(s, "failures")[r] == 0 and _all(s, "flight")[r] == _all(s, "generation")[r] + 1
        for r in _ranks(s)
        if _all(s, "fatal")[r] == "accounting"
    ),
    "NothingIsLeft": lambda s: (
        all(
            _all(s, "kept")[r] == 0 and r not in members(s, "locks")
            for r in _ranks(s)
            if _all(s, "pc")[r] not in INSIDE
        )
        and (_all(s, "pc")[0] in INSIDE or s["leaf"] == "none")
    ),
    "OneHolder": _one_holder,
    "AbortIsTotal": _abort_is_total,
    "StepByStep": _step_by_step,
}
