"""The consumer's process: passes of ``Spool.scan`` into a real ``Store``, with a gate around every step."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conformance.engine.gates import Gate
from smtspool.actions import Step, observed_by
from smtspool.errors import InfrastructureError
from smtspool.spool import Spool
from smtspool.store import Store

__all__ = ["consume"]


def _stopped() -> float:
    """A clock for ``scan``: how long a step is held at its gate must end neither batch nor pass."""
    return 0.0


class _Seam:
    """The observer that puts a gate around every action."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def before(self, step: Step) -> None:
        self._gate.before(step.name, step.params)

    def after(self, step: Step) -> None:
        error = None if step.error is None else type(step.error).__name__
        self._gate.after(step.name, step.params, step.outcome, error)


def consume(gate: Gate, *, spool: str, store: str, name: str, batch: int) -> None:
    """A consumer: makes a pass when it is called, through gates."""
    looks = 0

    def watch(event: str, _: object) -> None:
        nonlocal looks
        looks += event in ("os.listdir", "os.scandir")

    sys.addaudithook(watch)
    with Spool.open(spool) as source, Store.open(Path(store)) as sink, observed_by(_Seam(gate)):

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
