"""Answers keep their facts apart, and survive JSON."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.query import Answer, Attempt, Failure, Status

TEXT = st.none() | st.text(max_size=8)
ATTEMPTS = st.builds(
    Attempt,
    attempt_id=st.text(max_size=8),
    engine=st.text(max_size=8),
    status=st.sampled_from(Status),
    reason=TEXT,
    cancelled=st.booleans(),
    cancel_reason=TEXT,
    generation=st.integers(0, 9),
    prefix_hit=st.integers(0, 9),
    verified=st.none() | st.booleans(),
    elapsed_ms=st.floats(0, 1e9),
)
ANSWERS = st.builds(
    Answer,
    status=st.sampled_from(Status),
    model=st.none() | st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3),
    engine=TEXT,
    reason=TEXT,
    verified_by=TEXT,
    disagreement=st.booleans(),
    reused_from=TEXT,
    at_limit=st.booleans(),
    elapsed_ms=st.floats(0, 1e9),
    attempts=st.lists(ATTEMPTS, max_size=2).map(tuple),
)


@given(ANSWERS)
def test_json_keeps_every_fact(answer: Answer) -> None:
    assert Answer.from_json(json.loads(json.dumps(answer.to_json()))) == answer


@pytest.mark.parametrize("status", Status)
def test_only_sat_and_unsat_are_definite(status: Status) -> None:
    assert status.definite is (status in {Status.SAT, Status.UNSAT})


def test_answers_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Answer(Status.SAT).status = Status.UNSAT  # type: ignore[misc]


def test_an_answer_that_was_stored_with_a_core_is_read_without() -> None:
    answer = Answer(Status.UNSAT, engine="z3")
    assert Answer.from_json(answer.to_json() | {"core": None}) == answer


def test_what_kind_of_failure_it_was_is_told_to_the_program_and_not_kept() -> None:
    attempt = Attempt(
        "a1", "z3", Status.ERROR, reason="crashed: exit 1", generation=1, failure=Failure.CRASHED
    )
    answer = Answer(Status.ERROR, reason="crashed", attempts=(attempt,))
    [members] = answer.to_json()["attempts"]
    assert sorted(members) == [
        "attempt_id", "cancel_reason", "cancelled", "elapsed_ms", "engine", "generation", "prefix_hit",
        "reason", "status", "verified",
    ]  # fmt: skip
    again = Answer.from_json(answer.to_json())
    assert again == answer and again.attempts[0].failure is None


def test_an_engine_that_could_not_be_asked_has_called_nothing_an_error() -> None:
    asked = Attempt("a1", "z3", Status.ERROR, reason="syntax", generation=1)
    not_asked = Attempt("a2", "cvc5", Status.ERROR, reason="no helper today")
    assert Answer(Status.UNSAT, attempts=(asked, not_asked)).errors == ("z3: syntax",)
