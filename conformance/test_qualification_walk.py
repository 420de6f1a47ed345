"""Random walks with more ranks than the graphs have keep the invariants."""

from __future__ import annotations

import os

import pytest

from conformance.qualification_walk import walk

FLOORS = {
    "Observe Observed": 50,
    "Enter": 300,
    "Exchange Agreed": 250,
    "Exchange Refused": 4,
    "Exchange Expired": 10,
    "Hold Acquired": 6,
    "Contend Blocked": 10,
    "Release": 8,
    "Reacquire Acquired": 6,
    "CloseIdentity Same": 6,
    "CommitTranscript": 6,
    "Contain": 8,
    "Consume EveryMaster": 4,
    "Consume Failure": 10,
    "Consume Refused": 2,
    "Shutdown": 10,
    "Abort Gone": 8,
    "RaiseOrdinary": 8,
    "RaiseControl": 8,
    "Expire": 15,
    "Stray": 10,
    "Turn": 40,
}


@pytest.mark.slow
def test_random_walks_keep_the_invariants() -> None:
    walks = walk(walks=40, steps=80, fresh="CONFORMANCE_SEED" in os.environ)
    assert walks.missing(FLOORS) == []
    assert walks.steps > 2000
