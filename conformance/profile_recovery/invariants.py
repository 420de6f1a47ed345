"""The state predicates of ``ProfileRecovery`` on projections, under their names there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.engine.replay import Invariant, State
from conformance.engine.values import Function, Value
from conformance.profile_recovery.environment import Thresholds

__all__ = ["invariants"]

Policies = Mapping[str, Thresholds]


def _set(value: Value) -> frozenset[Value]:
    assert isinstance(value, frozenset)
    return value


def _domain(evidence: Value, policies: Policies) -> frozenset[str]:
    """``Domain``. What nobody wrote, or nobody knows, has none."""
    if not isinstance(evidence, Function):
        return frozenset()
    limits, counts = policies.get(str(evidence["policy"])), evidence["counts"]
    assert isinstance(counts, Function)
    seen = {str(value): count for value, count in counts.items() if isinstance(count, int) and count > 0}
    if limits is None or sum(seen.values()) < limits.least or len(seen) > limits.widest:
        return frozenset()
    return frozenset(seen)


def _of_records(records: Value, policy: Value, policies: Policies) -> frozenset[str]:
    """``Domain(Evidence(records, policy))``."""
    assert isinstance(records, tuple)
    limits, seen = policies[str(policy)], frozenset(map(str, records))
    return seen if len(records) >= limits.least and len(seen) <= limits.widest else frozenset()


def _saved(s: State) -> bool:
    """The state file says what is in memory, or there is nothing to say."""
    files = _set(s["state"])
    if not files:
        return s["window"] == () and not s["current"]
    (file,) = files
    assert isinstance(file, Function)
    return (
        file["records"] == s["window"]
        and file["label"] == s["current"]
        and file["policy"] == s["policy"]
        and file["complete"] is True
    )


def _clean(s: State) -> bool:
    return s["pc"] == "idle" and s["dirty"] is False


def _counters(s: State) -> Iterator[Function]:
    """Those in memory and those on disk; none where none are looked at."""
    files = [file for file in _set(s["state"]) if isinstance(file, Function)]
    for counters in (s["counters"], *(file["counters"] for file in files)):
        if isinstance(counters, Function):
            yield counters


def _mismatches_are_replays(s: State) -> bool:
    return all(
        _number(counters, "recovery_replay_mismatches") <= _number(counters, "recovery_replays")
        for counters in _counters(s)
    )


def _number(counters: Function, name: str) -> int:
    value = counters.get(name, 0)
    assert isinstance(value, int)
    return value


def invariants(policies: Policies) -> Mapping[str, Invariant]:
    """By name, for these thresholds."""

    def justified(s: State) -> bool:
        return all(
            _domain(served, policies) == _of_records(records, s["policy"], policies)
            for records in _set(s["basis"])
            for served in _set(s["served"])
        )

    def clean_is_served(s: State) -> bool:
        served = frozenset[str]().union(*(_domain(one, policies) for one in _set(s["served"])))
        return s["served"] == s["current"] and served == _of_records(s["window"], s["policy"], policies)

    return {
        "ServedIsJustified": justified,
        "ServedUnderPolicy": lambda s: all(
            isinstance(one, Function) and one["policy"] == s["policy"] for one in _set(s["served"])
        ),
        "DifferenceIsDirty": lambda s: (
            not _clean(s)
            or (s["runtime"] == s["current"] and _set(s["runtime"]) <= _set(s["artifacts"]) and _saved(s))
        ),
        "NothingServedInDoubt": lambda s: bool(s["basis"]) or not s["served"],
        "CleanIsServed": lambda s: not _clean(s) or clean_is_served(s),
        "ServedIsPublished": lambda s: (
            not s["served"]
            or (
                s["served"] == s["current"] == s["runtime"]
                and s["renewal"] is False
                and _set(s["runtime"]) <= _set(s["artifacts"])
            )
        ),
        "MismatchesAreReplays": _mismatches_are_replays,
    }
