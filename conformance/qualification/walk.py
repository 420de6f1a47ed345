"""Random walks of qualification beyond the bound of the graphs: four ranks on three hosts, and all faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.engine.gates import At
from conformance.engine.replay import State
from conformance.engine.values import Function
from conformance.qualification.environment import Places
from conformance.qualification.system import INVARIANTS, QualificationSystem
from conformance.states import each, members, positions
from conformance.walking import Walk, Walking

__all__ = ["walks"]

HOSTS = ("hosta", "hostb", "hosta", "hostc")
RENEWALS = 2
# Every second walk begins with a fleet that works; and each some times so many steps later.
_AHEAD = 55


class _Walk(Walk[QualificationSystem]):
    """One fleet on one walk."""

    def __init__(self, directories: Places, variant: int) -> None:
        super().__init__(QualificationSystem(directories, HOSTS, working=variant % 2 == 1, variant=variant))
        for number in range(_AHEAD * (variant // 2)):
            standing = [rank for rank in self._system.ranks if self._system.at(rank)]
            if standing:
                self._system.advance(standing[number % len(standing)])
                continue
            turning = [move for move in self.moves() if move["name"] == "Turn"]
            if not turning:
                break
            self._system.perform(turning[0])

    def moves(self) -> Mapping[Function, int]:
        return super().moves() or {Function({"name": "Rest"}): 1}

    def _moves(self) -> Iterator[tuple[Function, int]]:
        """Ranks go on nine times out of ten; the rest is what disturbs them."""
        system = self._system
        state = system.project()
        pc = each(state, "pc")
        for rank in system.ranks:
            at = system.stage.players[str(rank)].position
            here = pc[rank]
            if isinstance(at, At):
                yield Function({"name": at.name, "by": rank}), 400
                if at.name not in ("Observe", "Consume", "Abort", "Shutdown", "Contain", "Release"):
                    yield Function({"name": "RaiseOrdinary", "by": rank, "sent": 0}), 1
            if here in ("wait", "leaving"):
                yield Function({"name": "Expire", "by": rank}), 1
            if here == "wait":
                yield Function({"name": "RaiseOrdinary", "by": rank, "sent": 0}), 1
                yield Function({"name": "Stray", "by": rank}), 4
            if here not in ("work", "gone", "unwound"):
                yield Function({"name": "RaiseControl", "by": rank}), 1
            if here == "work" and self._may_turn(state, rank):
                yield Function({"name": "Turn", "by": rank}), 200

    @staticmethod
    def _may_turn(state: State, rank: int) -> bool:
        turns = rank == 0 and each(state, "generation")[0] in range(RENEWALS)
        return bool(state["stops"]) or rank in members(state, "asked") or turns

    def take(self, move: Function) -> str:
        name, by = str(move["name"]), move.get("by", 0)
        assert isinstance(by, int)
        if name == "Rest":
            return ""
        if name in ("RaiseOrdinary", "RaiseControl", "Expire", "Stray", "Turn"):
            self._system.perform(move)
            return ""
        passed = self._system.advance(by)
        return passed.error or passed.outcome or ""


def walks(directories: Places) -> Walking:
    """One fleet of four ranks, struck whatever it does."""
    return Walking(INVARIANTS, lambda variant: _Walk(directories, variant), positions)
