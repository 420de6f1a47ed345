"""Random walks with more ranks than the graphs have keep the invariants."""

from __future__ import annotations

import os

import pytest

from conformance.qualification.walk import walk

FLOORS = {
    "Observe Observed": 7,
    "Enter": 75,
    "Exchange Agreed": 62,
    "Exchange Refused": 1,
    "Exchange Expired": 2,
    "Hold Acquired": 1,
    "Contend Blocked": 5,
    "Release": 7,
    "Reacquire Acquired": 2,
    "CloseIdentity Same": 2,
    "CommitTranscript": 2,
    "Contain": 1,
    "Consume EveryMaster": 2,
    "Consume Success": 1,
    "Consume Failure": 3,
    "Consume Refused": 1,
    "Shutdown": 3,
    "Abort Gone": 2,
    "RaiseOrdinary": 1,
    "RaiseControl": 1,
    "Expire": 3,
    "Stray": 3,
    "Turn": 4,
}


@pytest.mark.slow
def test_random_walks_keep_the_invariants() -> None:
    walks = walk(walks=50, steps=80, fresh="CONFORMANCE_SEED" in os.environ)
    assert walks.missing(FLOORS) == []
    assert walks.steps > 2000
