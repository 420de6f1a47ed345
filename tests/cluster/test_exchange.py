"""The exchange: bounded messages, all or nobody, before a deadline."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from smtspool.cluster import FROM_ROOT, TO_ROOT, Capability, Code, QualificationResult
from tests.cluster.bus import Bus, BusCommunicator
from tests.cluster.fleet import EPOCH, qualify_all

Change = Callable[[dict[str, Any]], Any]


class Rewriting(BusCommunicator):
    """A rank whose messages of one phase are changed on their way."""

    def __init__(self, bus: Bus, rank: int, phase: str, change: Callable[[bytes], bytes]) -> None:
        super().__init__(bus, rank)
        self._phase = phase
        self._change = change

    def isend(self, frame: bytes, dest: int, tag: int) -> Any:
        if json.loads(frame)["phase"] == self._phase:
            frame = self._change(frame)
        return super().isend(frame, dest, tag)


def document(change: Change) -> Callable[[bytes], bytes]:
    """A change of the parsed message; what it returns, if anything, takes its place."""

    def changed(frame: bytes) -> bytes:
        message = json.loads(frame)
        return json.dumps(change(message) or message).encode()

    return changed


def put(*path: str, value: Any) -> Callable[[bytes], bytes]:
    def change(message: dict[str, Any]) -> None:
        for name in path[:-1]:
            message = message[name]
        message[path[-1]] = value

    return document(change)


def without(name: str) -> Callable[[bytes], bytes]:
    return document(lambda message: {key: value for key, value in message.items() if key != name})


MALFORMED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda frame: b"",
    "not JSON": lambda frame: frame[:-1],
    "not UTF-8": lambda frame: b"\xff" + frame,
    "a pickle": lambda frame: b"\x80\x04N.",
    "an array": document(lambda message: [message]),
    "a number": lambda frame: b"7",
    "deep": lambda frame: b"[" * 100_000,
    "NaN": lambda frame: frame.replace(b'"round": 0', b'"round": NaN'),
    "a member twice": lambda frame: frame.replace(b"{", b'{"round": 0, ', 1),
    "a huge number": lambda frame: frame.replace(b'"round": 0', b'"round": ' + b"9" * 5000),
    "too long": lambda frame: frame + b" " * (1 << 21),
    "another schema": put("schema", value="symcc-cluster-lock-exchange-v1"),
    "no schema": without("schema"),
    "no epoch": put("epoch", value="E"),
    "no place": put("place", value=[0, 1]),
    "a place of bools": put("place", value=[False, True, 0]),
    "one member more": put("more", value=1),
    "one member less": without("phase"),
    "another phase": put("phase", value="commit"),
    "another round": put("round", value=5),
    "from the future": put("place", value=[0, 1, 99]),
    "a generation ahead": put("place", value=[1, 1, 0]),
}
RECORDS = {
    "the record of another rank": put("rank", value=0),
    "the record is a text": put("record", value="fine"),
    "ok is 1": put("record", "ok", value=1),
    "ok with an error": put("record", "error", value="but"),
    "not ok without an error": put("record", "ok", value=False),
    "the error is a number": put("record", "error", value=7),
    "the error is long": put("record", value={"ok": False, "error": "x" * 513}),
    "one fact more": put("record", "more", value=1),
    "one fact less": put("record", value={"ok": True, "error": ""}),
    "no boot id": put("record", value={"ok": True, "error": "", "processor": "b"}),
    "a boot id that is none": put("record", "boot", value="x" * 36),
    "a boot id without a text": put("record", "boot", value=None),
}
ANSWERS = {
    "the error is a number": put("error", value=7),
    "no records": put("records", value=[]),
    "a record of nobody": document(lambda message: {**message, "records": message["records"] * 2}),
    "records are a text": put("records", value="all"),
}


def refused(results: list[QualificationResult], by: int) -> None:
    for result in results:
        assert (result.clean, result.verified) == (False, False)
        assert result.proof.transcript == ""
    diagnostic = results[by].diagnostic
    assert diagnostic is not None
    assert diagnostic.code is Code.MALFORMED, diagnostic


@pytest.mark.parametrize("change", (MALFORMED | RECORDS).values(), ids=(MALFORMED | RECORDS).keys())
def test_a_record_that_is_not_one_fails_all_ranks_at_once(
    probed: Capability, change: Callable[[bytes], bytes]
) -> None:
    bus = Bus(3)
    comms = [BusCommunicator(bus, 0), Rewriting(bus, 1, "membership", change), BusCommunicator(bus, 2)]
    refused(qualify_all(probed, "abc", comms=comms, epoch=EPOCH), by=0)


@pytest.mark.parametrize("change", (MALFORMED | ANSWERS).values(), ids=(MALFORMED | ANSWERS).keys())
def test_an_answer_that_is_not_one_fails_the_rank_that_reads_it(
    probed: Capability, change: Callable[[bytes], bytes]
) -> None:
    bus = Bus(2)
    comms = [Rewriting(bus, 0, "membership", change), BusCommunicator(bus, 1)]
    refused(qualify_all(probed, "ab", comms=comms, epoch=EPOCH, timeout=0.3), by=1)


@pytest.mark.parametrize("seconds", [-1.0, 3601.0, 1, "soon", None])
def test_a_deadline_that_is_none_is_refused(probed: Capability, seconds: Any) -> None:
    bus = Bus(2)
    comms = [Rewriting(bus, 0, "membership", put("seconds", value=seconds)), BusCommunicator(bus, 1)]
    results = qualify_all(probed, "ab", comms=comms, epoch=EPOCH, timeout=0.3)
    refused(results, by=1)
    assert "announced no deadline" in results[1].error


@pytest.mark.parametrize(
    "change",
    [put("epoch", value="0" * 64), put("place", value=[0, 0, 7])],
    ids=["another epoch", "an earlier attempt"],
)
def test_what_is_from_before_is_dropped_and_counted_however_it_looks(
    probed: Capability, change: Callable[[bytes], bytes]
) -> None:
    bus = Bus(2)
    comms = bus.communicators()
    stale = Rewriting(bus, 1, "membership", change)
    place = {"schema": "smtspool-cluster-record-v1", "epoch": EPOCH, "place": [0, 1, 0]}
    record = {"phase": "membership", "round": 0, "rank": 1, "record": None}
    for _ in range(3):
        stale.isend(json.dumps({**place, **record}).encode(), 0, TO_ROOT)
    answer = {"phase": "membership", "round": 0, "seconds": 0, "error": "", "records": []}
    answer |= {**place, "schema": "smtspool-cluster-answer-v1"}
    Rewriting(bus, 0, "membership", change).isend(json.dumps(answer).encode(), 1, FROM_ROOT)
    results = qualify_all(probed, "ab", comms=comms, epoch=EPOCH)
    assert [(result.verified, result.stale) for result in results] == [(True, 3), (True, 1)]


@pytest.mark.parametrize(
    ("rank", "size"), [(True, 2), (0, True), (-1, 2), (2, 2), (0, 0), ("0", 2), (0, 1025), (0.0, 1)]
)
def test_a_communicator_of_a_strange_shape_is_refused_before_a_message(
    probed: Capability, rank: Any, size: Any
) -> None:
    class Strange(BusCommunicator):
        def Get_rank(self) -> Any:
            return rank

        def Get_size(self) -> Any:
            return size

    bus = Bus(1)
    [result] = qualify_all(probed, "a", comms=[Strange(bus, 0)])
    assert not result.clean
    assert bus.waiting() == 0


def test_a_message_that_does_not_leave_is_no_proof(probed: Capability) -> None:
    class Stuck(BusCommunicator):
        def isend(self, frame: bytes, dest: int, tag: int) -> Any:
            super().isend(frame, dest, tag)
            return self

        def Test(self) -> bool:
            return False

    bus = Bus(2)
    first, second = qualify_all(
        probed, "ab", comms=[Stuck(bus, 0), BusCommunicator(bus, 1)], timeout=0.5, epoch=EPOCH
    )
    assert (first.clean, second.verified) == (False, True)  # the last answer: one may miss it, and says so
    assert "did not leave" in first.error


def test_waiting_is_pausing_ever_longer_and_never_past_the_deadline(probed: Capability) -> None:
    now = [0.0]
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    bus = Bus(2)
    [result] = qualify_all(
        probed, "a", comms=[BusCommunicator(bus, 0)], timeout=0.1, clock=lambda: now[0], pause=pause
    )
    assert not result.clean
    assert pauses == sorted(pauses[:-1]) + pauses[-1:]
    assert max(pauses) <= 0.005
    assert now[0] == pytest.approx(0.1)
    assert len(pauses) < 40
