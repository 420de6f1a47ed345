"""Records: what a telemetry document keeps, row by row (F300, F303)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.profile import Record
from tests.profile.support import CONTEXT, UINT64, anything, document, documents, probed, saw


def read(*rows: Any, feedback: Any = ()) -> Record | None:
    return Record.of(document(*rows, feedback=feedback))


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        {},
        document(saw(1), context="a" * 63),
        document(saw(1), context="A" * 64),
        document(saw(1), context="a" * 64 + "\n"),
        document(saw(1)) | {"empirical_value_profiles": "rows"},
        document(saw(1)) | {"empirical_value_profiles": {"0": saw(1)}},
        document(),
    ],
)
def test_what_is_no_telemetry_is_no_record(broken: object) -> None:
    assert Record.of(broken) is None


@pytest.mark.parametrize(
    "row",
    [
        [7, 32, 8, 0],
        [7, 32, 8, 0, [[1, 8]], 0],
        [0, 32, 8, 0, [[1, 8]]],
        [UINT64 + 1, 32, 8, 0, [[1, 8]]],
        [True, 32, 8, 0, [[1, 8]]],
        [7.0, 32, 8, 0, [[1, 8]]],
        [7, 0, 8, 0, [[0, 8]]],
        [7, 65, 8, 0, [[1, 8]]],
        [7, 8, 8, 0, [[256, 8]]],
        [7, 32, 0, 0, [[1, 8]]],
        [7, 32, 8, False, [[1, 8]]],
        [7, 32, 8, 2, [[1, 8]]],
        [7, 32, 9, 0, [[1, 8]]],  # a lost observation that is not admitted
        [7, 32, 8, 1, [[1, 8]]],  # saturated, and nothing is lost
        [7, 32, 7, 1, [[1, 8]]],
        [7, 32, 8, 0, []],
        [7, 32, 8, 0, [[1, 4], [1, 4]]],
        [7, 32, 8, 0, [[1, 8.0]]],
        [7, 32, 8, 0, [[1, 0], [2, 8]]],
        [7, 32, 8, 0, [[1]]],
        [7, 32, 65, 0, [[value, 1] for value in range(65)]],
        "row",
    ],
)
def test_a_profile_row_that_breaks_a_law_is_dropped_and_the_others_stay(row: Any) -> None:
    assert read(row) is None
    assert read(row, saw(5, site=9)) == read(saw(5, site=9))


@pytest.mark.parametrize("change", [*range(3, 11), "values", "wide", "twice", "nine", "long", "bool"])
def test_a_feedback_row_that_breaks_a_law_is_dropped(change: int | str) -> None:
    row = probed(1, 2, queries=5, validated=2, cost_us=9)
    row[4], row[8], row[10] = 1, 1, 1
    row[3], row[5], row[6], row[9] = 6, 5, 3, 1
    assert read(saw(1), feedback=[row]) != read(saw(1))
    if isinstance(change, int):
        row[change] += 1
    else:
        row[2] = {"values": [], "wide": [2**32], "twice": [1, 1], "nine": list(range(9))}.get(change, row[2])
        row += [0] * (change == "long")
        row[3] = True if change == "bool" else row[3]
    assert read(saw(1), feedback=[row]) == read(saw(1))


def test_an_old_feedback_row_has_no_cost() -> None:
    record = read(saw(1), feedback=[probed(2, 1, cost_us=900)[:-1]])
    assert record is not None
    [row] = record.feedback
    assert row.values == (1, 2)
    assert row.found.solver_time_us == 0


def test_rows_of_one_key_are_merged() -> None:
    record = read(saw(1, 2), saw(2, 3, saturated=1), feedback=[probed(2, 1), probed(1, 2, validated=1)])
    assert record is not None
    [profile] = record.profiles
    assert profile[2:] == (33, True, ((1, 8), (2, 16), (3, 8)))
    [row] = record.feedback
    assert (row.found.attempts, row.found.validated) == (2, 1)


@given(st.lists(documents(), min_size=1, max_size=4), anything)
def test_remembered_rows_are_read_as_any_other(given_: list[dict[str, Any]], odd: Any) -> None:
    known: dict[str, Any] = {}
    for each in [*given_, *given_]:
        rows = each["empirical_value_profiles"]
        hostile = [
            *rows,
            *rows[:1],
            odd,
            [1, 8, 1, False, [[0, 1]]],
            [1, 8, 1, 0, [[0, 1]]],
            [1, 8, 1.0, 0, [[0, 1]]],
        ]
        for whole in (each, each | {"empirical_value_profiles": hostile}):
            assert Record.of(whole, known) == Record.of(whole)


def test_a_merge_keeps_sixty_four_values_and_admits_what_it_lost() -> None:
    record = read(saw(*range(40)), saw(*range(30, 70)))
    assert record is not None
    [profile] = record.profiles
    assert len(profile.values) == 64
    assert profile.saturated
    assert profile.lawful


def test_a_sum_past_64_bits_keeps_the_row_before() -> None:
    record = read(saw(1, times=UINT64), saw(1), feedback=[probed(1, cost_us=UINT64), probed(1, cost_us=1)])
    assert record == read(saw(1, times=UINT64), feedback=[probed(1, cost_us=UINT64)])


def test_only_so_many_rows_are_looked_at() -> None:
    record = read(*(saw(1, site=site) for site in range(1, 5000)), feedback=[probed(v) for v in range(600)])
    assert record is not None
    assert (len(record.profiles), len(record.feedback)) == (4096, 512)


@given(documents())
def test_the_canonical_document_is_its_own_record(given_: dict[str, Any]) -> None:
    record = Record.of(given_)
    assert record is not None
    assert Record.of(record.to_json()) == record
    assert all(row.lawful for row in record.profiles)
    assert all(row.found.lawful for row in record.feedback)
    assert len({row[:2] for row in record.profiles}) == len(record.profiles)
    assert len({row[:3] for row in record.feedback}) == len(record.feedback)


@given(st.lists(anything), st.lists(anything), anything)
def test_whatever_a_document_holds_a_record_keeps_the_laws(rows: Any, reports: Any, other: Any) -> None:
    hostile = [[7, 8, 3, 0, rows], [7, 8, rows, *reports], *rows]
    for profiles, feedback in ((hostile, reports), (other, other), (rows, hostile)):
        record = Record.of(document() | {
            "empirical_value_profile_context": CONTEXT,
            "empirical_value_profiles": profiles,
            "empirical_domain_feedback": feedback,
        })  # fmt: skip
        if record is not None:
            assert all(row.lawful for row in record.profiles)
            assert all(row.found.lawful for row in record.feedback)
