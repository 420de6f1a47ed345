"""Random walks of spool admission beyond the bound of the model: more consumers, more files, more contents.

Every walk is kept as a recording. Afterwards TLC checks whether it is a behaviour of the model with constants
as large as the walk.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from conformance.engine import walk as engine
from conformance.engine.gates import At, Nursery
from conformance.engine.replay import State
from conformance.engine.trace import Recorded
from conformance.engine.values import Function, Value
from conformance.spool_admission.environment import CONTENTS, SUFFIX
from conformance.spool_admission.system import FAULT_AT_GATE, INVARIANTS, SpoolSystem

__all__ = ["BATCH", "SpoolWalks"]

CONSUMERS = ("p", "q", "r")
FILES = ("a", "b", "c", "d", "e")
BATCH = 3


class _Walk:
    """One spool on one walk, recorded."""

    def __init__(self, nursery: Nursery, variant: int, recordings: list[list[Recorded]]) -> None:
        self._recording: list[Recorded] = []
        self._recordings = recordings
        self._fresh = list(FILES)
        self._system = SpoolSystem(nursery, CONSUMERS, FILES, tuple(CONTENTS), batch=BATCH, variant=variant)

    def moves(self) -> Mapping[Function, int]:
        """Moves with weights: three of five continue a pass, the others disturb it."""
        return dict(self._moves())

    def _moves(self) -> Iterator[tuple[Function, int]]:
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
            self._record(who, "Crash", {}, None, None)
        elif action in FAULT_AT_GATE.values():
            self._system.fail(name, action)
            self._record(who, at.name, at.params, None, "InjectedFault")
        else:
            passed = self._system.advance(name)
            self._record(who, passed.name, passed.params, passed.outcome, passed.error)
            return passed.outcome or ""
        return ""

    def _record(
        self, who: str, action: str, params: Mapping[str, Value], outcome: str | None, error: str | None
    ) -> None:
        number = len(self._recording) + 1
        self._recording.append(
            Recorded(number, who, number, number, action, params, outcome, error, begun=number)
        )

    def project(self) -> State:
        """The real state."""
        return self._system.project()

    def close(self) -> None:
        """End the consumers and keep the recording."""
        self._system.close()
        if self._recording:
            self._recordings.append(self._recording)


class SpoolWalks:
    """Spool admission with three consumers, five files and three contents."""

    invariants = INVARIANTS

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        self.recordings: list[list[Recorded]] = []

    def begin(self, variant: int) -> engine.Walk:
        """An empty spool."""
        return _Walk(self._nursery, variant, self.recordings)

    def shape(self, state: State) -> Hashable:
        """Where the consumers stand, how full the batch is, and whether a file of it is stale."""
        pcs, batches, stale = (state[name] for name in ("pc", "batch", "stale"))
        assert isinstance(pcs, Function) and isinstance(batches, Function) and isinstance(stale, Function)
        return (
            tuple(sorted(map(str, pcs.values()))),
            sum(len(batch) for batch in batches.values() if isinstance(batch, tuple)),
            any(stale.values()),
        )
