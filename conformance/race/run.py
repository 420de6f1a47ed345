"""The graphs of races, driven in processes of their own, each with today's code or with a mutant."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from conformance import driving
from conformance.cancellation.environment import Helpers
from conformance.driving import told
from conformance.engine.gates import Gate
from conformance.engine.graph import load
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Replay
from conformance.race.mutants import MUTANTS, SHOWS_IN
from conformance.race.system import MODULE, RaceAdapter
from conformance.race.walk import walk
from conformance.report import Figures, Kill, Report

__all__ = ["GRAPHS", "drive_all", "hunt", "hunt_all", "replay", "run"]

ENTRY = "conformance.race.run:serve"
# What the cfg of the same name in models/cancellation bounds.
GRAPHS: Mapping[str, Mapping[str, Any]] = {
    "RaceAnswers": {},
    "RaceHedged": {"hedged": True},
    "RaceCancel": {"cpus": 1},
    "RaceQueue": {"checked": False, "busy": 2, "queue": True},
    "RaceClose": {"cpus": 1},
}
# Wherever a fault shows, it shows in one of so many tours: of the graph that is about it, and of the others.
_LIKELY_TOURS, _OTHER_TOURS = 300, 30


@contextmanager
def replay(graph: str, *, patience_s: float = 10.0) -> Iterator[Replay]:
    """One committed graph and fresh systems of the code in this process."""
    with Helpers() as helpers:
        adapter = RaceAdapter(f"race/{graph}", helpers, GRAPHS[graph], patience_s=patience_s)
        yield Replay(load(MODULE.with_name(f"{graph}.graph.xz")), adapter)


def serve(gate: Gate) -> None:
    """A process that drives graphs when it is called."""
    driving.serve(gate, replay)


def drive_all(*, workers: int) -> Figures:
    """Every graph whole. Raises :class:`Divergence` when code and model differ."""
    return driving.drive_all(ENTRY, GRAPHS, workers=workers)


def hunt(mutant: Mutant) -> Kill:
    """Drive the first tours of each graph through a mutant until something differs."""
    likely = SHOWS_IN.get(mutant.name, "RaceAnswers")
    tours = {likely: _LIKELY_TOURS, **{graph: _OTHER_TOURS for graph in GRAPHS if graph != likely}}
    return driving.hunt(ENTRY, mutant, tours)


def run(*, say: Callable[[str], None], workers: int) -> Report:
    """Everything that races require."""
    started = time.monotonic()
    figures = drive_all(workers=workers)
    say(f"race: {figures.edges} edges, {figures.refusals} refusals, {figures.seconds:.0f} s")
    kills = tuple(told("race", hunt_all(workers=workers), say))
    walks = walk(walks=120, steps=60, fresh=True)
    say(f"race: {walks.steps} random steps: {dict(walks.counts)}")
    return Report("race", figures, walks.steps, 0, kills, time.monotonic() - started)


def hunt_all(*, workers: int) -> Iterator[Kill]:
    """All named mutants."""
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(hunt, MUTANTS)
