"""Everything that a protocol requires: graphs, oracles, mutants, walks, recordings; for each alike."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from conformance.contract import TODAY, Hunting, Protocol, Say
from conformance.engine import walk as engine
from conformance.engine.gates import GateError, Idle, Nursery
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Divergence
from conformance.engine.walk import Walks
from conformance.report import Figures, Kill, Report

__all__ = ["WORKERS", "check_recordings", "drive_all", "hunt", "repeat_walk", "run", "walk"]

WORKERS = os.cpu_count() or 1
_AT_MOST_S = 300.0
_CASES, _HUNT_CASES = 500, 200  # of an oracle
_WHOLE = Hunting(likely=None, others=None, patience_s=10.0)
Drive = Callable[[str, int | None, Hunting], Figures]


@contextmanager
def _driver(protocol: Protocol, mutant: str, workers: int) -> Iterator[Drive]:
    """The driver of one graph: a process of its own if participants are threads; else this process, with
    ``workers`` systems at a time."""
    if protocol.threads:
        with Nursery(f"{protocol.package}.protocol:PROTOCOL.serve", mutant) as nursery:
            yield partial(_drive_apart, nursery)
    else:
        yield partial(_drive_here, protocol, mutant, workers)


def _drive_here(
    protocol: Protocol, mutant: str, workers: int, graph: str, tours: int | None, how: Hunting
) -> Figures:
    with protocol.replay(graph, mutant, patience_s=how.patience_s) as driven:
        return Figures.of(driven.run(workers=workers, most_tours=tours, longest=how.longest))


def _drive_apart(nursery: Nursery, graph: str, tours: int | None, how: Hunting) -> Figures:
    driver = nursery.spawn(graph, {}, patience_s=_AT_MOST_S)
    try:
        position = driver.call(
            "drive", graph=graph, most_tours=tours, longest=how.longest, patience_s=how.patience_s
        )
    except GateError:
        driver.kill()  # it hangs
        raise
    finally:
        driver.close()
    if not isinstance(position, Idle):
        raise GateError(f"the driver of {graph} came to {position}")
    if "detector" in position.result:
        raise Divergence(position.result["message"], position.result["detector"])
    if "figures" not in position.result:
        raise GateError(f"the driver of {graph} raised {position.result}")
    return Figures(**position.result["figures"])


def drive_all(protocol: Protocol, graphs: Sequence[str] | None = None, *, workers: int = WORKERS) -> Figures:
    """Every graph whole, or these. Raises :class:`Divergence` when code and model differ."""
    at_once = workers if protocol.threads else 1
    with _driver(protocol, TODAY, workers) as drive, ThreadPoolExecutor(at_once) as pool:
        return sum(pool.map(lambda graph: drive(graph, None, _WHOLE), graphs or protocol.graphs), Figures())


def hunt(protocol: Protocol, mutant: Mutant, *, hunting: Hunting | None = None, workers: int = 1) -> Kill:
    """Drive the first tours of each graph through a mutant, and ask each oracle, until something differs."""
    mutant.check()
    started = time.monotonic()
    how = hunting or protocol.hunting
    likely = protocol.shows_in.get(mutant.name, how.first or protocol.graphs[0])
    wheres = sorted([*protocol.graphs, *protocol.oracles], key=lambda where: where != likely)
    with _driver(protocol, mutant.to_json(), workers) as drive:
        for where in wheres:
            try:
                if where in protocol.oracles:
                    protocol.oracles[where](mutant.to_json(), _HUNT_CASES, 305)
                else:
                    drive(where, how.likely if where == likely else how.others, how)
            except Divergence as difference:
                spent = time.monotonic() - started
                return Kill(mutant, difference.detector, str(difference)[:20_000], spent)
    return Kill(mutant, None, "survived", time.monotonic() - started)


def hunt_all(protocol: Protocol, *, workers: int = WORKERS) -> Iterator[Kill]:
    """All named mutants, several at a time."""
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(partial(hunt, protocol), protocol.mutants)


def walk(
    protocol: Protocol, *, mutant: str = TODAY, walks: int = 0, steps: int = 0, fresh: bool = False
) -> Walks:
    """Walk at random, by default as often and as far as the protocol says; ``fresh`` or always alike."""
    usual = protocol.walking
    with protocol.walks(mutant) as adapter:
        return engine.walk(
            adapter, protocol.name, walks=walks or usual[0], steps=steps or usual[1], fresh=fresh
        )


def repeat_walk(protocol: Protocol, variant: int, path: str, *, mutant: str = TODAY) -> None:
    """Take one random walk again, as a failure prints it."""
    with protocol.walks(mutant) as adapter:
        engine.repeat(adapter, variant, path)


def check_recordings(protocol: Protocol, seed: int, walks: Walks, say: Say) -> int:
    """Run freely, and check what that and the walks recorded; how many recordings. Raises
    :class:`Divergence` at one that is no behaviour of the model."""
    count = 0
    for made in protocol.recordings(seed, walks):
        if made.told:
            say(f"{protocol.name}: {made.told}")
        count += len(made.lines)
        for lines, verdict in zip(made.lines, made.check(made.lines), strict=True):
            if not verdict.accepted:
                raise Divergence(f"{protocol.name}: seed {seed}: {made.explain(lines, verdict)}", "trace")
    return count


def _told(protocol: Protocol, kills: Iterable[Kill], say: Say) -> Iterator[Kill]:
    """The kills as they come; each is reported in a line."""
    for kill in kills:
        first = kill.message.partition("\n")[0][:150]
        how = f"{kill.detector or 'survived'} ({kill.seconds:.1f} s)"
        say(f"{protocol.name}: {kill.mutant.name}: {how}: {first}")
        yield kill


def run(protocol: Protocol, *, say: Say, workers: int = WORKERS) -> Report:
    """Everything that a protocol requires. Raises :class:`Divergence` when code and model differ."""
    name, started = protocol.name, time.monotonic()
    seed = int.from_bytes(os.urandom(2))
    figures = drive_all(protocol, workers=workers)
    say(f"{name}: {figures.text}")
    for oracle in protocol.oracles.values():
        say(f"{name}: {oracle(TODAY, _CASES, seed)}")
    kills = tuple(_told(protocol, hunt_all(protocol, workers=workers), say))
    walks = walk(protocol, fresh=True)
    say(f"{name}: {walks.steps} random steps, {len(walks.transitions)} transitions: {dict(walks.counts)}")
    traces = check_recordings(protocol, seed, walks, say)
    return Report(name, figures, walks.steps, traces, kills, time.monotonic() - started)
