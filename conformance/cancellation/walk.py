"""Random walks of cancellation beyond the bound of the graphs: more requests, more threads that cancel."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.cancellation.system import INVARIANTS, Bounds, CancellationSystem, Helpers
from conformance.engine.gates import At, Idle
from conformance.engine.values import Function
from conformance.states import each, positions
from conformance.walking import Walk, Walking

__all__ = ["walks"]

BOUNDS = Bounds(
    {"r1": "a", "r2": "b", "r3": "a", "r4": "b", "r5": "a", "r6": "c"},
    cancellers=("c", "d"),
    racing=frozenset({"r1", "r4"}),
    limited=frozenset({"r5"}),
)


class _Walk(Walk[CancellationSystem]):
    """One solver on one walk."""

    def _moves(self) -> Iterator[tuple[Function, int]]:
        """Threads go on three times out of four; the rest is what disturbs them."""
        system = self._system
        players = system.stage.players
        for name, player in players.items():
            if isinstance(player.position, At):
                yield Function({"name": player.position.name, "by": name}), 9
                if player.position.name == "Spawn":
                    yield Function({"name": "FailSpawn", "by": name}), 1
        pc = each(system.project(), "pc")
        for request in (name for name, at in pc.items() if at == "asked"):
            yield Function({"name": "Reply", "by": request, "finding": "answer"}), 6
            yield Function({"name": "Reply", "by": request, "finding": "error"}), 1
        for name in BOUNDS.cancellers:
            if isinstance(players[name].position, Idle):
                for letter in sorted({*BOUNDS.queries.values()}):
                    yield Function({"name": "CancelSolver", "by": name, "query": letter}), 1
        for number, generation in enumerate(system.server.spawned, 1):
            if system.server.life(generation) == "valid":
                yield Function({"name": "Crash", "generation": number}), 4
        if system.over.reason is None:
            yield Function({"name": "CallOff"}), 1
        if pc["r5"] != "done" and not system.project()["late"]:
            yield Function({"name": "Expire", "by": "r5"}), 1
        if system.project()["closer"] == "open":
            yield Function({"name": "Close", "by": "k"}), 1

    def take(self, move: Function) -> str:
        if "by" not in move or str(move["name"]) in ("FailSpawn", "Reply", "CancelSolver", "Expire", "Close"):
            self._system.perform(move)
            return ""
        passed = self._system.advance(str(move["by"]))
        outcome = (passed.outcome or "") if passed.name != "Spawn" else ""
        return passed.error or outcome


def walks(helpers: Helpers) -> Walking:
    """One solver with six requests for three queries, and two threads that cancel."""
    return Walking(INVARIANTS, lambda _: _Walk(CancellationSystem(helpers, BOUNDS)), positions)
