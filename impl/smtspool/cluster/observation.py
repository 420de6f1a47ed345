"""Observing what a qualification starts from, totally (F356, F357).

A rank that could not observe still joins the meeting and says why, so that all masters fail at once with the
real reason instead of waiting for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .capability import Capability
from .diagnostics import Position, Stage, contained, plain
from .proof import is_processor

__all__ = ["Observation", "heartbeat_error", "observe_inputs"]


@dataclass(frozen=True, slots=True)
class Observation:
    """The inputs of one qualification; ``error`` is not empty if one is missing."""

    capability: Capability | None
    processor: str
    error: str


def observe_inputs(
    probe: Callable[[], Capability],
    processor_name: Callable[[], str],
    *,
    rank: int | None = None,
    generation: int = 0,
    local_error: str = "",
) -> Observation:
    """Ask both, each once, the second even if the first failed. Total over ``Exception``.

    ``error`` joins, in this order: ``local_error``, and what was wrong with the probe and the name.
    """
    at = Position(Stage.OBSERVE, generation, rank)
    errors = [local_error] if type(local_error) is str else ["the local error is no text"]

    def asked(what: str, ask: Callable[[], object]) -> object:
        return contained(what, at, ask, lambda diagnostic: errors.append(diagnostic.text))

    capability = asked("the shared directory cannot be probed", probe)
    before = len(errors)
    processor = asked("the host has no name", processor_name)
    if type(capability) is not Capability:
        if capability is not None or before == 1:
            errors.insert(1, "the probe gave no capability")
        capability = None
    if not is_processor(processor):
        if len(errors) == before:
            errors.append("the name of this host is unusable")
        processor = ""
    assert isinstance(processor, str)
    return Observation(capability, processor, plain("; ".join(filter(None, errors))))


def heartbeat_error(beat: Callable[[], int], *, rank: int | None = None, generation: int = 0) -> str:
    """Renew all leases once: why that failed, or "". Total over ``Exception``; never repeated, since a beat
    that raised may have renewed some. ``beat()`` returns how many leases were lost."""

    def once() -> str:
        lost = beat()
        if type(lost) is not int or lost < 0:
            raise TypeError("it did not say how many leases were lost")
        return ""

    at = Position(Stage.HEARTBEAT, generation, rank)
    return contained("work lease heartbeat failed", at, once, lambda diagnostic: diagnostic.text)
