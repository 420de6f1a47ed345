"""Log lines: for people, or one JSON document per line."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from smtspool.service import log_to_stderr

LOGGER = logging.getLogger("smtspool")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = LOGGER.handlers[:], LOGGER.level, LOGGER.propagate
    yield
    LOGGER.handlers[:], LOGGER.level, LOGGER.propagate = before


def test_text_lines_say_when_how_bad_and_who(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("text", logging.INFO)
    LOGGER.warning("disk %s", "full")
    assert capsys.readouterr().err.rstrip().endswith("WARNING MainThread: disk full")


def test_text_lines_are_lines_that_a_terminal_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("text", logging.INFO)
    LOGGER.warning("engine %s", "a\nb\x1b[31m\udcff é")
    assert capsys.readouterr().err.endswith("engine a\\nb\\x1b[31m\\udcff é\n")


def test_json_lines_carry_the_query_and_its_attempts(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("json", logging.DEBUG)
    LOGGER.debug("solved", extra={"query": "3f2a", "attempts": [{"attempt": "race-1", "generation": 2}]})
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["thread"], line["message"]) == ("debug", "MainThread", "solved")
    assert line["query"] == "3f2a"
    assert line["attempts"] == [{"attempt": "race-1", "generation": 2}]


def test_json_lines_carry_tracebacks(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("json", logging.INFO)
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        LOGGER.exception("a defect")
    assert "ZeroDivisionError" in json.loads(capsys.readouterr().err)["traceback"]


def test_below_the_level_there_is_silence(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("text", logging.INFO)
    LOGGER.debug("chatter")
    assert capsys.readouterr().err == ""
