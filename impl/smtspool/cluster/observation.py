"""Observing the inputs of a qualification, without raising an ordinary exception (F356, F357).

A rank that cannot observe its inputs still takes part in the first exchange and reports why. So all masters
fail at once with the real reason instead of waiting for that rank.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .capability import Capability
from .diagnostics import Position, Stage, contained, one_line
from .proof import is_processor

__all__ = ["Observation", "boot_id", "heartbeat_error", "is_boot_id", "observe_inputs"]

# The kernel's id of the current boot, the same for all containers on the machine.
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
    """An id that tells this machine from another one with its name; "" if it cannot be read."""
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
    """Call probe, name and boot id once each, the next even if one raised. Total over ``Exception``.

    ``error`` joins, in this order, ``local_error`` and the errors of the probe, the name, and the boot id,
    which may be missing.
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
    return Observation(capability, processor, boot, one_line("; ".join(filter(None, errors))))


def heartbeat_error(beat: Callable[[], int], *, rank: int | None = None, generation: int = 0) -> str:
    """Renew all leases once; the reason if that failed, else "". Total over ``Exception``.

    It is never repeated, since a call of ``beat`` that raised may have renewed some leases. ``beat()``
    returns how many leases were lost.
    """

    def once() -> str:
        lost = beat()
        if type(lost) is not int or lost < 0:
            raise TypeError("it did not say how many leases were lost")
        return ""

    at = Position(Stage.HEARTBEAT, generation, rank)
    return contained("work lease heartbeat failed", at, once, lambda diagnostic: diagnostic.text)
