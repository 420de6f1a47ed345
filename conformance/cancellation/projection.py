"""The real state of a solver as values of the variables of ``models/cancellation/Cancellation.tla``."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from conformance.cancellation.environment import Clock, Server, looked
from conformance.cancellation.invariants import NOBODY, NONE
from conformance.engine.gates import At, Idle
from conformance.engine.module import variables
from conformance.engine.replay import Divergence, gate_of
from conformance.engine.stage import Moving, Stage
from conformance.engine.values import Function, Value, function
from smtspool.query import Status
from smtspool.solve import (
    Cancellation,
    FailureKind,
    PersistentSolver,
    RequestView,
    SolverView,
    Waiting,
)

__all__ = ["CLOSER", "MODULE", "Projection", "request_of"]

MODULE = Path(__file__).parents[2] / "models" / "cancellation" / "Cancellation.tla"
VARIABLES = variables(MODULE)

CLOSER = "k"

STEP_OF_GATE = {
    "Register": "register",
    "AcquireIO": "acquire",
    "Admit": "admit",
    "Spawn": "spawn",
    "Exchange": "exchange",
    "Answer": "answer",
    "Settle": "settle",
    "Unregister": "unregister",
}
STEP_OF_WAIT = {Waiting.TURN: "queued", Waiting.REPLY: "asked"}


def request_of(solver: SolverView, name: str) -> RequestView | None:
    """What a request shows while it is registered, else None."""
    return next((one for one in solver.requests if one.attempt_id == name), None)


class Projection:
    """What a solver looks like. The harness notes what leaves no trace in the code."""

    requests: tuple[str, ...]
    clock: Clock
    server: Server
    solver: PersistentSolver
    stage: Stage
    over: Cancellation

    def __init__(self, deadlines: dict[str, float]) -> None:
        self._deadlines = deadlines
        self._settled: set[str] = set()  # those whose Settle was seen
        self._refused: set[str] = set()  # those that the machine gave no helper
        self._hit: set[str] = set()  # those that waited for a reply of the generation that a signal hit
        self._due: set[str] = set()
        self._last: dict[str, tuple[str, int]] = {}  # request -> (ended, used) once it has left

    def project(self) -> dict[str, Value]:
        """The real state as values of the module's variables."""
        return {name: getattr(self, f"_project_{name}")() for name in VARIABLES}

    def look(self) -> SolverView:
        """What the solver shows."""
        return looked(self.solver.view)

    def _each(self, of: Callable[[str], Value]) -> Value:
        return function({name: of(name) for name in self.requests})

    def _mine(self, name: str) -> RequestView | None:
        """What a request shows while it is registered, else None."""
        return request_of(self.look(), name)

    def _pc(self, name: str) -> str:
        position = self.stage.players[name].position
        if isinstance(position, Idle):
            return "done"
        if isinstance(position, At):
            if position.name == "Retire":
                return "retire" if name in self._settled else "bury"
            return STEP_OF_GATE[position.name]
        mine = self._mine(name)
        if mine is None or mine.waiting is None:
            raise Divergence(f"{name} stands, and does not say what it waits for")
        return STEP_OF_WAIT[mine.waiting]

    def _used(self, name: str) -> int:
        mine = self._mine(name)
        return int(mine.generation) if mine is not None else self._last.get(name, (NONE, 0))[1]

    def _late(self) -> frozenset[str]:
        return frozenset(name for name, deadline in self._deadlines.items() if self.clock() >= deadline)

    def _project_pc(self) -> Value:
        return self._each(self._pc)

    def _project_reason(self) -> Value:
        def reason(name: str) -> str:
            mine = self._mine(name)
            return NONE if mine is None or mine.reason is None else mine.reason.value

        return self._each(reason)

    def _project_heard(self) -> Value:
        return self._each(self._heard)

    def _heard(self, name: str) -> str:
        mine = self._mine(name)
        if mine is None:
            return NONE
        if mine.reply is not None:
            return "answer" if mine.reply is Status.SAT else "error"
        if mine.failure is None:
            return "no helper" if name in self._refused else NONE
        if mine.failure is FailureKind.TIMEOUT:
            return "timeout"
        # Of a killed helper the end of the channel may be seen before the signal is.
        return "killed" if name in self._hit or mine.failure is FailureKind.KILLED else "crashed"

    def _project_ended(self) -> Value:
        return self._each(lambda name: self._last.get(name, self._ended_of(self._mine(name)))[0])

    @staticmethod
    def _ended_of(mine: RequestView | None) -> tuple[str, int]:
        return (NONE if mine is None or mine.ended is None else str(mine.ended.value)), 0

    def _project_used(self) -> Value:
        return self._each(self._used)

    def _project_running(self) -> Value:
        return frozenset(one.attempt_id for one in self.look().requests)

    def _project_holder(self) -> Value:
        return self.look().holder or NOBODY

    def _project_active(self) -> Value:
        return self.look().active or NOBODY

    def _project_generation(self) -> Value:
        helper = self.look().helper
        return 0 if helper is None else helper.generation

    def _project_life(self) -> Value:
        lives = [self.server.life(generation) for generation in self.server.spawned]
        numbers = range(1, len(self.requests) + 1)
        return tuple(life for _, life in itertools.zip_longest(numbers, lives, fillvalue="unborn"))

    def _project_hand(self) -> Value:
        hands: dict[Value, Value] = {}
        for name, player in self.stage.players.items():
            at = player.position
            kills = isinstance(at, At) and at.name in ("Retire", "Signal")
            hands[name] = at.params["generation"] if kills and isinstance(at, At) else 0
        return function(hands)

    def _closer(self) -> str:
        position = self.stage.players[CLOSER].position
        if isinstance(position, At):
            return position.name.lower()
        if isinstance(position, Moving):
            return "wait"
        return "open" if position.result is None else "done"

    def _project_closer(self) -> Value:
        return self._closer()

    def _project_closed(self) -> Value:
        return self.look().closed

    def _project_over(self) -> Value:
        return self.over.reason is not None

    def _project_late(self) -> Value:
        return self._late()

    def _project_due(self) -> Value:
        return frozenset(self._due)

    def standing(self) -> frozenset[str]:
        """The gates where threads stand."""
        return frozenset(
            gate_of(Function(_gate(player.name, player.position)))
            for player in self.stage.players.values()
            if isinstance(player.position, At)
        )


def _gate(name: str, at: At) -> dict[Value, Value]:
    gate: dict[Value, Value] = {"name": at.name, "by": name}
    if at.name in ("Retire", "Signal"):
        gate["generation"] = at.params["generation"]
    return gate
