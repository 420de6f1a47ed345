"""Everything that profile recovery requires of its code: graphs, oracles, mutants, walks, recordings."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.driving import told
from conformance.engine.gates import Nursery
from conformance.engine.graph import load
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Divergence, Replay
from conformance.profile_recovery.mutants import MUTANTS, SHOWS_IN
from conformance.profile_recovery.oracle import ANSWERS, DOMAINS, check_answers, check_domains
from conformance.profile_recovery.stress import BOUNDS as STRESS_BOUNDS
from conformance.profile_recovery.stress import stress
from conformance.profile_recovery.system import MODULE, Bounds, ProfileAdapter
from conformance.profile_recovery.trace import check, explain
from conformance.profile_recovery.walk import BOUNDS as WALK_BOUNDS
from conformance.profile_recovery.walk import walk
from conformance.report import Figures, Kill, Report

__all__ = ["ENTRY", "GRAPHS", "drive_all", "hunt", "replay", "run"]

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
# Tours where a fault is known to show, tours of each other graph, windows.
_HUNT_TOURS, _LOOK_TOURS, _HUNT_CASES = 40, 8, 200


@contextmanager
def replay(graph: str, mutant: Mutant | None = None, *, patience_s: float = 10.0) -> Iterator[Replay]:
    """One committed graph and fresh systems of today's code, or of a mutant of it."""
    with Nursery(ENTRY, mutant.to_json() if mutant else "[]") as nursery:
        adapter = ProfileAdapter(f"profile/{graph}", nursery, GRAPHS[graph], patience_s=patience_s)
        yield Replay(load(MODULE.with_name(f"{graph}.graph.xz")), adapter)


def drive_all(*, workers: int) -> Figures:
    """Every graph whole. Raises :class:`Divergence` when code and model differ."""
    total = Figures()
    for graph in GRAPHS:
        with replay(graph) as driven:
            total += Figures.of(driven.run(workers=workers))
    return total


def hunt(mutant: Mutant) -> Kill:
    """Drive the first tours of each graph through a mutant, and ask each oracle, until something differs."""
    mutant.check()
    started = time.monotonic()
    wheres = sorted([*GRAPHS, DOMAINS, ANSWERS], key=lambda where: where != SHOWS_IN.get(mutant.name))
    for where in wheres:
        try:
            if where == DOMAINS:
                check_domains(mutant.to_json(), cases=_HUNT_CASES, seed=305)
            elif where == ANSWERS:
                check_answers(mutant.to_json())
            else:
                with replay(where, mutant) as driven:
                    known = where == SHOWS_IN.get(mutant.name)
                    driven.run(longest=80, most_tours=_HUNT_TOURS if known else _LOOK_TOURS)
        except Divergence as difference:
            spent = time.monotonic() - started
            return Kill(mutant, difference.detector, str(difference)[:20_000], spent)
    return Kill(mutant, None, "survived", time.monotonic() - started)


def run(*, say: Callable[[str], None], workers: int) -> Report:
    """Everything that profile recovery requires. Raises :class:`Divergence` when code and model differ."""
    started = time.monotonic()
    figures = drive_all(workers=workers)
    say(f"profile: {figures.edges} edges, {figures.refusals} refusals, {figures.seconds:.0f} s")
    suppressed = check_domains(cases=500, seed=int.from_bytes(os.urandom(2)))
    say(f"profile: 500 windows, {suppressed} with a suppression, and {check_answers()} probed queries agree")
    with ThreadPoolExecutor(workers) as pool:
        kills = tuple(told("profile", pool.map(hunt, MUTANTS), say))
    with Nursery(ENTRY) as nursery:
        walks = walk(nursery, walks=30, steps=60, fresh=True)
    say(f"profile: {walks.steps} random steps, {len(walks.transitions)} transitions: {dict(walks.counts)}")
    with TemporaryDirectory(prefix="stress-") as folder:
        free = [stress(Path(folder), int.from_bytes(os.urandom(2)), kills=6)]
    for recordings, bounds in ((walks.recordings, WALK_BOUNDS), (free, STRESS_BOUNDS)):
        for lines, verdict in zip(recordings, check(recordings, bounds), strict=True):
            if not verdict.accepted:
                raise Divergence(f"profile: {explain(lines, verdict)}", "trace")
    traces, seconds = len(walks.recordings) + len(free), time.monotonic() - started
    return Report("profile", figures, walks.steps, traces, kills, seconds)
