"""Log lines: for people, or one JSON document per line."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from smtspool.service import log_to_stderr
from smtspool.service.logs import LINES_HELD, dropped_lines

LOGGER = logging.getLogger("smtspool")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = LOGGER.handlers[:], LOGGER.level, LOGGER.propagate
    yield
    for handler in LOGGER.handlers:
        handler.close()
    LOGGER.handlers[:], LOGGER.level, LOGGER.propagate = before


def printed(capfd: pytest.CaptureFixture[str]) -> str:
    LOGGER.handlers[0].flush()
    return capfd.readouterr().err


def test_text_lines_say_when_how_bad_and_who(capfd: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("text", logging.INFO)
    LOGGER.warning("disk %s", "full")
    assert printed(capfd).rstrip().endswith("WARNING MainThread: disk full")


def test_text_lines_are_lines_that_a_terminal_can_be_shown(capfd: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("text", logging.INFO)
    LOGGER.warning("engine %s", "a\nb\x1b[31m\udcff é")
    assert printed(capfd).endswith("engine a\\nb\\x1b[31m\\udcff é\n")


def test_so_are_the_lines_of_a_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("text", logging.INFO)
    try:
        raise ValueError("a\x1b[31mb")
    except ValueError:
        LOGGER.exception("a defect")
    assert printed(capfd).endswith('  raise ValueError("a\\x1b[31mb")\nValueError: a\\x1b[31mb\n')


def test_json_lines_carry_the_query_and_its_attempts(capfd: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("json", logging.DEBUG)
    LOGGER.debug("solved", extra={"query": "3f2a", "attempts": [{"attempt": "race-1", "generation": 2}]})
    line = json.loads(printed(capfd))
    assert (line["level"], line["thread"], line["message"]) == ("debug", "MainThread", "solved")
    assert line["query"] == "3f2a"
    assert line["attempts"] == [{"attempt": "race-1", "generation": 2}]


def test_json_lines_carry_tracebacks(capfd: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("json", logging.INFO)
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        LOGGER.exception("a defect")
    assert "ZeroDivisionError" in json.loads(printed(capfd))["traceback"]


def test_below_the_level_there_is_silence(capfd: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("text", logging.INFO)
    LOGGER.debug("chatter")
    assert printed(capfd) == ""


@contextmanager
def stderr_is(descriptor: int) -> Iterator[None]:
    before = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def test_who_logs_does_not_wait_for_who_does_not_read_and_the_loss_is_told() -> None:
    source, sink = os.pipe()
    with open(source, encoding="utf-8") as reader, open(sink, "w") as end:
        with stderr_is(sink):
            log = log_to_stderr("text", logging.INFO)
            for number in range(2 * LINES_HELD):
                LOGGER.info("line %d: %s", number, "x" * 100)
            lost = dropped_lines()
            assert 0 < lost <= LINES_HELD
            log.flush()  # gives up
            os.set_blocking(source, False)
            seen = drained(source)
            while len(seen.splitlines()) < 2 * LINES_HELD - lost:
                log.flush()
                seen += drained(source)
            log.flush()
            seen += drained(source)
            assert sum(map(int, re.findall(r"(\d+) log lines are lost", seen))) == lost
            assert "line 0: " in seen and f"line {2 * LINES_HELD - 1}: " not in seen
            LOGGER.info("and on it goes")
            log.close()
        end.close()
        os.set_blocking(source, True)
        assert reader.read().endswith("and on it goes\n")


def drained(source: int) -> str:
    found = b""
    try:
        while piece := os.read(source, 1 << 16):
            found += piece
    except BlockingIOError:
        return found.decode()
    return found.decode()


@pytest.mark.parametrize("blocking", [True, False])
def test_a_stderr_that_others_made_non_blocking_gets_every_line(blocking: bool) -> None:
    source, sink = os.pipe()
    os.set_blocking(sink, blocking)
    with open(source, encoding="utf-8") as reader, open(sink, "w") as end:
        with stderr_is(sink):
            log = log_to_stderr("text", logging.INFO)
            for number in range(2000):
                LOGGER.info("line %d: %s", number, "x" * 100)
            lines = [reader.readline() for _ in range(2000)]
            log.close()
        end.close()
    assert lines[-1].split(": ")[1] == "line 1999"
    assert dropped_lines() == 0


def test_a_stderr_that_is_gone_ends_nothing() -> None:
    source, sink = os.pipe()
    os.close(source)
    with stderr_is(sink):
        log = log_to_stderr("text", logging.INFO)
        os.close(sink)
        LOGGER.info("to nobody")
        log.close()
    assert dropped_lines() == 1
