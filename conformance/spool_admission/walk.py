"""Random walks of spool admission beyond the bound of the model: more consumers, more files, more contents.

Every walk is kept as a recording. Afterwards TLC checks whether it is a behaviour of the model with constants
as large as the walk.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from conformance.engine.gates import At, Nursery
from conformance.engine.replay import State
from conformance.engine.values import Function
from conformance.spool_admission.environment import CONTENTS, SUFFIX
from conformance.spool_admission.system import FAULT_AT_GATE, INVARIANTS, SpoolSystem
from conformance.states import each, positions
from conformance.walking import Walk, Walking

__all__ = ["BATCH", "walks"]

CONSUMERS = ("p", "q", "r")
FILES = ("a", "b", "c", "d", "e")
BATCH = 3


class _Walk(Walk[SpoolSystem]):
    """One spool on one walk, recorded."""

    def __init__(self, nursery: Nursery, variant: int) -> None:
        super().__init__(
            SpoolSystem(nursery, CONSUMERS, FILES, tuple(CONTENTS), batch=BATCH, variant=variant)
        )
        self._fresh = list(FILES)

    def _moves(self) -> Iterator[tuple[Function, int]]:
        """Three moves of five continue a pass, the others disturb it."""
        gates = self._gates()
        inside = [name for name, at in gates.items() if at.name != "TryLock"]
        for name, at in gates.items():
            weight = 30 if name in inside else 2 if inside else 10
            yield Function({"name": at.name, "consumer": name}), weight
        for file in self._fresh[:1]:
            for content in CONTENTS:
                yield Function({"name": "Publish", "file": file, "content": content}), 2
        # Replace the file that a consumer will verify or move next, since that must not go unnoticed.
        hand = {str(at.params["file"]) for at in gates.values() if at.name in ("Verify", "Move")}
        for file in self._system.producer.waiting():
            for content in CONTENTS:
                weight = 3 if file + SUFFIX in hand else 1
                yield Function({"name": "Replace", "file": file, "content": content}), weight
        for name in inside:
            yield Function({"name": "Crash", "consumer": name}), 1
            if fault := FAULT_AT_GATE.get(gates[name].name):
                yield Function({"name": fault, "consumer": name}), 8

    def _gates(self) -> Mapping[str, At]:
        positions = {name: consumer.position for name, consumer in self._system.consumers.items()}
        return {name: at for name, at in positions.items() if isinstance(at, At)}

    def take(self, move: Function) -> str:
        """Take the step, and record it if it is one of a consumer."""
        action = str(move["name"])
        if action in ("Publish", "Replace"):
            if action == "Publish":
                self._fresh.remove(str(move["file"]))
            self._system.perform(move)
            return ""
        name = str(move["consumer"])
        who = f"{name}{self._system.consumers[name].pid}"
        at = self._gates()[name]
        if action == "Crash":
            self._system.crash(name)
            self.record(who, "Crash", {}, None)
        elif action in FAULT_AT_GATE.values():
            self._system.fail(name, action)
            self.record(who, at.name, at.params, None, "InjectedFault")
        else:
            passed = self._system.advance(name)
            self.record(who, passed.name, passed.params, passed.outcome, passed.error)
            return passed.outcome or ""
        return ""


def walks(nursery: Nursery) -> Walking:
    """Spool admission with three consumers, five files and three contents."""
    return Walking(INVARIANTS, lambda variant: _Walk(nursery, variant), _shape)


def _shape(state: State) -> Hashable:
    """Where the consumers stand, how full the batch is, and whether a file of it is stale."""
    full = sum(len(batch) for batch in each(state, "batch").values() if isinstance(batch, tuple))
    return positions(state), full, any(each(state, "stale").values())
