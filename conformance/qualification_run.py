"""The graphs of qualification, driven in processes of their own, each with today's code or with a mutant."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from conformance.engine.gates import Gate, GateError, Idle, Nursery
from conformance.engine.graph import load
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Divergence, Replay
from conformance.qualification import MODULE, QualificationAdapter
from conformance.qualification_environment import places
from conformance.qualification_mutants import MUTANTS, SHOWS_IN
from conformance.qualification_sweep import sweep
from conformance.qualification_trace import check, explain
from conformance.qualification_walk import walk
from conformance.report import Figures, Kill, Report

__all__ = ["GRAPHS", "HOSTS", "drive_all", "hunt", "places", "replay", "run"]

ENTRY = "conformance.qualification_run:serve"
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
_AT_MOST_S = 300.0
HOSTS = ("hosta", "hostb")
_RECORDINGS = 24  # so many of the runs of a sweep are checked against the model


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

    def drive(graph: str, most_tours: int | None, patience_s: float) -> dict[str, Any]:
        with replay(graph, patience_s=patience_s) as driven:
            try:
                return {"figures": Figures.of(driven.run(most_tours=most_tours)).to_json()}
            except Divergence as difference:
                return {"detector": difference.detector, "message": str(difference)[:20_000]}

    gate.serve({"drive": drive})


def _drive(nursery: Nursery, graph: str, **how: Any) -> Mapping[str, Any]:
    driver = nursery.spawn(graph, {}, patience_s=_AT_MOST_S)
    try:
        position = driver.call("drive", graph=graph, **how)
    finally:
        driver.close()
    if not isinstance(position, Idle):
        raise GateError(f"the driver of {graph} came to {position}")
    if "raised" in position.result:
        raise GateError(f"the driver of {graph} raised {position.result}")
    found: Mapping[str, Any] = position.result
    return found


def drive_all(*, workers: int) -> Figures:
    """Every graph whole. Raises :class:`Divergence` when code and model differ."""
    with Nursery(ENTRY) as nursery, ThreadPoolExecutor(workers) as pool:
        every = pool.map(lambda graph: _drive(nursery, graph, most_tours=None, patience_s=10.0), GRAPHS)
        total = Figures()
        for found in every:
            if "detector" in found:
                raise Divergence(found["message"], found["detector"])
            total += Figures(**found["figures"])
    return total


def hunt(mutant: Mutant) -> Kill:
    """Drive a mutant through the graph it should show in, and the first tours of the others, until something
    differs."""
    mutant.check()
    started = time.monotonic()
    hint = SHOWS_IN[mutant.name]
    with Nursery(ENTRY, mutant.to_json()) as nursery:
        for graph in sorted(GRAPHS, key=lambda graph: graph != hint):
            tours = None if graph == hint else _HUNT_TOURS
            found = _drive(nursery, graph, most_tours=tours, patience_s=2.0)
            if "detector" in found:
                spent = time.monotonic() - started
                return Kill(mutant, found["detector"], found["message"], spent)
    return Kill(mutant, None, "survived", time.monotonic() - started)


def run(*, say: Callable[[str], None], workers: int) -> Report:
    """Everything that qualification requires."""
    started = time.monotonic()
    figures = drive_all(workers=workers)
    say(f"qualification: {figures.edges} edges, {figures.refusals} refusals, {figures.seconds:.0f} s")
    kills = []
    with ThreadPoolExecutor(workers) as pool:
        for kill in pool.map(hunt, MUTANTS):
            kills.append(kill)
            first = kill.message.partition("\n")[0][:150]
            name = kill.mutant.name
            say(f"qualification: {name}: {kill.detector or 'survived'} ({kill.seconds:.1f} s): {first}")
    walks = walk(walks=50, steps=80, fresh=True)
    say(f"qualification: {walks.steps} random steps: {dict(walks.counts)}")
    with places() as directories:
        runs = list(sweep(directories, HOSTS, renewals=1))
    say(f"qualification: {len(runs)} calls struck: {dict(Counter(run.struck for run in runs))}")
    recordings = [run.lines for run in runs[:: len(runs) // _RECORDINGS]]
    for lines, verdict in zip(recordings, check(recordings, HOSTS), strict=True):
        if not verdict.accepted:
            raise Divergence(f"qualification: {explain(lines, verdict)}", "trace")
    spent = time.monotonic() - started
    return Report("qualification", figures, walks.steps, len(recordings), tuple(kills), spent)
