"""Random walks with more requests than the graphs have keep the invariants."""

from __future__ import annotations

import os

import pytest

from conformance.cancellation.walk import walk

FLOORS = {
    "Register": 50,
    "Register ClosedError": 5,
    "AcquireIO acquired": 50,
    "AcquireIO busy": 20,
    "AcquireIO left": 10,
    "Admit cold": 20,
    "Admit warm": 2,
    "Admit cancelled": 5,
    "Spawn": 20,
    "Exchange sent": 20,
    "Answer sat": 5,
    "Settle answered": 5,
    "Settle user": 5,
    "Retire": 20,
    "Unregister": 50,
    "CancelSolver": 50,
    "Crash": 5,
    "Close": 5,
}


@pytest.mark.slow
def test_random_walks_keep_the_invariants() -> None:
    walks = walk(walks=60, steps=50, fresh="CONFORMANCE_SEED" in os.environ)
    assert walks.missing(FLOORS) == []
    assert walks.steps > 1500
