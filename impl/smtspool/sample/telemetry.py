"""The telemetry record of a run: the values that it compared with constants (F300)."""

from __future__ import annotations

from collections import Counter

from smtspool.sample.programs import Program
from smtspool.sample.walk import CONTEXT, execute

__all__ = ["telemetry"]

MAX_VALUES = 8  # distinct values a run remembers for one site


def telemetry(program: Program, data: bytes, start: int = 0) -> dict[str, object]:
    """The record of one run: a row ``[site, bits, observations, saturated, [[value, count], …]]`` per site.

    A value past the eighth is counted but not kept, and marks the row as saturated.
    """
    values: dict[int, Counter[int]] = {}
    observations: Counter[int] = Counter()
    for branch in execute(program, data, start).branches:
        if branch.operand is None:
            continue
        observations[branch.site] += 1
        kept = values.setdefault(branch.site, Counter())
        if branch.value in kept or len(kept) < MAX_VALUES:
            kept[branch.value] += 1
    rows = [
        [
            site,
            program.width,
            observations[site],
            int(kept.total() < observations[site]),
            sorted(map(list, kept.items())),
        ]
        for site, kept in sorted(values.items())
    ]
    return {
        "schema": 3,
        "empirical_value_profile_context": CONTEXT,
        "empirical_value_profiles": rows,
        "empirical_domain_feedback": [],
    }
