"""Profile recovery, as everything that holds models to code takes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.contract import Expected, Hunting, Protocol, Recordings
from conformance.engine.gates import Nursery
from conformance.engine.walk import Walks
from conformance.profile_recovery.mutants import MUTANTS, SHOWS_IN
from conformance.profile_recovery.oracle import ANSWERS, DOMAINS, check_answers, check_domains
from conformance.profile_recovery.stress import BOUNDS as STRESS_BOUNDS
from conformance.profile_recovery.stress import stress
from conformance.profile_recovery.system import MODULE, Bounds, adapter
from conformance.profile_recovery.trace import check
from conformance.profile_recovery.walk import BOUNDS as WALK_BOUNDS
from conformance.profile_recovery.walk import walks
from conformance.traces import explain

__all__ = ["ENTRY", "PROTOCOL"]

ENTRY = "conformance.profile_recovery.process:coordinate"
_BOTH = (True, False)
# What the cfg of the same name in models/profile_recovery bounds.
GRAPHS: Mapping[str, Bounds] = {
    "GraphFailures": Bounds("ab", landings=_BOTH),
    "GraphCrashes": Bounds("a", landings=_BOTH),
    "GraphWindow": Bounds("ab", window=2),
    "GraphDamage": Bounds("ab"),
    "GraphPolicy": Bounds("a", policies={"p": (1, 1), "q": (1, 2)}),
    "GraphStricter": Bounds("a", policies={"p": (1, 1), "r": (2, 1)}),
    "GraphCountFailures": Bounds(
        "a", counted=("publication_failures", "checkpoint_failures"), landings=(False,)
    ),
    "GraphCountReplays": Bounds("ab", counted=("recovery_replays", "recovery_replay_mismatches")),
    "GraphCountPublications": Bounds("a", counted=("generations_published", "semantic_noops")),
}


def _domains(mutant: str, cases: int, seed: int) -> str:
    return f"{cases} windows, {check_domains(mutant, cases=cases, seed=seed)} with a suppression, agree"


def _answers(mutant: str, cases: int, seed: int) -> str:
    return f"all {check_answers(mutant)} probed queries agree"


def _recordings(seed: int, walks: Walks) -> Iterator[Recordings]:
    yield Recordings(walks.recordings, partial(check, bounds=WALK_BOUNDS), explain)
    with TemporaryDirectory(prefix="stress-") as folder:
        lines = stress(Path(folder), seed, kills=6)
    yield Recordings([lines], partial(check, bounds=STRESS_BOUNDS), explain)


EXPECTED = Expected(
    driven=(4127, 13284, 8469, 11780),
    few=(3, 60),
    # The last speaks of answers, which real engines are asked for instead.
    temporal={"TypeOK", "ArtifactFirst", "CountersRise", "Settles", "ProbeDecidesNothing"},
    outside={
        "Restart",
        "FailWrite",
        "Crash",
        "Drift",
        "Truncate",
        "ChangePolicy",
        "Corrupt",
        "Remove",
    },
    undefined={"Remove"},  # Corrupt of a runtime file that leaves nothing
    floors={
        "Restart": 50,
        "LoadState absent": 20,
        "LoadState loaded": 15,
        "LoadState damaged": 1,
        "VerifyRuntime absent": 20,
        "VerifyRuntime verified": 12,
        "VerifyRuntime refused": 2,
        "Replay equal": 7,
        "Replay different": 2,
        "Observe": 140,
        "Build new": 40,
        "Build same": 70,
        "Build nothing": 1,
        "WriteArtifact written": 30,
        "WriteRuntime written": 25,
        "WriteState written": 90,
        "Switch": 25,
        "Serve served": 15,
        "Serve nothing": 9,
        "FailWrite artifact": 5,
        "FailWrite runtime": 1,
        "FailWrite state": 8,
        "Crash": 40,
        "ChangePolicy": 2,
        "Drift": 10,
        "Truncate": 1,
        "Corrupt": 5,
        "Remove": 1,
    },
    rare=(),
    steps=900,
    shapes=60,
    seen_by={
        **dict.fromkeys(("nine-values", "ratio-at-most", "legacy-suppresses"), DOMAINS),
        "probe-unsat-final": ANSWERS,
        # Each of these breaks an invariant of the model on the real state before anything else.
        "serve-in-doubt": "invariant NothingServedInDoubt",
        "checkpoint-ignored": "invariant DifferenceIsDirty",
        "stale-served": "invariant ServedIsJustified",
    },
    recorded=("Restart", "Crash", "Build", "WriteState", "Serve", "Observe"),
    small="GraphCountPublications",
    missed=dict.fromkeys(("Build", "Serve", "WriteState"), "GraphCountPublications"),
)

PROTOCOL = Protocol(
    package=__package__,
    module=MODULE,
    code="profile",
    steps=("profile_recovery",),
    graphs=tuple(GRAPHS),
    threads=False,
    shared=partial(Nursery, ENTRY),
    adapt=lambda nursery, graph, patience_s: adapter(nursery, GRAPHS[graph], patience_s),
    walk=walks,
    walking=(30, 60),
    mutants=MUTANTS,
    shows_in=SHOWS_IN,
    # Tours where a fault is known to show, and of each other graph.
    hunting=Hunting(likely=40, others=8, longest=80, patience_s=10.0),
    expected=EXPECTED,
    oracles={DOMAINS: _domains, ANSWERS: _answers},
    recordings=_recordings,
)
