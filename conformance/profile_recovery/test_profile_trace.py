"""Recorded runs of real coordinators are behaviours of the model; damaged recordings are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial

import pytest

from conformance.engine.gates import Nursery
from conformance.engine.trace import Recorded
from conformance.engine.values import Function, Value, show
from conformance.profile_recovery.protocol import ENTRY
from conformance.profile_recovery.trace import check, damage
from conformance.profile_recovery.walk import BOUNDS, walks
from conformance.traces import explain, harmless, survivors

# The damage that is a behaviour all the same, and why.
HARMLESS = (
    # whoever asks changes nothing, and nothing is served before and after that Build
    r"line (10|17|31) \(Serve\) (dropped|doubled)",
    r"line 17 \(Serve\) swapped with Build",
    # digests are only names: another value leads to as many and as new domains there
    r"line (4|23) \(Observe\) has another record",
    # a write that failed may have taken place, and no later line depends on whether it counts
    r"line (8|21|30) \(WriteState\) goes failed not written",
    # the last write of a process that is killed may be unrecorded, and Serve does not mind it
    r"line 30 \(WriteState\) (dropped|swapped with Serve)",
)

# F305 section 6.2: published, other records under the label, replayed, published anew, a checkpoint that
# fails and is written by the next publish.
ARCHIVED: Sequence[str | tuple[str, Mapping[Value, Value]]] = (
    "Restart", "LoadState", "VerifyRuntime", ("Observe", {"record": "a"}), "Build", "WriteArtifact",
    "WriteRuntime", "WriteState", "Switch", "Serve", "Crash", ("Drift", {"records": ("b",)}),
    "Restart", "LoadState", "VerifyRuntime", "Replay", "Serve", "Build", "WriteArtifact", "WriteRuntime",
    "WriteState", "Switch", ("Observe", {"record": "c"}), "Build", "WriteArtifact", "WriteRuntime",
    ("FailWrite", {"file": "state", "landed": False}), "Switch", "Build", "WriteState", "Serve", "Crash",
)  # fmt: skip


@pytest.fixture(scope="module")
def archived() -> Sequence[Recorded]:
    """The archived scenario, recorded step by step; it ends with exactly its counters."""
    with Nursery(ENTRY) as nursery:
        walking = walks(nursery)
        with closing(walking.begin(0)) as system:
            for step in ARCHIVED:
                name, params = (step, {}) if isinstance(step, str) else step
                system.take(Function({"name": name, **params}))
            saved = show(system.project()["state"])
    for counted in (
        "generations_published |-> 3",
        "recovery_replays |-> 1",
        "recovery_replay_mismatches |-> 1",
        "checkpoint_failures |-> 1",
        "semantic_noops |-> 1",
        "publication_failures |-> 0",
    ):
        assert counted in saved
    (lines,) = walking.recordings
    return lines


def test_the_archived_scenario_is_a_behaviour_and_ends_with_its_counters(
    archived: Sequence[Recorded],
) -> None:
    (verdict,) = check([archived], BOUNDS)
    assert verdict.accepted, explain(archived, verdict)


@pytest.mark.slow
def test_every_systematic_damage_is_rejected(archived: Sequence[Recorded]) -> None:
    damaged = damage(archived)
    assert len(damaged) > 120
    survived = survivors(archived, damaged, partial(check, bounds=BOUNDS))
    assert survived == harmless(archived, damaged, HARMLESS)
