"""A recording says of each line whose step it is; one of a former release is read as its parameters tell."""

from __future__ import annotations

import json

import pytest

from conformance.engine.trace import TraceError
from conformance.recording import lines_of

# One line each, as releases wrote them whose recordings do not name protocols.
FORMER = """\
{"schema": "smtspool-trace-v1"}
{"sequence": 1, "clock": 7.1, "pid": 9, "thread": "scans", "action": "TryLock", "params": {"consumer": "9"}, "outcome": "Acquire"}
{"sequence": 2, "clock": 7.2, "pid": 9, "thread": "worker-0", "action": "Enter", "params": {"race": "s:1", "query": "5f"}, "outcome": null}
{"sequence": 3, "clock": 7.3, "pid": 9, "thread": "worker-0", "action": "Submit", "params": {"race": "s:1", "solver": "z3", "attempt": "s:1.1"}, "outcome": null}
{"sequence": 4, "clock": 7.4, "pid": 9, "thread": "pool-0", "action": "Register", "params": {"solver": "z3", "attempt": "s:1.1", "query": "5f"}, "outcome": null}
{"sequence": 5, "clock": 7.5, "pid": 9, "thread": "MainThread", "action": "Shut", "params": {"portfolio": "s:"}, "outcome": null}
{"sequence": 6, "clock": 7.6, "pid": 9, "thread": "profile", "action": "Observe", "params": {"record": "ab"}, "outcome": null}
{"sequence": 7, "clock": 7.7, "pid": 9, "thread": "profile", "action": "LoadState", "params": {}, "outcome": "loaded"}
{"sequence": 8, "clock": 7.8, "pid": 9, "thread": "master", "action": "Observe", "params": {"rank": 0, "at": "startup"}, "outcome": null}
{"sequence": 9, "clock": 7.9, "pid": 9, "thread": "master", "action": "Release", "params": {"rank": 0, "round": 1}, "outcome": null}
"""  # noqa: E501
PROTOCOLS = [
    "spool_admission", "race", "race", "cancellation", "race", "profile_recovery", "profile_recovery",
    "qualification", "qualification",
]  # fmt: skip
LINES = FORMER.splitlines(keepends=True)
NOT_WHOLE = {
    "empty": "",
    "cut": FORMER[:-5],
    "head only": LINES[0],
    "no head": "".join(LINES[1:]),
    "foreign": FORMER.replace("smtspool-trace-v1", "another-trace-v9"),
    "standing still": "".join([*LINES[:3], LINES[2], *LINES[3:]]),
    "no clock": FORMER.replace('"clock": 7.2, ', ""),
}


@pytest.mark.parametrize("text", NOT_WHOLE.values(), ids=NOT_WHOLE)
def test_a_recording_that_is_not_whole_is_an_error(text: str) -> None:
    with pytest.raises(TraceError):
        lines_of(text)


def test_a_recording_of_a_former_release_is_read_as_its_parameters_tell() -> None:
    assert [line.protocol for line in lines_of(FORMER)] == PROTOCOLS
    assert [line.number for line in lines_of(FORMER, {"race"})] == [3, 4, 6]


def test_what_a_line_says_counts_whatever_its_parameters_are() -> None:
    head, *lines = FORMER.splitlines()
    told = [json.dumps({**json.loads(line), "protocol": "another"}) for line in lines]
    assert {line.protocol for line in lines_of("\n".join([head, *told, ""]))} == {"another"}


def test_lines_of_a_protocol_that_has_no_such_action_are_an_error() -> None:
    with pytest.raises(TraceError, match="line 5: cancellation has no action Register"):
        lines_of(FORMER, {"cancellation"}, {"Settle"})
    with pytest.raises(TraceError, match="no step of another"):
        lines_of(FORMER, {"another"})
