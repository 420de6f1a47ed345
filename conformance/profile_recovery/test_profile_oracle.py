"""What the model of profile recovery leaves to a function: how evidence becomes domains."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conformance.profile_recovery.mutants import MUTANTS, SHOWS_IN
from conformance.profile_recovery.oracle import check_answers, check_domains, expected_domains
from smtspool.profile import Policy

# Faults that each restore a bug of the first design, under their own names.
NAMED = {
    "replay-skipped", "compare-by-digest", "checkpoint-ignored", "dirty-cleared-early",
    "runtime-before-artifact", "nine-values", "ratio-at-most", "legacy-suppresses", "probe-unsat-final",
    "stale-served",
}  # fmt: skip


def test_every_mutant_has_a_hint_and_those_of_the_first_design_are_among_them() -> None:
    assert set(SHOWS_IN) == {mutant.name for mutant in MUTANTS if not mutant.control} > NAMED


def test_domains_of_random_windows_are_what_all_gates_say() -> None:
    assert check_domains(cases=200, seed=305) > 10


def _window(*feedback: list[object], values: Sequence[int] = (1,)) -> dict[str, object]:
    rows = [[7, 8, 8 * len(values), 0, [[value, 8] for value in values]]]
    context = "c" * 64
    return {
        "empirical_value_profile_context": context,
        "empirical_value_profiles": rows,
        "empirical_domain_feedback": list(feedback),
    }


def test_the_oracle_knows_the_thresholds() -> None:
    row = [["c" * 64, 7, 8, [1]]]
    eighth = [7, 8, [1], 8, 0, 8, 1, 1, 0, 7, 0, 5000]
    assert expected_domains([_window(eighth)], Policy()) == row
    none = [7, 8, [1], 8, 0, 8, 0, 0, 0, 8, 0, 1000]
    assert expected_domains([_window(none)], Policy()) == []
    assert expected_domains([_window([*none[:-1], 999])], Policy()) == row
    assert expected_domains([_window(none[:-1])], Policy()) == row
    wide = Policy(max_distinct_values=64)
    assert expected_domains([_window(values=range(9))], wide) == []
    assert expected_domains([_window(values=range(8))], wide) == [["c" * 64, 7, 8, list(range(8))]]


@pytest.mark.slow
def test_no_domain_changes_an_answer() -> None:
    assert check_answers() == 64
