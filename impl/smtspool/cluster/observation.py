"""Observing what a qualification starts from, totally (F356, F357).

A rank that could not observe still joins the meeting and says why, so that all masters fail at once with the
real reason instead of waiting for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .capability import Capability
from .diagnostics import Position, Stage, contained, plain
from .proof import is_processor

__all__ = ["Observation", "boot_id", "heartbeat_error", "is_boot_id", "observe_inputs"]

# The kernel's own name for its life since it was started: one for all containers on it.
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Observation:
    """The inputs of one qualification; ``error`` is not empty if one is missing. ``boot`` may be."""

    capability: Capability | None
    processor: str
    boot: str = ""
    error: str = ""


def boot_id(path: Path = _BOOT_ID) -> str:
    """What tells this machine from another of its name; "" where that cannot be read, which tells nothing."""
    try:
        with path.open("rb") as file:
            said = file.read(64).decode("ascii", "replace").strip()
    except OSError:  # no Linux, or a container without /proc
        return ""
    return said if is_boot_id(said) else ""


def is_boot_id(value: object) -> bool:
    """A boot id, or "" for one that cannot be read."""
    return type(value) is str and (not value or _UUID.fullmatch(value) is not None)


def observe_inputs(
    probe: Callable[[], Capability],
    processor_name: Callable[[], str],
    *,
    rank: int | None = None,
    generation: int = 0,
    local_error: str = "",
) -> Observation:
    """Ask both and the kernel, each once, the next even if one failed. Total over ``Exception``.

    ``error`` joins, in this order: ``local_error``, and what was wrong with the probe, the name, and the
    kernel, whose boot id may be missing but not raise.
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
    boot = asked("the boot id of this machine cannot be read", boot_id) or ""
    assert isinstance(boot, str)
    return Observation(capability, processor, boot, plain("; ".join(filter(None, errors))))


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
