"""A trace: every action of a run, in order, one JSON line each."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from smtspool.actions import Protocol
from smtspool.errors import MisuseError
from smtspool.service import Campaign, Service, Settings, traced
from tests.service.support import equation, submit, until

action = Protocol("spool_admission").action
solver_action = Protocol("cancellation", ordered=True).action


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_says_what_who_when_and_how_it_ended(tmp_path: Path) -> None:
    with traced(tmp_path / "trace", clock=lambda: 12.5), action("TryLock", consumer="c1") as step:
        step.outcome = "Busy"
    head, line = lines(tmp_path / "trace")
    assert head == {"schema": "smtspool-trace-v1"}
    assert line == {
        "sequence": 1,
        "clock": 12.5,
        "pid": os.getpid(),
        "thread": threading.current_thread().name,
        "protocol": "spool_admission",
        "action": "TryLock",
        "params": {"consumer": "c1"},
        "outcome": "Busy",
    }


@pytest.mark.parametrize("read", [False, True])
def test_a_pipe_is_refused_for_a_step_would_wait_for_its_reader(tmp_path: Path, read: bool) -> None:
    os.mkfifo(tmp_path / "trace")
    reader = os.open(tmp_path / "trace", os.O_RDONLY | os.O_NONBLOCK) if read else None
    with pytest.raises(MisuseError, match="is a pipe, and a trace needs a file"), traced(tmp_path / "trace"):
        pass
    if reader is not None:
        os.close(reader)


def test_an_error_that_escapes_a_step_is_recorded(tmp_path: Path) -> None:
    with traced(tmp_path / "trace"), pytest.raises(ZeroDivisionError), action("Move", files=frozenset("a")):
        raise ZeroDivisionError("no")
    assert lines(tmp_path / "trace")[1]["error"] == "ZeroDivisionError: no"
    assert lines(tmp_path / "trace")[1]["params"] == {"files": ["a"]}


def test_a_second_record_is_appended(tmp_path: Path) -> None:
    for name in ("List", "Release"):
        with traced(tmp_path / "trace"), action(name):
            pass
    assert [line.get("action", "head") for line in lines(tmp_path / "trace")] == ["head", "List", "Release"]


def test_a_run_of_the_service_is_recorded(campaign: Campaign, tmp_path: Path) -> None:
    submit(campaign, a=equation(1))
    with (
        traced(tmp_path / "trace"),
        Service(campaign, Settings(jobs=1, engines=("bitwuzla", "z3")), once=True) as service,
    ):
        until(lambda: service.join(0.1), "the end")
    _, *steps = lines(tmp_path / "trace")
    assert [step["sequence"] for step in steps] == list(range(1, len(steps) + 1))
    assert {"TryLock", "List", "Commit", "Move", "Release", "Register", "Exchange", "Settle"} <= {
        step["action"] for step in steps
    }


def test_a_trace_that_cannot_go_on_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    with traced(Path("/dev/full")):
        for _ in range(3):
            with action("List"):
                pass
    assert caplog.text.count("the trace ends here") == 1


def test_a_step_of_an_ordered_protocol_waits_for_the_one_before_and_no_other_does(tmp_path: Path) -> None:
    begun = threading.Event()

    def settle() -> None:
        begun.set()
        with solver_action("Settle", solver="z3"):
            pass

    with traced(tmp_path / "trace"):
        other = threading.Thread(target=settle)
        with solver_action("Register", solver="z3"):
            other.start()
            begun.wait()
            with action("List", consumer="c1"):
                pass
        other.join()
    names = [line["action"] for line in lines(tmp_path / "trace")[1:]]
    assert names == ["List", "Register", "Settle"]
