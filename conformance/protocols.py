"""The protocols whose models are driven through the code, and what `make conformance` reports of each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from conformance.engine.gates import Nursery
from conformance.engine.graph import load
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Divergence, Drive, Replay
from conformance.spool import SpoolAdapter
from conformance.spool_mutants import MUTANTS
from conformance.spool_stress import BATCH as STRESS_BATCH
from conformance.spool_stress import stress
from conformance.spool_trace import check, explain, lines_of
from conformance.spool_walk import BATCH as WALK_BATCH
from conformance.spool_walk import walk

__all__ = ["CORPUS", "ENTRY", "NAMES", "Kill", "Report", "hunt", "replay", "run"]

NAMES = ("spool",)
_MODELS = Path(__file__).parent.parent / "models"
CORPUS = _MODELS / "spool_admission" / "Graph.graph.xz"
ENTRY = "conformance.spool:consume"
# A mutant that shows in none of this many steps of the tours has survived.
_HUNT_TOURS = 40


@dataclass(frozen=True, slots=True)
class Kill:
    """What became of a mutant: the detector that saw it first, and what it said; None when it survived."""

    mutant: Mutant
    detector: str | None
    message: str
    seconds: float

    @property
    def as_wanted(self) -> bool:
        """Mutants are caught, controls survive."""
        return (self.detector is None) == self.mutant.control


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of one protocol."""

    COLUMNS: ClassVar[Sequence[str]] = (
        "protocol",
        "states",
        "edges",
        "refusals",
        "left out",
        "steps",
        "random steps",
        "traces",
        "mutants",
        "seconds",
    )

    protocol: str
    drive: Drive
    random_steps: int
    traces: int
    kills: tuple[Kill, ...]
    seconds: float

    @property
    def complete(self) -> bool:
        """True when everything required was driven and every mutant went as it must."""
        return self.drive.complete and bool(self.kills) and all(kill.as_wanted for kill in self.kills)

    def cells(self) -> list[str]:
        """One row under :attr:`COLUMNS`."""
        drive = self.drive
        mutants = [kill for kill in self.kills if not kill.mutant.control]
        return [
            self.protocol,
            str(len(drive.graph.states)),
            f"{len(drive.edges)}/{len(drive.graph.edges)}",
            f"{len(drive.refusals)}/{drive.refusals_required}",
            str(drive.excluded),
            str(drive.steps),
            str(self.random_steps),
            str(self.traces),
            f"{sum(kill.as_wanted for kill in mutants)}/{len(mutants)}",
            f"{self.seconds:.0f}",
        ]


@contextmanager
def replay(name: str, mutant: Mutant | None = None, *, patience_s: float = 10.0) -> Iterator[Replay]:
    """The committed graph of a protocol and fresh systems of today's code, or of a mutant of it."""
    assert name in NAMES
    with Nursery(ENTRY, mutant.to_json() if mutant else "[]") as nursery:
        yield Replay(load(CORPUS), SpoolAdapter(nursery, patience_s=patience_s))


def hunt(name: str, mutant: Mutant) -> Kill:
    """Drive the first tours through a mutant until something differs."""
    mutant.check()
    started = time.monotonic()
    with replay(name, mutant, patience_s=3.0) as driven:
        try:
            driven.run(longest=60, most_tours=_HUNT_TOURS, workers=os.cpu_count() or 1)
        except Divergence as difference:
            return Kill(mutant, difference.detector, str(difference), time.monotonic() - started)
    return Kill(mutant, None, "survived", time.monotonic() - started)


def run(name: str, *, say: Callable[[str], None]) -> Report:
    """Everything that a protocol requires. Raises :class:`Divergence` when code and model differ."""
    started = time.monotonic()
    with replay(name) as whole:
        drive = whole.run(workers=os.cpu_count() or 1)
    say(f"{name}: {len(drive.edges)} edges, {len(drive.refusals)} refusals, {drive.seconds:.0f} s")
    kills = []
    for mutant in MUTANTS:
        kill = hunt(name, mutant)
        kills.append(kill)
        first = kill.message.partition("\n")[0][:150]
        say(f"{name}: {mutant.name}: {kill.detector or 'survived'} ({kill.seconds:.1f} s): {first}")
    with Nursery(ENTRY) as nursery:
        walks = walk(nursery, walks=30, steps=30, fresh=True)
    say(f"{name}: {walks.steps} random steps, {len(walks.transitions)} transitions: {dict(walks.counts)}")
    with TemporaryDirectory(prefix="stress-") as folder:
        run_ = stress(Path(folder), int.from_bytes(os.urandom(2)), consumers=3, files=24, kills=5)
        recording = lines_of(run_.trace.read_text())
    traces = [*((r, WALK_BATCH) for r in walks.recordings), (recording, STRESS_BATCH)]
    for batch in sorted({batch for _, batch in traces}):
        of_batch = [r for r, size in traces if size == batch]
        for lines, verdict in zip(of_batch, check(of_batch, batch=batch), strict=True):
            if not verdict.accepted:
                raise Divergence(f"{name}: {explain(lines, verdict)}", "trace")
    return Report(name, drive, walks.steps, len(traces), tuple(kills), time.monotonic() - started)
