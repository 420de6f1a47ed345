"""Random walks beyond the bound."""

from __future__ import annotations

import os

import pytest

from conformance.engine.gates import Nursery
from conformance.protocols import ENTRY
from conformance.spool_trace import check, explain
from conformance.spool_walk import BATCH, walk


@pytest.mark.slow
def test_random_walks_keep_the_invariants_and_are_behaviours_of_the_model() -> None:
    with Nursery(ENTRY) as nursery:
        walks = walk(nursery, walks=30, steps=30, fresh="CONFORMANCE_SEED" in os.environ)
    for step in (
        "TryLock Acquire",
        "TryLock Busy",
        "Verify good",
        "Verify bad",
        "Verify unstable",
        "Commit",
        "WriteSidecar",
        "Move moved",
        "Release",
        "Crash",
        "Publish",
        "Replace",
    ):
        assert walks.counts[step] > 0, f"{step} was never taken: {walks.counts}"
    assert walks.steps > 500
    assert len(walks.transitions) >= 20
    for recording, verdict in zip(walks.recordings, check(walks.recordings, batch=BATCH), strict=True):
        assert verdict.accepted, explain(recording, verdict)
