"""Cancellation: ``models/cancellation`` driven through a real ``PersistentSolver``.

Requests, cancellers and the closer are threads; generations, channels, signals and helper processes are real,
and the helper answers when it is told. Three things stand in for the environment: a server that forks such
helpers in place of the fork server, or has none to give; SIGKILL for a helper that crashes; and the clock,
which is real but for the leaps that let a deadline pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import cast

from conformance.adapters import GraphAdapter
from conformance.cancellation.environment import Clock, Helpers, Server, stands
from conformance.cancellation.invariants import INVARIANTS, NONE, UNSETTLED
from conformance.cancellation.projection import CLOSER, MODULE, Projection, request_of
from conformance.engine.gates import At, Idle, Passed
from conformance.engine.replay import Divergence, Refused
from conformance.engine.stage import Player, Stage
from conformance.engine.values import Function
from conformance.seam import Seam
from smtspool.actions import observed_by
from smtspool.errors import ClosedError, InfrastructureError
from smtspool.query import Query, Status, parse_smt2
from smtspool.solve import (
    Cancellation,
    CancelReason,
    EngineAnswer,
    ForkServer,
    PersistentSolver,
)

__all__ = ["INVARIANTS", "MODULE", "Bounds", "CancellationSystem", "Helpers", "adapter"]

FAR_S, NEAR_S = 1e7, 1e5  # deadlines that never pass, and those that a leap of the clock makes pass

REGISTERED = UNSETTLED | {"retire", "unregister"}


def query_of(letter: str) -> Query:
    """The query that the model calls ``letter``."""
    value = ord(letter) - ord("a") + 1
    (query,) = parse_smt2(
        f"(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= x (_ bv{value} 8)))(check-sat)"
    )
    return query


@dataclass(frozen=True, slots=True)
class Bounds:
    """Who there is: requests and what they ask for, who cancels, whose race may be called off, who may be
    late."""

    queries: Mapping[str, str]
    cancellers: tuple[str, ...] = ("c",)
    racing: frozenset[str] = frozenset()
    limited: frozenset[str] = frozenset()


class CancellationSystem(Projection):
    """One solver, its helper, and all threads that use it."""

    def __init__(self, helpers: Helpers, bounds: Bounds, *, patience_s: float = 10.0) -> None:
        queries, limited = bounds.queries, bounds.limited
        self.requests = tuple(queries)
        self.cancellers = bounds.cancellers
        self.clock = Clock()
        self.server = Server(helpers, self.clock)
        self.solver = PersistentSolver(cast(ForkServer, self.server), clock=self.clock, wait=self.clock.wait)
        self.stage = Stage(self._waits, patience_s=patience_s)
        self.over = Cancellation()
        self._queries = queries
        self._ids = {letter: query_of(letter).id for letter in sorted({*queries.values(), "a"})}
        super().__init__(
            {name: self.clock() + (NEAR_S if name in limited else FAR_S) for name in self.requests}
        )
        self._racing = bounds.racing
        self._closing = ExitStack()
        self._closing.enter_context(observed_by(Seam("cancellation", self.stage)))
        for name in (*self.requests, *self.cancellers, CLOSER):
            self.stage.enter(name)
        for name in self.requests:
            self.stage.call(name, partial(self._solve, name))

    def _solve(self, name: str) -> EngineAnswer:
        return self.solver.solve(
            query_of(self._queries[name]),
            attempt_id=name,
            deadline=self._deadlines[name],
            cancellation=self.over if name in self._racing else None,
        )

    def close(self) -> None:
        """End all threads and all helpers."""
        with self._closing:
            try:
                self.stage.close(self._end)
            finally:
                self.server.close()

    def _end(self) -> None:
        """Release even threads that a fault in the code would keep, by letting their deadlines pass."""
        self.solver.close(0.0)
        self.clock.leap(2 * FAR_S)
        self.clock.wake()
        for generation in self.server.spawned:
            generation.signal_kill()

    def _waits(self, player: Player) -> bool:
        """Whether a thread waits: a request as it shows, the closer for the requests."""
        solver = self.look()
        if player.name == CLOSER:
            return solver.leaving and bool(solver.requests)
        mine = request_of(solver, player.name)
        return mine is not None and stands(mine, solver, self.clock())

    # steps

    def perform(self, label: Function) -> None:
        """Take the step ``label`` for real."""
        name, by = str(label["name"]), str(label.get("by", ""))
        if name == "CancelSolver":
            self.cancel(by, str(label["query"]))
        elif name == "Close":
            self.shut()
        elif name == "CallOff":
            self.over.cancel(CancelReason.LOST_RACE)
        elif name == "Reply":
            self.reply(by, str(label["finding"]))
        elif name == "Crash":
            number = label["generation"]
            assert isinstance(number, int)
            self.crash(number)
        elif name == "Expire":
            self.expire(by)
        elif name == "FailSpawn":
            self.fail_spawn(by)
        else:
            passed = self.advance(by)
            if passed.name != name:
                raise Divergence(f"{by} took {passed.name} where the model takes {label}")
            went = "refused" if passed.error == "ClosedError" else passed.error or passed.outcome
            if name == "Register":
                went = went or "registered"
            if "outcome" in label and went != label["outcome"]:
                raise Divergence(f"{name} of {by} went {went} where the model takes {label}")
            if "outcome" not in label and passed.error is not None:
                raise Divergence(f"{name} of {by} raised {passed.error}")

    def advance(self, name: str) -> Passed:
        """Let a thread take the step at whose gate it stands."""
        at = self.stage.players[name].position
        if isinstance(at, At) and at.name == "Signal":
            self._hit |= self._asked(at.params["generation"])
        passed = self.stage.release(name)
        if passed.name == "Register" and passed.error is None and name in self._racing and self.over.reason:
            self._due.add(name)
        elif passed.name == "Settle":
            self._settled.add(name)
        elif passed.name == "Unregister":
            self._due.discard(name)
        elif passed.name == "Retire":
            self.server.require_dead(int(passed.params["generation"]))
        self._check_results()
        return passed

    def _check_results(self) -> None:
        for name, player in self.stage.players.items():
            if not isinstance(player.position, Idle) or player.call is not None:
                continue
            if name in self.requests and name not in self._last:
                self._last[name] = self._record(name, player)
            elif name == CLOSER and player.position.result not in (None, True):
                raise Divergence(f"close returned {player.position.result!r}", "report")

    def _record(self, name: str, player: Player) -> tuple[str, int]:
        """What is recorded of an attempt, once its call has come back as it must."""
        assert isinstance(player.position, Idle)
        answer = player.position.result
        if answer is None:
            expected = InfrastructureError if name in self._refused else ClosedError
            if not isinstance(player.raised, expected):
                raise Divergence(f"the call of {name} raised {player.raised!r}", "report")
            return NONE, 0
        attempt = answer.attempt
        if attempt.cancelled != (answer.status is Status.UNKNOWN) or attempt.attempt_id != name:
            raise Divergence(f"the call of {name} came back {answer}", "report")
        return attempt.cancel_reason or NONE, attempt.generation

    def cancel(self, by: str, letter: str) -> None:
        """Somebody cancels all requests for a query."""
        player = self.stage.players[by]
        if not isinstance(player.position, Idle):
            raise Refused(f"{by} is busy: {player.position}")
        meant = {name for name in self.requests if self._queries[name] == letter}
        should_tell = any(self._pc(name) in REGISTERED for name in meant)
        self._due |= {name for name in meant if self._pc(name) in UNSETTLED}
        self.stage.call(by, partial(self.solver.cancel, self._ids[letter], CancelReason.USER))
        passed = self.stage.release(by)
        if passed.outcome != ("told" if should_tell else "nobody"):
            raise Divergence(f"cancel of {letter} went {passed.outcome}", "report")
        position = player.position
        if isinstance(position, Idle) and position.result is not should_tell:
            raise Divergence(f"cancel of {letter} returned {position.result}", "report")

    def shut(self) -> None:
        """The closer closes; again, it has nothing to do."""
        if not isinstance(self.stage.players[CLOSER].position, Idle):
            raise Refused("the closer is at it")
        if self._closer() == "open":
            self._due |= {name for name in self.requests if self._pc(name) in UNSETTLED}
        self.stage.call(CLOSER, partial(self.solver.close, FAR_S))
        self.stage.release(CLOSER)
        self._check_results()

    def _asked(self, number: int) -> set[str]:
        return {name for name in self.requests if self._pc(name) == "asked" and self._used(name) == number}

    def reply(self, name: str, finding: str) -> None:
        """The helper answers, or its engine raises."""
        if self._pc(name) != "asked":
            raise Refused(f"{name} has asked nobody")
        self.server.tell(self._used(name), finding)
        self.stage.come_to_rest(f"the reply to {name}", moved=name)

    def crash(self, number: int) -> None:
        """The helper of a generation dies."""
        if number > len(self.server.spawned) or self.server.life(self.server.spawned[number - 1]) != "valid":
            raise Refused(f"generation {number} has no helper")
        self.server.kill(number)
        self.stage.come_to_rest(f"the crash of generation {number}")

    def expire(self, name: str) -> None:
        """The deadline of a request passes."""
        if name in self._late() or self._pc(name) == "done":
            raise Refused(f"the deadline of {name} has passed")
        asked = self._pc(name) == "asked"
        self.clock.leap(NEAR_S)
        self.clock.wake()
        if asked:
            self.server.tell(self._used(name), "noise")
        self.stage.come_to_rest(f"the deadline of {name}", moved=name if asked else None)

    def fail_spawn(self, name: str) -> None:
        """The machine has no helper to give to a request that stands at Spawn."""
        at = self.stage.players[name].position
        if not isinstance(at, At) or at.name != "Spawn":
            raise Refused(f"{name} stands at {at}")
        self.server.refuses = True
        self._refused.add(name)
        passed = self.stage.release(name)
        self.server.refuses = False
        if passed.error != "InfrastructureError":
            raise Divergence(f"Spawn without a helper went {passed}")


def adapter(helpers: Helpers, bounds: Bounds, patience_s: float) -> GraphAdapter:
    """The bounded model's threads and helpers, as real ones."""
    return GraphAdapter(
        invariants=INVARIANTS,
        external=frozenset({"CancelSolver", "Close", "CallOff", "Reply", "Crash", "Expire", "FailSpawn"}),
        start=lambda initial, variant: CancellationSystem(helpers, bounds, patience_s=patience_s),
    )
