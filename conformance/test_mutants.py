"""The kill matrix is about today's sources, every survivor has its reason, and no invariant is idle."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.matrix import (
    SUBJECTS,
    SURVIVED,
    Row,
    Subject,
    faults,
    generated,
    idle,
    measure,
    pinned,
    reasons,
)
from conformance.mutants_page import PAGE, page

each = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
# Every so many mutants one is measured here; `make mutants` measures all.
EVERY_MODEL, EVERY_CODE = 96, 120


@each
def test_the_list_of_mutants_is_that_of_todays_sources(subject: Subject) -> None:
    today, known = {row.key for row in generated(subject)}, set(pinned(subject))
    assert today == known, "run: python -m conformance mutants --write"


@each
def test_every_survivor_has_a_reason_and_every_reason_a_survivor(subject: Subject) -> None:
    controls = {mutant.name for mutant in subject.named if mutant.control}
    survivors = {
        key for key, detector in pinned(subject).items() if detector == SURVIVED and key[1] not in controls
    }
    why = reasons(subject)
    assert {reason.key for reason in why} == survivors
    assert all(len(reason.reason) > 20 for reason in why)


@each
def test_no_invariant_is_idle(subject: Subject) -> None:
    assert idle(subject) == {}


@each
def test_names_are_unique(subject: Subject) -> None:
    rows = generated(subject)
    assert len({(row.side, row.name) for row in rows}) == len(rows)


def test_the_page_is_what_was_pinned() -> None:
    assert PAGE.read_text() == page(), "run: python -m conformance mutants --write"


def _sample(subject: Subject, side: str, every: int) -> list[Row]:
    """Some that were caught, without those whose evaluation fails: each of these takes a run of its own."""
    rows = [replace(row, detector=pinned(subject)[row.key]) for row in generated(subject)]
    caught = [r for r in rows if r.side == side and r.detector not in (SURVIVED, "evaluation")]
    return [row for row in caught if row.operator != "drop fairness"][::every]


@pytest.mark.slow
@each
def test_a_sample_of_model_mutants_is_seen_as_pinned(subject: Subject) -> None:
    sample = _sample(subject, "model", EVERY_MODEL)
    measured = list(measure(subject, sample, print))
    assert measured == sample


@pytest.mark.slow
@each
def test_a_sample_of_code_mutants_is_seen(subject: Subject) -> None:
    sample = _sample(subject, "code", EVERY_CODE)
    assert list(faults(subject, list(measure(subject, sample, print)))) == []


@each
def test_what_differs_from_what_is_pinned_is_a_fault(subject: Subject) -> None:
    rows = [replace(row, detector=pinned(subject)[row.key]) for row in generated(subject)]
    assert list(faults(subject, rows)) == []
    caught = next(row for row in rows if row.detector != SURVIVED and row.side == "code")
    assert len(list(faults(subject, [replace(caught, detector=SURVIVED)]))) == 2  # another result, no reason
    assert "is new" in next(faults(subject, [replace(caught, digest="of another text")]))
    control = next(row for row in rows if row.side == "named" and row.detector == SURVIVED)
    assert any("changes nothing" in text for text in faults(subject, [replace(control, detector="edge")]))
