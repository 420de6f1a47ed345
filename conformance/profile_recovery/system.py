"""Profile recovery: ``models/profile_recovery`` driven through a real coordinator.

The coordinator is a process of its own on a real folder; files, durable renames and what is read back are the
product's. The environment is this process: it kills with SIGKILL, lets the machine refuse writes, and damages
the folder while no coordinator runs.
"""

from __future__ import annotations

import os
import select
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from conformance.adapters import GraphAdapter
from conformance.engine.gates import At, Dead, GateError, Idle, Nursery, Participant, Passed
from conformance.engine.module import variables
from conformance.engine.replay import Divergence, Refused, State, gate_of
from conformance.engine.values import Function, Value
from conformance.profile_recovery.environment import Built, Catalogue, Folder, Thresholds
from conformance.profile_recovery.invariants import invariants
from conformance.profile_recovery.process import coordinate

__all__ = ["MODULE", "VARIABLES", "Bounds", "ProfileSystem", "adapter", "coordinate"]

MODULE = Path(__file__).parents[2] / "models" / "profile_recovery" / "ProfileRecovery.tla"
VARIABLES = variables(MODULE)

PC_OF_GATE = {
    "LoadState": "load",
    "VerifyRuntime": "verify",
    "Replay": "replay",
    "WriteArtifact": "artifact",
    "WriteRuntime": "runtime",
    "WriteState": "state",
    "Switch": "switch",
}
# The file whose write may fail at a gate.
WRITES = {"WriteArtifact": "artifact", "WriteRuntime": "runtime", "WriteState": "state"}
# What refuses a write that does not take place, in turn; and what refuses one that does.
_KEPT, _LANDED = ("EFBIG", "ENOSPC", "EMFILE"), "EIO"
_AHEAD_OF_RENAME = "EINTR"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the cfg of a graph bounds."""

    values: str
    window: int = 1
    policies: Mapping[str, tuple[int, int]] = field(default_factory=lambda: {"p": (1, 1)})
    counted: tuple[str, ...] = ()
    most: int = 1
    landings: tuple[bool, ...] = ()

    def thresholds(self) -> Mapping[str, Thresholds]:
        return {name: Thresholds(*limits) for name, limits in self.policies.items()}


class ProfileSystem:
    """One folder and its coordinator, down at first.

    ``variant`` decides what the model does not tell apart: what else records tell (odd numbers), what refuses
    a write, how files are damaged, and where in a write the process dies.
    """

    def __init__(
        self, nursery: Nursery, bounds: Bounds, policy: str, *, variant: int = 0, patience_s: float = 10.0
    ) -> None:
        self._nursery = nursery
        self._bounds = bounds
        self._patience_s = patience_s
        self._count = variant  # of what happens in turns
        self._owner: Participant | None = None
        self._prober: Participant | None = None
        self._memory: Mapping[str, Any] | None = None
        self._build = "none"
        self._basis: frozenset[Value] = frozenset()
        self.policy = policy
        self._closing = ExitStack()
        with self._closing:
            root = self._closing.enter_context(tempfile.TemporaryDirectory(prefix="conform-", dir=_fastest()))
            self.catalogue = Catalogue(bounds.values, bounds.thresholds(), variant)
            self.folder = Folder(root, self.catalogue, bounds.counted, bounds.most, variant)
            self._knock = f"{root}/prober"
            self._door = self._closing.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            self._door.bind(self._knock)
            self._door.listen(1)
            self._closing.callback(self._dismiss)
            self._closing = self._closing.pop_all()

    def close(self) -> None:
        """End the coordinator and remove everything."""
        self._closing.close()

    def _dismiss(self) -> None:
        for participant in filter(None, (self._prober, self._owner)):
            if participant.pid is not None and participant.position != Dead():
                with suppress(ProcessLookupError):
                    participant.kill()
            participant.close()
        self._owner = self._prober = self._memory = None

    # steps

    def perform(self, label: Function) -> None:
        """Take the step ``label`` for real."""
        name = str(label["name"])
        rest = {str(key): value for key, value in label.items() if key not in ("name", "outcome")}
        went = getattr(self, f"_{name}", self._advance)(name, **rest)
        if "outcome" in label and went != label["outcome"]:
            raise Divergence(f"{name} went {went} where the model takes {label}")

    def take(self, name: str, **params: Any) -> str:
        """Take a step, whichever way it goes; how it went, "" where it can go one way only."""
        return str(getattr(self, f"_{name}", self._advance)(name, **params) or "")

    def _Restart(self, _: str) -> None:
        if self._owner is not None:
            raise Refused("it is up")
        params = {
            "folder": self.folder.path,
            "prober": self._knock,
            "policy": asdict(self.catalogue.policies[self.policy].to_policy()),
            "window": self._bounds.window,
        }
        self._owner = self._nursery.spawn("coordinator", params, patience_s=self._patience_s)
        if not select.select([self._door], [], [], self._patience_s)[0]:
            raise GateError("no prober came up")
        self._prober = Participant("prober", self._door.accept()[0], None, patience_s=self._patience_s)
        self._owner.call("begin")
        self._look()

    def _Crash(self, _: str) -> None:
        """At the gate, or within the write that begins there, just ahead of its rename."""
        if self._owner is None:
            raise Refused("it is down")
        position = self._owner.position
        if isinstance(position, At) and position.name in WRITES and self._turn(2):
            self._owner.release(fail=_AHEAD_OF_RENAME)
            if not isinstance(self._owner.position, At) or self._owner.position.name != "Rename":
                raise Divergence(f"a write came to {self._owner.position} and not to a rename")
        self._owner.kill()
        self._dismiss()
        self._build, self._basis = "none", frozenset()

    def _FailWrite(self, _: str, file: str, landed: bool) -> str:
        at = None if self._owner is None else self._owner.position
        if self._owner is None or not isinstance(at, At) or WRITES.get(at.name) != file:
            raise Refused(f"the coordinator stands at {at}")
        self._owner.release(fail=_LANDED if landed else _KEPT[self._turn(len(_KEPT))])
        if file != "state":
            self._build = "lost"
        elif self._build == "new":
            self._build = "unsaved"
        memory = self._look()
        if memory["went"] != "failed":
            raise Divergence(f"{at.name} was refused by the machine and went {memory['went']}")
        return "failed"

    def _Observe(self, name: str, record: str) -> None:
        self._call("observe", document=self.catalogue.document(record))
        self._advance(name)

    def _Build(self, name: str) -> str:
        if self._memory is None or not self._memory["dirty"]:
            raise Refused("there is nothing to build from")
        self._call("publish")
        went = self._advance(name)
        self._build = went if self._build == "none" else self._build
        self._basis = frozenset({self.window()})
        return went

    def _Serve(self, name: str) -> str:
        if self._prober is None or self._memory is None or not self._memory["up"]:
            raise Refused("nobody can be asked")
        self._prober.call("serve")
        passed = self._prober.release()
        assert passed is not None
        if passed.name != name or not isinstance(self._prober.position, Idle):
            raise Divergence(f"a prober took {passed} and came to {self._prober.position}")
        if self._prober.position.result != self._memory["served"]:
            raise Divergence(f"a prober was given {self._prober.position.result}", "serve")
        return str(passed.outcome)

    def _Drift(self, _: str, records: Sequence[str]) -> None:
        self._only_down()
        self.folder.drift(records)

    def _Truncate(self, _: str) -> None:
        self._only_down()
        self.folder.truncate()

    def _Corrupt(self, _: str, file: str) -> None:
        self._only_down()
        self.folder.corrupt(file)

    def _Remove(self, _: str) -> None:
        self._only_down()
        self.folder.remove()

    def _ChangePolicy(self, _: str, policy: str) -> None:
        self._only_down()
        if policy == self.policy:
            raise Refused("that is the policy")
        self.policy = policy

    def _advance(self, name: str) -> str:
        """Let the coordinator take the step at whose gate it stands."""
        owner = self._owner
        if owner is None or not isinstance(owner.position, At):
            raise Refused(f"{name} where nobody stands at a gate")
        step = owner.position
        passed = owner.release()
        assert passed is not None
        self._check(name, step, passed)
        memory = self._look()
        if name == "Replay" and not memory["dirty"]:
            self._basis = frozenset({self.window()})
        if isinstance(owner.position, Dead):
            raise Divergence(f"the coordinator died after {name}")
        return passed.outcome or ""

    def _check(self, name: str, step: At, passed: Passed) -> None:
        """Check that the released step was taken, with the parameters that it must have."""
        if passed.name != name:
            raise Divergence(f"took {passed.name} where the model takes {name}")
        if passed.error is not None:
            raise Divergence(f"{name} raised {passed.error}")
        if name in WRITES and passed.outcome != "written":
            raise Divergence(f"{name} went {passed.outcome}")
        candidate = self._candidate().digest
        current = (self._memory or {}).get("current") or [""]
        label = candidate if self._build in ("new", "unsaved") else current[0]
        counted = {"records": len(self.window())}
        wanted: Mapping[str, Mapping[str, object]] = {
            "WriteArtifact": {"artifact": candidate},
            "WriteRuntime": {"artifact": candidate},
            "WriteState": {"artifact": label, **counted},
            "Switch": {"artifact": candidate},
            "Build": counted,
            "Replay": counted,
        }
        told = {key: value for key, value in step.params.items() if key != "memory"}
        if name in wanted and told != wanted[name]:
            raise Divergence(f"{name} says {told} and is about {wanted[name]}", "params")

    # looking

    def _only_down(self) -> None:
        if self._owner is not None:
            raise Refused("the coordinator is up")

    def _call(self, what: str, **params: Any) -> None:
        if self._owner is None or not isinstance(self._owner.position, Idle):
            raise Refused("the coordinator is not idle")
        self._owner.call(what, **params)

    def _look(self) -> Mapping[str, Any]:
        """What the coordinator said of its memory when it came to where it stands; a call that came back came
        back with what it should have."""
        assert self._owner is not None
        position = self._owner.position
        told = position.params if isinstance(position, At) else getattr(position, "result", None)
        if not told or "memory" not in told:
            raise Divergence(f"the coordinator came to {position}")
        published = told.get("published", [])
        memory: Mapping[str, Any] = told["memory"]
        if isinstance(position, Idle):
            if published not in ([], memory["served"]) or not told.get("taken", True):
                raise Divergence(f"a call came back with {told}", "report")
            self._build = "none"
        self._memory = memory
        return memory

    def _turn(self, ways: int) -> int:
        self._count += 1
        return self._count % ways

    def parameters(self) -> dict[str, Any]:
        """Those of the step at whose gate the coordinator stands."""
        at = None if self._owner is None else self._owner.position
        params = at.params if isinstance(at, At) else {}
        return {key: value for key, value in params.items() if key != "memory"}

    def window(self) -> tuple[str, ...]:
        """The records in memory."""
        told = [] if self._memory is None else self._memory["records"]
        return tuple(map(self.catalogue.name, told))

    def _candidate(self) -> Built:
        known = [value for value in self.window() if value in self._bounds.values]
        return self.catalogue.built(known, self.policy)

    def _pc(self) -> str:
        if self._owner is None:
            return "down"
        at = self._owner.position
        return PC_OF_GATE.get(at.name, at.name) if isinstance(at, At) else type(at).__name__.lower()

    def project(self) -> dict[str, Value]:
        """The real state as values of the model's variables."""
        candidate = self._candidate()  # known from now on
        memory = self._memory or {"dirty": False, "current": [], "served": [], "renewal": False}
        counted = memory.get("counters", dict.fromkeys(self._bounds.counted, 0))
        pc = self._pc()
        pending = candidate.digest if pc == "runtime" else None
        state: dict[str, Value] = {
            "state": self.folder.state(),
            "runtime": self.folder.runtime(),
            "artifacts": self.folder.artifacts([self.folder.named(), pending]),
            "policy": self.policy,
            "pc": pc,
            "window": self.window(),
            "dirty": memory["dirty"],
            "current": self.catalogue.generation(memory["current"]),
            "served": self.catalogue.generation(memory["served"]),
            "renewal": memory["renewal"],
            "build": self._build,
            "basis": self._basis,
            "counters": self.folder.counters(counted),
        }
        return {name: state[name] for name in VARIABLES}

    def standing(self) -> frozenset[str]:
        """The gates where the coordinator and who asks it stand. An idle one that is clean is asked to
        publish, and must not begin to."""
        return frozenset(gate_of(Function(step)) for step in self._standing())

    def _standing(self) -> Iterator[dict[Value, Value]]:
        if self._owner is None or self._memory is None:
            return
        if self._memory["up"]:
            yield {"name": "Serve"}
        if isinstance(self._owner.position, Idle):
            if self._memory["dirty"]:
                yield {"name": "Build"}
                return
            self._call("publish")
            if not isinstance(self._owner.position, At):
                self._look()
                return
        at = self._owner.position
        assert isinstance(at, At)
        yield {"name": at.name}
        for landed in self._bounds.landings if at.name in WRITES else ():
            yield {"name": "FailWrite", "file": WRITES[at.name], "landed": landed}


def _fastest() -> str | None:
    """A memory file system where there is one: the protocol is the same and its syncs cost nothing."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# --- the adapter -------------------------------------------------------------------------------------

_OFFERED_WHEN_DOWN = ("Drift", "Truncate", "Corrupt", "Remove", "ChangePolicy")


def _is_up(_: Function, state: State) -> bool:
    return state["pc"] != "down"


def adapter(nursery: Nursery, bounds: Bounds, patience_s: float) -> GraphAdapter:
    """One graph's records and policies, as real ones."""

    def start(initial: State, variant: int) -> ProfileSystem:
        policy = str(initial["policy"])
        return ProfileSystem(nursery, bounds, policy, variant=variant, patience_s=patience_s)

    return GraphAdapter(
        invariants=invariants(bounds.thresholds()),
        external=frozenset({"Restart", "Crash", "Observe", *_OFFERED_WHEN_DOWN}),
        # Nobody else writes to a folder whose coordinator is up, nor is there a second one: its owner holds
        # the service's lock. The model has it so, and says nothing of what would happen.
        excluded=dict.fromkeys(("Restart", *_OFFERED_WHEN_DOWN), _is_up),
        start=start,
    )
