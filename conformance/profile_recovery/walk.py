"""Random walks of profile recovery beyond the bound of the model: larger windows, more values, more policies,
every hazard together.

Every walk is kept as a recording. Afterwards TLC checks whether it is a behaviour of the model with constants
as large as the walk.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from conformance.engine import walk as engine
from conformance.engine.gates import Nursery
from conformance.engine.replay import State
from conformance.engine.trace import Recorded
from conformance.engine.values import Function, Value
from conformance.profile_recovery.invariants import invariants
from conformance.profile_recovery.system import WRITES, Bounds, ProfileSystem

__all__ = ["BOUNDS", "ProfileWalks"]

# Two policies that differ in how many observations they ask for, and one whose domains are narrower.
BOUNDS = Bounds(
    "abc",
    window=12,
    policies={"p": (1, 2), "q": (4, 2), "r": (2, 1)},
    counted=(
        "generations_published",
        "semantic_noops",
        "publication_failures",
        "checkpoint_failures",
        "recovery_replays",
        "recovery_replay_mismatches",
    ),
    most=1_000_000,
    landings=(True, False),
)
GATE_OF_PC = {"load": "LoadState", "verify": "VerifyRuntime", "replay": "Replay", "switch": "Switch"} | {
    file: gate for gate, file in WRITES.items()
}


class _Walk:
    """One folder on one walk, recorded."""

    def __init__(self, nursery: Nursery, variant: int, recordings: list[list[Recorded]]) -> None:
        self._recording: list[Recorded] = []
        self._recordings = recordings
        self._system = ProfileSystem(nursery, BOUNDS, "p", variant=variant)
        self._state = self._system.project()

    def moves(self) -> Mapping[Function, int]:
        """The coordinator goes on three times out of four; the rest is what disturbs it."""
        return {Function(move): weight for move, weight in self._moves()}

    def _moves(self) -> Iterator[tuple[dict[Value, Value], int]]:
        pc = str(self._state["pc"])
        if pc == "down":
            yield {"name": "Restart"}, 10
            yield from self._damages()
            return
        if pc in GATE_OF_PC:
            yield {"name": GATE_OF_PC[pc]}, 36
            for landed in BOUNDS.landings if pc in WRITES.values() else ():
                yield {"name": "FailWrite", "file": pc, "landed": landed}, 3
        if pc == "idle":
            if self._state["dirty"]:
                yield {"name": "Build"}, 24
            # Often the same value again, so that domains come about at all.
            for value in BOUNDS.values:
                yield {"name": "Observe", "record": value}, 12 if value == "a" else 1
        if pc == "idle" or pc in (*WRITES.values(), "switch"):
            yield {"name": "Serve"}, 3
        yield {"name": "Crash"}, 3

    def _damages(self) -> Iterator[tuple[dict[Value, Value], int]]:
        """What may happen to the files as they are."""
        for policy in BOUNDS.policies:
            if policy != self._state["policy"]:
                yield {"name": "ChangePolicy", "policy": policy}, 1
        runtime = self._state["runtime"]
        if self._state["artifacts"]:
            yield {"name": "Corrupt", "file": "artifact"}, 2
        if runtime:
            yield {"name": "Remove"}, 4
        if runtime and runtime != frozenset({self._system.folder.garbage()}):
            yield {"name": "Corrupt", "file": "runtime"}, 1
        files = self._state["state"]
        assert isinstance(files, frozenset)
        for file in files:
            assert isinstance(file, Function)
            yield {"name": "Corrupt", "file": "state"}, 1
            if file["records"]:
                yield {"name": "Truncate"}, 2
            for records in (("b",), ("a", "a", "a", "a"), ("a", "b", "c")):
                if records != file["records"]:
                    yield {"name": "Drift", "records": records}, 4

    def take(self, move: Function) -> str:
        """Take the step, and record it."""
        name = str(move["name"])
        params = {str(key): value for key, value in move.items() if key != "name"}
        told = self._system.parameters()
        outcome = self._system.take(name, **params)
        self._state = self._system.project()
        if name == "Restart":
            params = {"policy": self._system.policy}
        elif name == "FailWrite":
            name, params = {file: gate for gate, file in WRITES.items()}[str(move["file"])], {}
        elif name == "Drift":
            params = {"to": move["records"]}
        elif name == "Build":
            params = {"records": len(self._system.window())}
        number = len(self._recording) + 1
        line = Recorded(
            number, "walk", number, number, name, {**told, **params}, outcome or None, None, begun=number
        )
        self._recording.append(line)
        return f"{move['file']}" if move["name"] == "FailWrite" else outcome

    def project(self) -> State:
        """The real state."""
        return self._state

    def close(self) -> None:
        """End the coordinator and keep the recording."""
        self._system.close()
        if self._recording:
            self._recordings.append(self._recording)


class ProfileWalks:
    """Profile recovery with a window of twelve records of three values, and three policies."""

    invariants = invariants(BOUNDS.thresholds())

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        self.recordings: list[list[Recorded]] = []

    def begin(self, variant: int) -> engine.Walk:
        """An empty folder, and nobody up."""
        return _Walk(self._nursery, variant, self.recordings)

    def shape(self, state: State) -> Hashable:
        """Where the coordinator stands, and what it believes."""
        told = [str(state[key]) for key in ("pc", "dirty", "renewal", "build")]
        return (*told, bool(state["current"]), bool(state["served"]))
