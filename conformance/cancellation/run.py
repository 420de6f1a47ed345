"""The graphs of cancellation, driven in processes of their own, each with today's code or with a mutant."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from conformance import driving
from conformance.cancellation.mutants import MUTANTS, SHOWS_IN
from conformance.cancellation.stress import stress
from conformance.cancellation.system import MODULE, CancellationAdapter, Helpers
from conformance.cancellation.trace import check, explain
from conformance.cancellation.walk import walk
from conformance.driving import told
from conformance.engine.gates import Gate
from conformance.engine.graph import load
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Divergence, Replay
from conformance.report import Figures, Kill, Report

__all__ = ["GRAPHS", "drive_all", "hunt", "replay", "run"]

ENTRY = "conformance.cancellation.run:serve"
_BOTH: Mapping[str, str] = {"r1": "a", "r2": "b"}
_ONE = frozenset({"r1"})
# What the cfg of the same name in models/cancellation bounds.
GRAPHS: Mapping[str, Mapping[str, Any]] = {
    "GraphCancel": {"queries": _BOTH, "cancellers": ("c",)},
    "GraphSame": {"queries": {"r1": "a", "r2": "a"}, "cancellers": ("c",)},
    "GraphClose": {"queries": _BOTH, "cancellers": ()},
    "GraphFaults": {"queries": {"r1": "a"}, "cancellers": ("c",), "racing": _ONE, "limited": _ONE},
}
# Wherever a fault shows, it shows in one of so many tours of one of the graphs.
_HUNT_TOURS = 250
_RACES = 4  # recordings of free-running threads


@contextmanager
def replay(graph: str, *, patience_s: float = 10.0) -> Iterator[Replay]:
    """One committed graph and fresh systems of the code in this process."""
    with Helpers() as helpers:
        adapter = CancellationAdapter(f"cancellation/{graph}", helpers, GRAPHS[graph], patience_s=patience_s)
        yield Replay(load(MODULE.with_name(f"{graph}.graph.xz")), adapter)


def serve(gate: Gate) -> None:
    """A process that drives graphs when it is called."""
    driving.serve(gate, replay)


def drive_all(*, workers: int) -> Figures:
    """Every graph whole. Raises :class:`Divergence` when code and model differ."""
    return driving.drive_all(ENTRY, GRAPHS, workers=workers)


def hunt(mutant: Mutant, *, first: str = "", tours: int = _HUNT_TOURS) -> Kill:
    """Drive the first tours of each graph through a mutant, of ``first`` or of the likely one ahead of all,
    until something differs."""
    likely = first or SHOWS_IN.get(mutant.name, "GraphCancel")
    order = sorted(GRAPHS, key=lambda graph: graph != likely)
    return driving.hunt(ENTRY, mutant, dict.fromkeys(order, tours))


def run(*, say: Callable[[str], None], workers: int) -> Report:
    """Everything that cancellation requires."""
    started = time.monotonic()
    figures = drive_all(workers=workers)
    say(f"cancellation: {figures.edges} edges, {figures.refusals} refusals, {figures.seconds:.0f} s")
    with ThreadPoolExecutor(workers) as pool:
        kills = tuple(told("cancellation", pool.map(hunt, MUTANTS), say))
    walks = walk(walks=60, steps=50, fresh=True)
    say(f"cancellation: {walks.steps} random steps: {dict(walks.counts)}")
    seed = int.from_bytes(os.urandom(2))
    runs = [stress(seed + number, asking=3, requests=6, kills=2) for number in range(_RACES)]
    for race, verdict in zip(runs, check([race.lines for race in runs]), strict=True):
        if not (race.sound and verdict.accepted):
            raise Divergence(f"cancellation: seed {seed}: {explain(race.lines, verdict)}", "trace")
    return Report("cancellation", figures, walks.steps, len(runs), kills, time.monotonic() - started)
