"""Random walks beyond the bound."""

from __future__ import annotations

import os

import pytest

from conformance.engine.gates import Nursery
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Divergence
from conformance.engine.walk import repeat
from conformance.engine.walk import walk as engine_walk
from conformance.protocols import ENTRY
from conformance.spool_admission.mutants import MUTANTS
from conformance.spool_admission.trace import check, explain
from conformance.spool_admission.walk import BATCH, SpoolWalks, walk

# How often 30 walks of 30 steps take each step, at the least: about half of what they do.
FLOORS = {
    "TryLock Acquire": 25,
    "TryLock Busy": 20,
    "List": 25,
    "Open": 40,
    "Verify good": 10,
    "Verify bad": 6,
    "Verify unstable": 3,
    "Commit": 6,
    "WriteSidecar": 4,
    "Move moved": 8,
    "Move replaced": 1,
    "Release": 8,
    "Crash": 8,
    "FailStore": 1,
    "FailMove": 1,
    "Publish": 40,
    "Replace": 40,
}


@pytest.mark.slow
def test_random_walks_keep_the_invariants_and_are_behaviours_of_the_model() -> None:
    with Nursery(ENTRY) as nursery:
        walks = walk(nursery, walks=30, steps=30, fresh="CONFORMANCE_SEED" in os.environ)
    assert not walks.missing(FLOORS), walks.counts
    assert set(walks.counts) - {"Release failed"} == set(FLOORS)  # rare: an error ended it
    assert walks.steps > 500
    assert len(walks.transitions) >= 60 and max(walks.transitions.values()) > 5
    for recording, verdict in zip(walks.recordings, check(walks.recordings, batch=BATCH), strict=True):
        assert verdict.accepted, explain(recording, verdict)


def mutant(name: str) -> Mutant:
    return next(mutant for mutant in MUTANTS if mutant.name == name)


@pytest.mark.slow
def test_a_walk_finds_a_fault_and_prints_the_shortest_way_to_it() -> None:
    with (
        Nursery(ENTRY, mutant("no-lock").to_json()) as nursery,
        pytest.raises(Divergence) as seen,
    ):
        engine_walk(SpoolWalks(nursery), walks=30, steps=8, fresh=False)
    [line] = [text for text in seen.value.__notes__ if "--walk" in text]
    path, variant = line.partition("--walk ")[2].strip("'"), line.split("--variant ")[1].split()[0]
    assert path.count("TryLock") == path.count("name |->") == 1, path
    with (
        Nursery(ENTRY, mutant("no-lock").to_json()) as nursery,
        pytest.raises(Divergence),
    ):
        repeat(SpoolWalks(nursery), int(variant), path)
    with Nursery(ENTRY) as nursery:
        repeat(SpoolWalks(nursery), int(variant), path)
