"""Random walks with more ranks than the graphs have keep the invariants."""

from __future__ import annotations

import os

import pytest

from conformance.qualification_walk import walk

FLOORS = {
    "Observe Observed": 30,
    "Enter": 300,
    "Exchange Agreed": 250,
    "Exchange Refused": 2,
    "Exchange Expired": 8,
    "Hold Acquired": 6,
    "Contend Blocked": 20,
    "Release": 30,
    "Reacquire Acquired": 10,
    "CloseIdentity Same": 10,
    "CommitTranscript": 10,
    "Contain": 6,
    "Consume EveryMaster": 8,
    "Consume Success": 5,
    "Consume Failure": 12,
    "Consume Refused": 4,
    "Shutdown": 12,
    "Abort Gone": 10,
    "RaiseOrdinary": 6,
    "RaiseControl": 7,
    "Expire": 15,
    "Stray": 14,
    "Turn": 17,
}


@pytest.mark.slow
def test_random_walks_keep_the_invariants() -> None:
    walks = walk(walks=50, steps=80, fresh="CONFORMANCE_SEED" in os.environ)
    assert walks.missing(FLOORS) == []
    assert walks.steps > 2000
