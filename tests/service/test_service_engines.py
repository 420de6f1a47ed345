"""Which engines of a service are started, and when."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

import pytest

from smtspool.errors import InfrastructureError
from smtspool.query import Status
from smtspool.service import Settings
from smtspool.service.engines import Engines
from tests.service.support import query
from tests.solve.processes_seen import descendants

ABSENT = "absent=/no/such/solver"
QUERY = query(42)


def started() -> list[str]:
    """The engines whose fork servers run below this process."""
    servers = b""
    for pid in descendants():
        with suppress(FileNotFoundError, ProcessLookupError):  # a helper that has just ended
            servers += Path(f"/proc/{pid}/cmdline").read_bytes()
    names = ("bitwuzla", "z3", "cvc5", "absent")
    return [name for name in names if f'"name": "{name}"'.encode() in servers]


def test_without_a_first_query_every_engine_is_ready_before_any_query() -> None:
    with Engines(Settings(engines=("bitwuzla", "z3"))):
        assert started() == ["bitwuzla", "z3"]


def test_for_a_first_query_only_the_engine_that_leads_is_started() -> None:
    with Engines(Settings(engines=("cvc5", "z3", "bitwuzla")), first=QUERY) as engines:
        assert started() == ["bitwuzla"]
        assert engines.names == ["cvc5", "z3", "bitwuzla"]
    assert started() == []


def test_a_second_engine_is_started_when_its_opinion_is_asked() -> None:
    settings = Settings(engines=("bitwuzla", "z3", "cvc5"), confirm_sat="engine")
    with Engines(settings, first=QUERY) as engines, engines.portfolio() as portfolio:
        verdict = portfolio.verify(QUERY, {"x": "#x2a"}, exclude_engine="bitwuzla", timeout_s=60.0)
        assert verdict == (True, "z3")
        assert started() == ["bitwuzla", "z3"]


def test_no_engine_is_started_for_what_the_evaluator_can_tell() -> None:
    with (
        Engines(Settings(engines=("bitwuzla", "z3")), first=QUERY) as engines,
        engines.portfolio() as portfolio,
    ):
        verdict = portfolio.verify(QUERY, {"x": "#x2a"}, exclude_engine="bitwuzla", timeout_s=60.0)
        assert verdict == (True, "evaluator")
        assert started() == ["bitwuzla"]


def test_engines_that_start_together_are_all_started_first() -> None:
    with Engines(Settings(engines=("bitwuzla", "z3"), hedge="together"), first=QUERY):
        assert started() == ["bitwuzla", "z3"]


def test_a_leader_that_does_not_work_is_left_out_and_the_next_one_leads(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = Settings(engines=(ABSENT, "z3", "bitwuzla"), hedge="fixed")
    with Engines(settings, first=QUERY) as engines:
        assert engines.names == ["z3", "bitwuzla"]
    assert ["absent does not work" in line for line in caplog.messages] == [True]


def test_an_engine_that_fails_when_it_is_needed_is_said_once_and_not_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = Settings(engines=("bitwuzla", ABSENT), confirm_sat="engine")
    with (
        caplog.at_level(logging.WARNING),
        Engines(settings, first=QUERY) as engines,
        engines.portfolio() as portfolio,
    ):
        answers = [portfolio.solve(QUERY, timeout_s=60.0) for _ in range(3)]
    assert {answer.status for answer in answers} == {Status.UNKNOWN}  # nobody is left to confirm it
    assert [len(answer.attempts) for answer in answers[1:]] == [1, 1]
    assert len([line for line in caplog.messages if "absent does not work" in line]) == 1


def test_no_engine_that_works_is_an_error_at_once() -> None:
    with (
        pytest.raises(InfrastructureError, match="no engine works: absent"),
        Engines(Settings(engines=(ABSENT,)), first=QUERY),
    ):
        pass
    assert started() == []
