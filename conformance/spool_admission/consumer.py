"""The consumer's process: passes of ``Spool.scan`` into a real ``Store``, with a gate around every step."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conformance.engine.gates import Gate
from conformance.seam import Seam
from smtspool.actions import observed_by
from smtspool.errors import InfrastructureError
from smtspool.spool import Spool
from smtspool.store import Store

__all__ = ["consume"]


def _stopped() -> float:
    """A clock for ``scan`` that stands still: a step that is held at its gate ends neither batch nor pass."""
    return 0.0


def consume(gate: Gate, *, spool: str, store: str, name: str, batch: int) -> None:
    """A consumer: makes a pass when it is called, through gates."""
    looks = 0

    def watch(event: str, _: object) -> None:
        nonlocal looks
        looks += event in ("os.listdir", "os.scandir")

    sys.addaudithook(watch)
    seam = Seam("spool_admission", gate)
    with Spool.open(spool) as source, Store.open(Path(store)) as sink, observed_by(seam):

        def scan() -> dict[str, Any]:
            before = looks
            try:
                report = asdict(
                    source.scan(sink.admit, consumer=name, budget_s=1.0, batch=batch, clock=_stopped)
                )
            except InfrastructureError as error:
                report = {"outcome": type(error).__name__}
            return {**report, "looks": looks - before}

        gate.serve({"scan": scan})
