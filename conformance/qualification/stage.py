"""The stage of the ranks: gates that can raise, and waits in which a rank sleeps until something happens."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from conformance.engine.gates import At, GateError, Idle
from conformance.engine.stage import Player, Stage
from conformance.qualification.environment import Gone

__all__ = ["RankStage"]


class RankStage(Stage):
    """Ranks as players. A step within a step (a boundary inside an observation) has no gate of its own.

    While the stage is ``free``, everybody passes every gate.
    """

    def __init__(self, *, patience_s: float) -> None:
        super().__init__(lambda player: self._sleeps(player), patience_s=patience_s)
        self.free = False
        self._depth: dict[int, int] = defaultdict(int)
        self._faults: dict[str, BaseException] = {}
        self._asleep: set[str] = set()
        self._woken: set[str] = set()
        self._stir = threading.Condition()  # protects the two above

    # the ranks' side

    def before(self, name: str, params: Mapping[str, Any]) -> None:
        """Stand at the gate of a step until released; it may then raise instead."""
        me = threading.get_ident()
        if self._depth[me] == 0 and not self.free:
            super().before(name, params)
            player = self._by_thread.get(me)
            if player is not None:
                self._raise_due(player)
        self._depth[me] += 1

    def after(self, name: str, params: Mapping[str, Any], outcome: str | None, error: str | None) -> None:
        """A step was taken."""
        me = threading.get_ident()
        self._depth[me] -= 1
        if self._depth[me] == 0:
            super().after(name, params, outcome, error)

    def pause(self, name: str) -> None:
        """Sleep until woken. Raises what the rank was struck with."""
        with self._stir:
            self._asleep.add(name)
        with self._changed:
            self._changed.notify_all()
        with self._stir:
            while not (name in self._woken or name in self._faults or self._over):
                self._stir.wait()
            self._woken.discard(name)
            self._asleep.discard(name)
        self._raise_due(self.players[name])

    def _raise_due(self, player: Player) -> None:
        fault = self._faults.pop(player.name, None)
        if fault is not None:
            raise fault
        if self._over:
            raise Gone

    # the scheduler's side

    def wake(self, name: str) -> None:
        """Something has happened that a sleeping rank may look at."""
        with self._stir:
            self._woken.add(name)
            self._stir.notify_all()

    def strike(self, name: str, fault: BaseException, *, moved: bool = True) -> None:
        """A rank that stands at a gate, or sleeps, raises."""
        self._faults[name] = fault
        player = self.players[name]
        if isinstance(player.position, At):
            self.go(name)
        else:
            with self._stir:
                self._stir.notify_all()
            self.come_to_rest(f"{name} was struck", moved=name if moved else None)

    def end(self, name: str) -> None:
        """The process of a rank ends where it is. Raises :class:`GateError` if it goes on."""
        player = self.players[name]
        for _ in range(20):
            if isinstance(player.position, Idle):
                return
            self.strike(name, Gone())
        raise GateError(f"{name} goes on after its end: {player.position}")

    def _sleeps(self, player: Player) -> bool:
        with self._stir:
            return player.name in self._asleep and not (
                player.name in self._woken or player.name in self._faults
            )

    def close_all(self) -> None:
        """Every thread ends."""

        def rouse() -> None:
            with self._stir:
                self._stir.notify_all()

        self.close(rouse)
