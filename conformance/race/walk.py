"""Random walks of races beyond the bound of the graphs: three engines, whose models two others may check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.cancellation.environment import Helpers
from conformance.engine.gates import At, Idle
from conformance.engine.stage import Moving
from conformance.engine.values import Function
from conformance.race.invariants import invariants
from conformance.race.system import Bounds, RaceSystem
from conformance.states import positions
from conformance.walking import Walk, Walking

__all__ = ["walks"]

ENGINES = ("s1", "s2", "s3")
# What the model does not tell apart is how the race was set up: by the number of the variant.
_SETUPS = (
    Bounds(ENGINES, cpus=3),
    Bounds(ENGINES, cpus=2),
    Bounds(ENGINES, cpus=3, hedged=True),
    Bounds(ENGINES, cpus=3, busy=4, queue=True),
)


class _Walk(Walk[RaceSystem]):
    """One portfolio on one walk."""

    def moves(self) -> Mapping[Function, int]:
        return super().moves() or {Function({"name": "Rest"}): 1}

    def _moves(self) -> Iterator[tuple[Function, int]]:
        """Threads and engines go on most of the time; the rest is what disturbs them."""
        system = self._system
        players = system.stage.players
        for name, player in players.items():
            if isinstance(player.position, At):
                yield Function({"name": player.position.name, "by": name}), 40
                if player.position.name == "Register" and not system.over() and not system.is_late():
                    yield Function({"name": "Register", "by": name, "outcome": "no helper"}), 3
        for call in system.calls:
            if system.stage_of(call) == "asked":
                for finding, weight in (("sat", 24), ("unsat", 8), ("unknown", 8)):
                    yield Function({"name": "Reply", "of": call, "finding": finding}), weight
                yield Function({"name": "Crash", "of": call}), 4
        if system.busy:
            yield Function({"name": "FreeThread"}), 12
        if system.token.reason is None:
            yield Function({"name": "Cancel"}), 1
        if isinstance(players["closer"].position, Idle) and system.closer() == "open":
            yield Function({"name": "Shut"}), 1
        if not system.is_late() and not system.is_all_over():
            yield Function({"name": "Expire"}), 1
        if isinstance(players["race"].position, Moving):
            if system.opinion() is not None:
                for finding in ("sat", "unsat", "unknown"):
                    yield Function({"name": "Opinion", "finding": finding}), 4
            elif system.over():
                yield Function({"name": "GiveUp"}), 12
            elif not system.ripe():
                yield Function({"name": "Delay"}), 24

    def take(self, move: Function) -> str:
        if move["name"] == "Rest":
            return ""
        if move["name"] == "Opinion":
            self._system.opine(str(move["finding"]))
            return str(move["finding"])
        if "by" not in move:
            self._system.perform(move)
            return str(move.get("finding", ""))
        passed = self._system.advance(str(move["by"]), refuse_helper="outcome" in move)
        return passed.error or passed.outcome or str(move.get("outcome", ""))


def walks(helpers: Helpers) -> Walking:
    """Races of three engines, set up by the variant."""
    return Walking(
        invariants(3, third=True),
        lambda variant: _Walk(RaceSystem(helpers, _SETUPS[variant % len(_SETUPS)])),
        lambda state: (state["race"], positions(state, "stage")),
    )
