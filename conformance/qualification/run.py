"""The graphs of qualification, driven in processes of their own, each with today's code or with a mutant."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from conformance import driving
from conformance.driving import told
from conformance.engine.gates import Gate
from conformance.engine.graph import load
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Divergence, Replay
from conformance.qualification.environment import places
from conformance.qualification.mutants import MUTANTS, SHOWS_IN
from conformance.qualification.sweep import sweep
from conformance.qualification.system import MODULE, QualificationAdapter
from conformance.qualification.trace import check, explain
from conformance.qualification.walk import walk
from conformance.report import Figures, Kill, Report

__all__ = ["GRAPHS", "HOSTS", "drive_all", "hunt", "places", "replay", "run"]

ENTRY = "conformance.qualification.run:serve"
# What the cfg of the same name in models/qualification bounds; those that take longest first.
GRAPHS: Mapping[str, Mapping[str, Any]] = {
    "GraphStart": {},
    "GraphRenew": {"renewals": 1, "alone": True},
    "GraphFaults": {},
    "GraphOneHost": {"hosts": ("hosta", "hosta"), "calmly": False},
    "GraphAccounting": {"renewals": 2},
    "GraphControl": {},
    "GraphInputs": {"start_at": 7},
}
# A fault that does not show in its graph may show in so many tours of another one.
_HUNT_TOURS = 30
HOSTS = ("hosta", "hostb")


@contextmanager
def replay(graph: str, *, patience_s: float = 10.0) -> Iterator[Replay]:
    """One committed graph and fresh fleets of the code in this process."""
    with places() as directories:
        adapter = QualificationAdapter(
            f"qualification/{graph}", directories, **GRAPHS[graph], patience_s=patience_s
        )
        yield Replay(load(MODULE.with_name(f"{graph}.graph.xz")), adapter)


def serve(gate: Gate) -> None:
    """A process that drives graphs when it is called."""
    driving.serve(gate, replay)


def drive_all(*, workers: int) -> Figures:
    """Every graph whole. Raises :class:`Divergence` when code and model differ."""
    return driving.drive_all(ENTRY, GRAPHS, workers=workers)


def hunt(mutant: Mutant) -> Kill:
    """Drive a mutant through the graph it should show in, and the first tours of the others, until something
    differs."""
    hint = SHOWS_IN[mutant.name]
    return driving.hunt(ENTRY, mutant, {hint: None, **{g: _HUNT_TOURS for g in GRAPHS if g != hint}})


def run(*, say: Callable[[str], None], workers: int) -> Report:
    """Everything that qualification requires."""
    started = time.monotonic()
    figures = drive_all(workers=workers)
    say(f"qualification: {figures.edges} edges, {figures.refusals} refusals, {figures.seconds:.0f} s")
    with ThreadPoolExecutor(workers) as pool:
        kills = tuple(told("qualification", pool.map(hunt, MUTANTS), say))
    walks = walk(walks=50, steps=80, fresh=True)
    say(f"qualification: {walks.steps} random steps: {dict(walks.counts)}")
    with places() as directories:
        runs = list(sweep(directories, HOSTS, renewals=1))
    say(f"qualification: {len(runs)} calls struck: {dict(Counter(run.struck for run in runs))}")
    recordings = [run.lines for run in runs]
    for lines, verdict in zip(recordings, check(recordings, HOSTS), strict=True):
        if not verdict.accepted:
            raise Divergence(f"qualification: {explain(lines, verdict)}", "trace")
    spent = time.monotonic() - started
    return Report("qualification", figures, walks.steps, len(recordings), kills, spent)
