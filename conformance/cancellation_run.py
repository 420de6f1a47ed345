"""The graphs of cancellation, driven in processes of their own, each with today's code or with a mutant."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from conformance.cancellation import MODULE, CancellationAdapter, Helpers
from conformance.cancellation_mutants import MUTANTS, SHOWS_IN
from conformance.cancellation_stress import stress
from conformance.cancellation_trace import check, explain
from conformance.cancellation_walk import walk
from conformance.engine.gates import Gate, GateError, Idle, Nursery
from conformance.engine.graph import load
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Divergence, Replay
from conformance.report import Figures, Kill, Report

__all__ = ["GRAPHS", "drive_all", "hunt", "replay", "run"]

ENTRY = "conformance.cancellation_run:serve"
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
_AT_MOST_S = 300.0
_RACES = 4  # recordings of free-running threads


@contextmanager
def replay(graph: str, *, patience_s: float = 10.0) -> Iterator[Replay]:
    """One committed graph and fresh systems of the code in this process."""
    with Helpers() as helpers:
        adapter = CancellationAdapter(f"cancellation/{graph}", helpers, GRAPHS[graph], patience_s=patience_s)
        yield Replay(load(MODULE.with_name(f"{graph}.graph.xz")), adapter)


def serve(gate: Gate, of: Callable[..., AbstractContextManager[Replay]] = replay) -> None:
    """A process that drives graphs when it is called."""

    def drive(graph: str, most_tours: int | None, patience_s: float) -> dict[str, Any]:
        with of(graph, patience_s=patience_s) as driven:
            try:
                return {"figures": Figures.of(driven.run(most_tours=most_tours)).to_json()}
            except Divergence as difference:
                return {"detector": difference.detector, "message": str(difference)[:20_000]}

    gate.serve({"drive": drive})


def _drive(nursery: Nursery, graph: str, **how: Any) -> Mapping[str, Any]:
    driver = nursery.spawn(graph, {}, patience_s=_AT_MOST_S)
    try:
        position = driver.call("drive", graph=graph, **how)
    except GateError:
        driver.kill()  # it hangs
        raise
    finally:
        driver.close()
    if not isinstance(position, Idle):
        raise GateError(f"the driver of {graph} came to {position}")
    if "raised" in position.result:
        raise GateError(f"the driver of {graph} raised {position.result}")
    found: Mapping[str, Any] = position.result
    return found


def drive_all(*, workers: int, entry: str = ENTRY, graphs: Sequence[str] = tuple(GRAPHS)) -> Figures:
    """Every graph whole. Raises :class:`Divergence` when code and model differ."""
    with Nursery(entry) as nursery, ThreadPoolExecutor(workers) as pool:
        every = pool.map(lambda graph: _drive(nursery, graph, most_tours=None, patience_s=10.0), graphs)
        total = Figures()
        for found in every:
            if "detector" in found:
                raise Divergence(found["message"], found["detector"])
            total += Figures(**found["figures"])
    return total


def hunt(mutant: Mutant, *, entry: str = ENTRY, graphs: Sequence[str] = (), tours: int = _HUNT_TOURS) -> Kill:
    """Drive the first tours of each graph through a mutant until something differs."""
    mutant.check()
    started = time.monotonic()
    likely = sorted(GRAPHS, key=lambda graph: graph != SHOWS_IN.get(mutant.name, "GraphCancel"))
    with Nursery(entry, mutant.to_json()) as nursery:
        for graph in graphs or likely:
            found = _drive(nursery, graph, most_tours=tours, patience_s=2.0)
            if "detector" in found:
                spent = time.monotonic() - started
                return Kill(mutant, found["detector"], found["message"], spent)
    return Kill(mutant, None, "survived", time.monotonic() - started)


def run(*, say: Callable[[str], None], workers: int) -> Report:
    """Everything that cancellation requires."""
    started = time.monotonic()
    figures = drive_all(workers=workers)
    say(f"cancellation: {figures.edges} edges, {figures.refusals} refusals, {figures.seconds:.0f} s")
    kills = []
    with ThreadPoolExecutor(workers) as pool:
        for kill in pool.map(hunt, MUTANTS):
            kills.append(kill)
            first = kill.message.partition("\n")[0][:150]
            name = kill.mutant.name
            say(f"cancellation: {name}: {kill.detector or 'survived'} ({kill.seconds:.1f} s): {first}")
    walks = walk(walks=60, steps=50, fresh=True)
    say(f"cancellation: {walks.steps} random steps: {dict(walks.counts)}")
    seed = int.from_bytes(os.urandom(2))
    runs = [stress(seed + number, asking=3, requests=6, kills=2) for number in range(_RACES)]
    for race, verdict in zip(runs, check([race.lines for race in runs]), strict=True):
        if not (race.sound and verdict.accepted):
            raise Divergence(f"cancellation: seed {seed}: {explain(race.lines, verdict)}", "trace")
    return Report("cancellation", figures, walks.steps, len(runs), tuple(kills), time.monotonic() - started)
