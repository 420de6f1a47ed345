"""Random walks of profile recovery beyond the bound of the model: larger windows, more values, more policies,
every hazard together.

Every walk is kept as a recording. Afterwards TLC checks whether it is a behaviour of the model with constants
as large as the walk.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from conformance.engine.gates import Nursery
from conformance.engine.replay import State
from conformance.engine.values import Function, Value
from conformance.profile_recovery.invariants import invariants
from conformance.profile_recovery.system import WRITES, Bounds, ProfileSystem
from conformance.walking import Walk, Walking

__all__ = ["BOUNDS", "walks"]

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


class _Walk(Walk[ProfileSystem]):
    """One folder on one walk, recorded."""

    def __init__(self, nursery: Nursery, variant: int) -> None:
        super().__init__(ProfileSystem(nursery, BOUNDS, "p", variant=variant))
        self._state = self._system.project()

    def _moves(self) -> Iterator[tuple[Function, int]]:
        """The coordinator goes on three times out of four; the rest is what disturbs it."""
        for move, weight in self._going_on():
            yield Function(move), weight

    def _going_on(self) -> Iterator[tuple[dict[Value, Value], int]]:
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
        self.record("walk", name, {**told, **params}, outcome or None)
        return f"{move['file']}" if move["name"] == "FailWrite" else outcome

    def project(self) -> State:
        """The real state, as it was after the last step."""
        return self._state


def walks(nursery: Nursery) -> Walking:
    """Profile recovery with a window of twelve records of three values, and three policies."""
    return Walking(invariants(BOUNDS.thresholds()), lambda variant: _Walk(nursery, variant), _shape)


def _shape(state: State) -> Hashable:
    """Where the coordinator stands, and what it believes."""
    told = [str(state[key]) for key in ("pc", "dirty", "renewal", "build")]
    return (*told, bool(state["current"]), bool(state["served"]))
