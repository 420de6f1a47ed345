"""Random walks of every protocol beyond the bound of its graphs."""

from __future__ import annotations

import os

import pytest

from conformance.contract import Protocol
from conformance.driving import repeat_walk, walk
from conformance.engine.replay import Divergence
from conformance.protocols import PROTOCOLS, named
from conformance.spool_admission.protocol import PROTOCOL as SPOOL_ADMISSION

each = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
FRESH = "CONFORMANCE_SEED" in os.environ


@pytest.mark.slow
@each
def test_random_walks_keep_the_invariants_and_are_behaviours_of_the_model(protocol: Protocol) -> None:
    expected = protocol.expected
    walks = walk(protocol, fresh=FRESH)
    assert walks.missing(expected.floors) == [], walks.counts
    if expected.rare is not None:
        assert set(walks.counts) - set(expected.rare) == set(expected.floors)
    assert walks.steps > expected.steps
    assert len(walks.transitions) >= expected.shapes and max(walks.transitions.values()) > 5
    if walks.recordings:
        made = next(iter(protocol.recordings(0, walks)))
        assert made.lines == walks.recordings
        for lines, verdict in zip(made.lines, made.check(made.lines), strict=True):
            assert verdict.accepted, made.explain(lines, verdict)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mutant", "steps"), [("spool", "no-lock", 8), ("profile", "observe-clean", 5)]
)
def test_a_walk_finds_a_fault_and_prints_the_shortest_way_to_it(name: str, mutant: str, steps: int) -> None:
    protocol, _ = named(name)
    fault = next(one for one in protocol.mutants if one.name == mutant).to_json()
    with pytest.raises(Divergence) as seen:
        walk(protocol, mutant=fault, walks=30, steps=steps)
    [line] = [text for text in seen.value.__notes__ if "--walk" in text]
    assert f"python -m conformance {protocol.name} --variant" in line
    path, variant = line.partition("--walk ")[2].strip("'"), line.split("--variant ")[1].split()[0]
    if protocol is SPOOL_ADMISSION:
        assert path.count("TryLock") == path.count("name |->") == 1, path
    with pytest.raises(Divergence):
        repeat_walk(protocol, int(variant), path, mutant=fault)
    repeat_walk(protocol, int(variant), path)
