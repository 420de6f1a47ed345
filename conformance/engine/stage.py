"""Gates for threads of this process: real threads that stand still between any two steps.

:mod:`.gates` holds processes, which can be killed. Here threads share the objects under test, which can be
read while no thread runs. A *player* is one thread that makes one call after the other. It stands at a gate,
is idle, or waits for something that another player or the environment must do; the caller's ``waits`` tells
from the real state whether it does. :meth:`Stage.come_to_rest` returns when no player moves.

A *guest* is a player whose thread belongs to the code under test, for example to a pool. It is expected,
comes when its thread takes its first step, and is gone when ``waits`` says so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .gates import LEDGER, At, GateError, Idle, Passed

__all__ = ["Moving", "Player", "Stage"]


@dataclass(frozen=True, slots=True)
class Moving:
    """Between two gates: on its way, or waiting."""


@dataclass(eq=False)
class Player:
    """One thread. ``raised`` is the exception that ended its last call; a guest has a thread once it came."""

    name: str
    guest: bool = False
    position: At | Idle | Moving = field(default_factory=Idle)
    passed: list[Passed] = field(default_factory=list)
    raised: BaseException | None = None
    call: Callable[[], Any] | None = None
    released: bool = False
    thread: threading.Thread | None = None


class Stage:
    """All players of one system. ``before`` and ``after`` are for the seam of the code under test."""

    def __init__(
        self,
        waits: Callable[[Player], bool],
        *,
        quiet: Callable[[], bool] = lambda: True,
        patience_s: float = 10.0,
    ) -> None:
        """``quiet`` tells whether threads that are no players stand still too."""
        self.players: dict[str, Player] = {}
        self._waits = waits
        self._quiet = quiet
        self._patience_s = patience_s
        self._changed = threading.Condition()  # protects the players and what is below
        self._by_thread: dict[int, Player] = {}
        self._over = False

    # the players' side

    def before(self, name: str, params: Mapping[str, Any]) -> None:
        """Stand at the gate of a step until released."""
        player = self._by_thread.get(threading.get_ident())
        with self._changed:
            if player is None or self._over:
                return
            player.position = At(name, params)
            self._changed.notify_all()
            self._changed.wait_for(lambda: player.released or self._over)
            player.released = False
            player.position = Moving()

    def after(self, name: str, params: Mapping[str, Any], outcome: str | None, error: str | None) -> None:
        """A step was taken."""
        player = self._by_thread.get(threading.get_ident())
        if player is not None:
            with self._changed:
                player.passed.append(Passed(name, params, outcome, error))

    def _play(self, player: Player) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: player.call is not None or self._over)
                call, player.call = player.call, None
            if call is None:
                return
            result = None
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001  whatever the code raises is an observation
                player.raised = error
            with self._changed:
                player.position = Idle(result)
                self._changed.notify_all()

    # the scheduler's side

    def enter(self, name: str) -> None:
        """A new player, idle."""
        player = self.players[name] = Player(name)
        player.thread = threading.Thread(
            target=self._begin, args=[player], name=f"player {name}", daemon=True
        )
        player.thread.start()

    def _begin(self, player: Player) -> None:
        self._by_thread[threading.get_ident()] = player
        self._play(player)

    def invite(self, name: str) -> None:
        """A new guest, idle until it is expected."""
        self.players[name] = Player(name, guest=True)

    def expect(self, name: str) -> None:
        """A guest is on its way to its first gate."""
        with self._changed:
            self.players[name].position = Moving()

    def receive(self, name: str) -> None:
        """The guest has come: it is this thread."""
        with self._changed:
            player = self.players[name]
            player.thread = threading.current_thread()
            self._by_thread[threading.get_ident()] = player

    def owner(self, thread: threading.Thread) -> Player | None:
        """The player to which the thread belongs."""
        return self._by_thread.get(thread.ident or 0)

    def call(self, name: str, what: Callable[[], Any]) -> None:
        """Make an idle player call ``what``; it then goes on to the first gate, a wait, or the end."""
        player = self.players[name]
        with self._changed:
            if not isinstance(player.position, Idle):
                raise GateError(f"{name} cannot be called: {player.position}")
            player.raised, player.call, player.position = None, what, Moving()
            self._changed.notify_all()
        self.come_to_rest(f"{name} was called")

    def go(self, name: str) -> list[Passed]:
        """Let it through the gate it stands at, and wait until nobody moves; the steps that it took."""
        player = self.players[name]
        with self._changed:
            if not isinstance(player.position, At):
                raise GateError(f"{name} stands at no gate: {player.position}")
            step = player.position.name
            player.passed.clear()
            # It moves from now on, whether or not its thread has begun to.
            player.released, player.position = True, Moving()
            LEDGER.released += 1
            self._changed.notify_all()
        self.come_to_rest(f"{name} took {step}")
        return list(player.passed)

    def release(self, name: str) -> Passed:
        """Let it take the step it stands at, and no other one."""
        position = self.players[name].position
        passed = self.go(name)
        assert isinstance(position, At)
        if [one.name for one in passed] != [position.name]:
            raise GateError(f"{name} took {[one.name for one in passed]}, released was {position.name}")
        return passed[0]

    def come_to_rest(self, after: str, *, moved: str | None = None) -> None:
        """Wait until nobody moves; ``moved`` must have come to a gate or an end."""
        deadline = time.monotonic() + self._patience_s
        with self._changed:
            while stuck := self._moving(moved):
                if time.monotonic() > deadline:
                    raise GateError(
                        f"{', '.join(stuck)} is blocked: no gate for {self._patience_s:g} s after {after}"
                    )
                self._changed.wait(0.0005)

    def _moving(self, moved: str | None) -> list[str]:
        found = [p.name for p in self.players.values() if not self._stands(p, p.name == moved)]
        return found if found or self._quiet() else ["a thread that is no player"]

    def _stands(self, player: Player, must_have_moved: bool) -> bool:
        if isinstance(player.position, Moving):
            return not must_have_moved and not player.released and player.call is None and self._waits(player)
        return True

    def close(self, end: Callable[[], None]) -> None:
        """Open all gates, ``end`` what players wait for, and join every thread."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        end()
        for player in self.players.values():
            if player.guest:
                continue
            assert player.thread is not None
            player.thread.join(self._patience_s)
            if player.thread.is_alive():
                raise GateError(f"{player.name} does not end")
