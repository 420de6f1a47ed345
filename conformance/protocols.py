"""The protocols whose models are driven through the code, and what `make conformance` reports of each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance.cancellation import run as cancellation_run
from conformance.cancellation import windows
from conformance.cancellation.system import Helpers
from conformance.cancellation.walk import CancellationWalks
from conformance.cancellation.windows import SOLVING
from conformance.driving import told
from conformance.engine.gates import Nursery
from conformance.engine.graph import load
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Divergence, Replay
from conformance.engine.walk import repeat
from conformance.profile_recovery import run as profile_run
from conformance.profile_recovery.walk import ProfileWalks
from conformance.qualification import run as qualification_run
from conformance.qualification.walk import QualificationWalks
from conformance.race import run as race_run
from conformance.race.walk import RaceWalks
from conformance.recording import Checked, lines_of
from conformance.report import Figures, Kill, Report
from conformance.spool_admission.mutants import MUTANTS
from conformance.spool_admission.stress import BATCH as STRESS_BATCH
from conformance.spool_admission.stress import stress
from conformance.spool_admission.system import SpoolAdapter
from conformance.spool_admission.trace import check, check_recorded, explain
from conformance.spool_admission.walk import BATCH as WALK_BATCH
from conformance.spool_admission.walk import SpoolWalks, walk

__all__ = [
    "CORPUS",
    "ENTRY",
    "NAMES",
    "PATHS",
    "Kill",
    "Report",
    "check_file",
    "hunt",
    "repeat_walk",
    "replay",
    "run",
]

# Those with several graphs each.
_RUNS: Mapping[str, Any] = {
    "cancellation": cancellation_run,
    "race": race_run,
    "profile": profile_run,
    "qualification": qualification_run,
}
NAMES = ("spool", *_RUNS)
# What `--path` is about, where a protocol has several graphs.
PATHS = tuple(f"{name}/{graph}" for name, run in _RUNS.items() for graph in run.GRAPHS)
_MODELS = Path(__file__).parent.parent / "models"
CORPUS = _MODELS / "spool_admission" / "Graph.graph.xz"
ENTRY = "conformance.spool_admission.system:consume"
# A mutant that shows in none of this many steps of the tours has survived.
_HUNT_TOURS = 40


@contextmanager
def replay(name: str, mutant: Mutant | None = None, *, patience_s: float = 10.0) -> Iterator[Replay]:
    """The committed graph of a protocol and fresh systems of today's code, or of a mutant of it."""
    protocol, _, graph = name.partition("/")
    if protocol == "profile":
        with profile_run.replay(graph, mutant, patience_s=patience_s) as driven:
            yield driven
        return
    if name in PATHS:
        with _RUNS[protocol].replay(graph, patience_s=patience_s) as driven:
            yield driven
        return
    assert name == "spool"
    with Nursery(ENTRY, mutant.to_json() if mutant else "[]") as nursery:
        yield Replay(load(CORPUS), SpoolAdapter(nursery, patience_s=patience_s))


def repeat_walk(name: str, variant: int, path: str) -> None:
    """Take one random walk again, as a failure prints it."""
    if name in ("cancellation", "race"):
        with Helpers() as helpers:
            repeat((RaceWalks if name == "race" else CancellationWalks)(helpers), variant, path)
        return
    if name == "profile":
        with Nursery(profile_run.ENTRY) as nursery:
            repeat(ProfileWalks(nursery), variant, path)
        return
    if name == "qualification":
        with qualification_run.places() as directories:
            repeat(QualificationWalks(directories), variant, path)
        return
    with Nursery(ENTRY) as nursery:
        repeat(SpoolWalks(nursery), variant, path)


def hunt(name: str, mutant: Mutant, *, tours: int = _HUNT_TOURS) -> Kill:
    """Drive the first tours through a mutant until something differs."""
    mutant.check()
    started = time.monotonic()
    with replay(name, mutant, patience_s=3.0) as driven:
        try:
            driven.run(longest=60, most_tours=tours, workers=os.cpu_count() or 1)
        except Divergence as difference:
            return Kill(mutant, difference.detector, str(difference), time.monotonic() - started)
    return Kill(mutant, None, "survived", time.monotonic() - started)


def run(name: str, *, say: Callable[[str], None]) -> Report:
    """Everything that a protocol requires. Raises :class:`Divergence` when code and model differ."""
    if name in _RUNS:
        report: Report = _RUNS[name].run(say=say, workers=os.cpu_count() or 1)
        return report
    started = time.monotonic()
    with replay(name) as whole:
        drive = whole.run(workers=os.cpu_count() or 1)
    say(f"{name}: {len(drive.edges)} edges, {len(drive.refusals)} refusals, {drive.seconds:.0f} s")
    kills = tuple(told(name, (hunt(name, mutant) for mutant in MUTANTS), say))
    with Nursery(ENTRY) as nursery:
        walks = walk(nursery, walks=30, steps=30, fresh=True)
    say(f"{name}: {walks.steps} random steps, {len(walks.transitions)} transitions: {dict(walks.counts)}")
    with TemporaryDirectory(prefix="stress-") as folder:
        run_ = stress(Path(folder), int.from_bytes(os.urandom(2)), consumers=3, files=24, kills=5)
        recording = lines_of(run_.trace.read_text(), {"spool_admission"})
    traces = [*((r, WALK_BATCH) for r in walks.recordings), (recording, STRESS_BATCH)]
    for batch in sorted({batch for _, batch in traces}):
        of_batch = [r for r, size in traces if size == batch]
        for lines, verdict in zip(of_batch, check(of_batch, batch=batch), strict=True):
            if not verdict.accepted:
                raise Divergence(f"{name}: {explain(lines, verdict)}", "trace")
    return Report(name, Figures.of(drive), walks.steps, len(traces), kills, time.monotonic() - started)


def check_file(path: Path) -> Iterator[Checked]:
    """What became of a recording, by each model that judges lines of it. Raises :class:`TraceError` when it
    is no whole recording, or has no such line."""
    lines = lines_of(path.read_text(), {"spool_admission", *SOLVING})
    admitted = [line for line in lines if line.protocol == "spool_admission"]
    if admitted:
        yield check_recorded(admitted)
    if len(admitted) < len(lines):
        checked = windows.check([line for line in lines if line.protocol in SOLVING])
        yield Checked(checked.accepted, checked.text)
