"""Spool admission, as everything that holds models to code takes it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.contract import Expected, Hunting, Judge, Protocol, Recordings
from conformance.engine.gates import Nursery
from conformance.engine.replay import Divergence
from conformance.engine.walk import Walks
from conformance.spool_admission.mutants import MUTANTS
from conformance.spool_admission.projection import MODULE
from conformance.spool_admission.stress import BATCH as STRESS_BATCH
from conformance.spool_admission.stress import stress
from conformance.spool_admission.system import adapter
from conformance.spool_admission.trace import check, check_recorded, lines_of
from conformance.spool_admission.walk import BATCH as WALK_BATCH
from conformance.spool_admission.walk import walks
from conformance.traces import explain

__all__ = ["ENTRY", "PROTOCOL"]

ENTRY = "conformance.spool_admission.consumer:consume"


def _recordings(seed: int, walks: Walks) -> Iterator[Recordings]:
    yield Recordings(walks.recordings, partial(check, batch=WALK_BATCH), explain)
    with TemporaryDirectory(prefix="stress-") as folder:
        run = stress(Path(folder), seed, consumers=3, files=24, kills=5)
        lines = lines_of(run.trace.read_text())
        if not run.converged() or run.killed != 8:
            raise Divergence(f"spool_admission: seed {seed}: the runs did not converge", "stress")
    yield Recordings([lines], partial(check, batch=STRESS_BATCH), explain)


EXPECTED = Expected(
    driven=(1121, 6753, 5648, 276),
    few=(6, 100),
    temporal={"TypeOK", "SettledIsFinal", "Admitted"},
    outside={"Publish", "Replace", "Crash", "FailStore", "FailMove"},
    floors={
        "TryLock Acquire": 25,
        "TryLock Busy": 20,
        "List": 25,
        "Open": 40,
        "Verify good": 10,
        "Verify bad": 6,
        "Verify unstable": 3,
        "Commit": 6,
        "WriteSidecar": 4,
        "Move moved": 8,
        "Move replaced": 1,
        "Release": 8,
        "Crash": 8,
        "FailStore": 1,
        "FailMove": 1,
        "Publish": 40,
        "Replace": 40,
    },
    rare={"Release failed"},  # an error ended it
    steps=500,
    shapes=60,
    recorded=("TryLock", "Open", "Verify", "Commit", "WriteSidecar", "Move", "Crash"),
    missed={"Open": "Graph", "Crash": "Graph", "Publish": "Graph"},
)

PROTOCOL = Protocol(
    package=__package__,
    module=MODULE,
    code="spool",
    steps=("spool_admission",),
    graphs=("Graph",),
    threads=False,
    shared=partial(Nursery, ENTRY),
    adapt=lambda nursery, _, patience_s: adapter(nursery, patience_s),
    walk=walks,
    walking=(30, 30),
    mutants=MUTANTS,
    hunting=Hunting(likely=40, others=40, longest=60, patience_s=3.0),
    expected=EXPECTED,
    recordings=_recordings,
    judge=Judge({"spool_admission"}, check_recorded),
)
