"""The coordinator's process: a real ``Coordinator`` on a real folder, with a gate around every step.

One thread owns the coordinator and is called to observe and to publish; another, with a gate of its own,
asks at any time what may be probed. With every position the owner tells what it has in memory.

A step that is released to fail meets a machine that refuses it: the kernel refuses to write (``EFBIG``) or to
open (``EMFILE``), or the file layer refuses the rename (``ENOSPC``), or to make a rename durable that has
taken place (``EIO``). ``EINTR`` holds it just ahead of its rename, to be killed there.
"""

from __future__ import annotations

import errno
import logging
import os
import resource
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.engine.gates import Gate
from conformance.seam import error_of
from smtspool.actions import Step, observed_by
from smtspool.files import Directory
from smtspool.profile import Coordinator, Policy, ProfileGeneration

__all__ = ["REFUSALS", "coordinate"]

# Each errno by which a step is released to fail, and what refuses it then.
REFUSALS = {
    "EFBIG": resource.RLIMIT_FSIZE,
    "EMFILE": resource.RLIMIT_NOFILE,
    "ENOSPC": None,
    "EIO": None,
    "EINTR": None,
}


@dataclass(slots=True)
class _Machine:
    """What refuses the step that is being taken; ``hold`` is called just ahead of a rename."""

    hold: Callable[[], None]
    refuses: int | None = None
    limits: dict[int, tuple[int, int]] = field(default_factory=dict)

    def arm(self, code: int) -> None:
        self.refuses = code
        limit = REFUSALS[errno.errorcode[code]]
        if limit is not None:
            self.limits[limit] = resource.getrlimit(limit)
            resource.setrlimit(limit, (0, self.limits[limit][1]))

    def disarm(self) -> None:
        self.refuses = None
        while self.limits:
            resource.setrlimit(*self.limits.popitem())

    def raise_if(self, code: int) -> None:
        if self.refuses == code:
            raise OSError(code, os.strerror(code))


class _Folder(Directory):
    """A directory on that machine."""

    __slots__ = ("_machine",)

    def __init__(self, fd: int, path: str, machine: _Machine) -> None:
        super().__init__(fd, path)
        self._machine = machine

    def child(self, name: str, *, create: bool = False) -> Directory:
        below = super().child(name, create=create)
        return _Folder(below.fd, below.path, self._machine)

    def replace(self, name: str, to: Directory, new_name: str) -> None:
        self._machine.raise_if(errno.ENOSPC)
        if self._machine.refuses == errno.EINTR:
            self._machine.hold()
        super().replace(name, to, new_name)

    def sync(self) -> None:
        self._machine.raise_if(errno.EIO)
        super().sync()


class _Seam:
    """The observer that puts a gate around every action, each thread's own."""

    def __init__(self, owner: Gate, look: Callable[[], Mapping[str, Any]]) -> None:
        self.gates = {threading.get_ident(): owner}
        self.machine = _Machine(lambda: owner.before("Rename", {}))
        self.went: str | None = None  # the outcome of the owner's last step
        self._owner = owner
        self._look = look

    def before(self, step: Step) -> None:
        gate = self.gates[threading.get_ident()]
        told = {"memory": self._look()} if gate is self._owner else {}
        try:
            gate.before(step.name, {**step.params, **told})
        except OSError as fault:  # the gate's InjectedFault, whose class there is the nursery's
            assert fault.errno is not None
            self.machine.arm(fault.errno)

    def after(self, step: Step) -> None:
        gate = self.gates[threading.get_ident()]
        if gate is self._owner:
            self.went = step.outcome
            if self.machine.refuses is not None:
                self.machine.disarm()  # the scheduler knows of the step: it made it fail
                return
        gate.after(step.name, step.params, step.outcome, error_of(step))


def _generation(generation: ProfileGeneration | None) -> list[str]:
    return [] if generation is None else [generation.artifact_sha256, generation.version]


def coordinate(
    gate: Gate, *, folder: str, prober: str, policy: Mapping[str, int], window: int, interval_s: float = 0.0
) -> None:
    """A coordinator: begins, observes and publishes when it is called, through gates."""
    logging.getLogger("smtspool").addHandler(logging.NullHandler())  # what fails here is meant to
    coordinator = Coordinator.__new__(Coordinator)  # to be looked at while it recovers
    up = threading.Event()

    def look() -> dict[str, Any]:
        now = coordinator.snapshot()
        counted = now.counters.to_json()
        return {
            "up": up.is_set(),
            "went": seam.went,
            "records": [record.digest for record in coordinator.records],
            "dirty": coordinator.dirty,
            "current": _generation(now.current),
            "served": _generation(now.in_force),
            "renewal": now.renewal,
            "counters": {name: value for name, value in counted.items() if type(value) is int},
        }

    seam = _Seam(gate, look)
    with Directory.open(folder) as plain, observed_by(seam):
        files = _Folder(plain.fd, plain.path, seam.machine)
        thresholds = Policy(**policy)

        def begin() -> dict[str, Any]:
            Coordinator.__init__(
                coordinator, files, policy=thresholds, window=window, interval_s=interval_s, clock=lambda: 0.0
            )
            up.set()
            return {"memory": look()}

        def observe(document: Mapping[str, Any]) -> dict[str, Any]:
            taken = coordinator.observe(document)
            return {"memory": look(), "taken": taken}

        def publish(force: bool = True) -> dict[str, Any]:
            published = coordinator.publish(force=force)
            return {"memory": look(), "published": _generation(published)}

        def serve() -> list[str]:
            return _generation(coordinator.serve())

        def ask() -> None:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
                link.connect(prober)
                asking = seam.gates[threading.get_ident()] = Gate(link)
                asking.serve({"serve": serve})

        threading.Thread(target=ask, name="prober", daemon=True).start()
        gate.serve({"begin": begin, "observe": observe, "publish": publish})
