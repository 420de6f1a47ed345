"""Graphs whose participants are threads, driven in processes of their own by today's code or by a mutant.

A protocol's module hands :func:`serve` its replay; its entry point names that. What drives participants in
processes needs none of this: there the mutant is in the participant.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

from conformance.engine.gates import Gate, GateError, Idle, Nursery
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Divergence, Replay
from conformance.report import Figures, Kill

__all__ = ["drive_all", "hunt", "serve", "told"]

_AT_MOST_S = 300.0


def serve(gate: Gate, replay: Callable[..., AbstractContextManager[Replay]]) -> None:
    """In the process: drive graphs when it is called."""

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


def drive_all(entry: str, graphs: Iterable[str], *, workers: int) -> Figures:
    """Every graph whole. Raises :class:`Divergence` when code and model differ."""
    with Nursery(entry) as nursery, ThreadPoolExecutor(workers) as pool:
        every = pool.map(lambda graph: _drive(nursery, graph, most_tours=None, patience_s=10.0), graphs)
        total = Figures()
        for found in every:
            if "detector" in found:
                raise Divergence(found["message"], found["detector"])
            total += Figures(**found["figures"])
    return total


def hunt(entry: str, mutant: Mutant, tours: Mapping[str, int | None]) -> Kill:
    """Drive so many tours of each graph, None for all, in this order through a mutant, until something
    differs."""
    mutant.check()
    started = time.monotonic()
    with Nursery(entry, mutant.to_json()) as nursery:
        for graph, most in tours.items():
            found = _drive(nursery, graph, most_tours=most, patience_s=2.0)
            if "detector" in found:
                return Kill(mutant, found["detector"], found["message"], time.monotonic() - started)
    return Kill(mutant, None, "survived", time.monotonic() - started)


def told(protocol: str, kills: Iterable[Kill], say: Callable[[str], None]) -> Iterator[Kill]:
    """The kills as they come, each told in a line."""
    for kill in kills:
        first = kill.message.partition("\n")[0][:150]
        say(f"{protocol}: {kill.mutant.name}: {kill.detector or 'survived'} ({kill.seconds:.1f} s): {first}")
        yield kill
