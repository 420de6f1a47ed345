"""Races: ``models/cancellation/Race.tla`` driven through a real ``Portfolio``.

The asking thread, the user's and the closer's are players. The parts run on the portfolio's own pool, whose
threads are held at the gates of the race. A solver's steps between ``Register`` and ``Settle``, and after
that, are not held, since the graphs of ``cancellation`` have them. Helpers, signals and generations are as
there. Threads that earlier losers would keep are kept by jobs that the harness gives to the pool.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import cast

from conformance.adapters import GraphAdapter
from conformance.cancellation.environment import Clock, Helpers, Server, looked, stands
from conformance.cancellation.system import query_of
from conformance.engine.gates import At, Idle, Passed
from conformance.engine.replay import Divergence, Refused
from conformance.engine.stage import Moving, Player, Stage
from conformance.engine.values import Function
from conformance.race.invariants import invariants
from conformance.race.projection import CHECK, MODULE, Projection
from conformance.seam import error_of
from smtspool.actions import Step, observed_by
from smtspool.query import Answer
from smtspool.solve import (
    CancelReason,
    Closing,
    Confirm,
    ForkServer,
    Hedge,
    HedgePolicy,
    Portfolio,
    RaceRules,
)

__all__ = ["MODULE", "SHARED", "Bounds", "RaceSystem", "adapter"]

ASKER, USER, CLOSER = "race", "user", "closer"
FAR_S, LIMIT_S, DELAY_S, REPORT_S = 1e8, 1e6, 1e4, 1e2
# The steps of a solver that the model of the race has too.
SHARED = frozenset({"Register", "Settle", "CancelSolver", "Close"})
_COMMANDS = {"sat": "answer", "unsat": "unsat", "unknown": "unknown"}


class _Seam:
    """The observer that leads the steps of the race to the stage, and remembers what they told."""

    def __init__(self, system: RaceSystem) -> None:
        self._system = system

    def _passes(self, step: Step) -> bool:
        """The thread that cancels the losers also cancels all checks, in one step."""
        return step.protocol.name != "race" and (
            step.name not in SHARED
            or (step.name == "CancelSolver" and str(step.params["solver"]).endswith(CHECK))
        )

    def before(self, step: Step) -> None:
        if not self._passes(step):
            self._system.arrives(step)
            self._system.stage.before(step.name, step.params)

    def after(self, step: Step) -> None:
        if not self._passes(step):
            self._system.stage.after(step.name, step.params, step.outcome, error_of(step))


@dataclass(frozen=True, slots=True)
class Bounds:
    """How a race is set up: ``busy`` threads of the pool are held by earlier losers when ``queue`` says that
    it has no more than it needs."""

    engines: tuple[str, ...] = ("s1", "s2")
    checked: bool = True
    cpus: int = 2
    hedged: bool = False
    busy: int = 0
    queue: bool = False


class RaceSystem(Projection):
    """One portfolio, one race, and all threads that take part."""

    def __init__(self, helpers: Helpers, bounds: Bounds, *, patience_s: float = 10.0) -> None:
        engines = bounds.engines
        clock = Clock()
        servers = {name: Server(helpers, clock, name) for name in engines}
        self._pool = pool = ThreadPoolExecutor(2 * len(engines))
        portfolio = Portfolio(
            [cast(ForkServer, server) for server in servers.values()],
            rules=RaceRules(cpus=bounds.cpus, grace_s=0.0, report_s=REPORT_S),
            policy=HedgePolicy(Hedge.FIXED if bounds.hedged else Hedge.TOGETHER, DELAY_S, DELAY_S),
            confirm=Confirm.ENGINE,  # the evaluator takes no step that the model has
            clock=clock,
            wait=clock.wait,
            pool=pool,
        )
        super().__init__(portfolio, servers, clock, clock() + LIMIT_S)
        self.checks = {f"k{name[1:]}": name for name in engines} if bounds.checked else {}
        self.busy = bounds.busy
        self.stage = Stage(self._waits, patience_s=patience_s)
        self._closing = ExitStack()
        self._closing.enter_context(observed_by(_Seam(self)))
        self.jobs = [self._hold() for _ in range(2 * len(engines) if bounds.queue else 0)]
        for name in (ASKER, USER, CLOSER):
            self.stage.enter(name)
        for name in engines:
            self.stage.invite(name)
        self.stage.call(ASKER, self._solve)

    def _solve(self) -> Answer:
        return self.portfolio.solve(query_of("a"), timeout_s=LIMIT_S, cancel=self.token)

    def _hold(self) -> threading.Event:
        """An earlier loser takes a thread of the pool."""
        begun, release = threading.Event(), threading.Event()

        def straggle() -> None:
            begun.set()
            release.wait()

        self._pool.submit(straggle)
        begun.wait()
        return release

    def close(self) -> None:
        """End all threads and all helpers."""
        with self._closing:
            try:
                self.stage.close(self._end)
                if not self.portfolio.close(30.0):
                    raise Divergence("threads of the portfolio do not end", "leak")
            finally:
                for server in self.servers.values():
                    server.close()

    def _end(self) -> None:
        """Release even threads that a fault in the code would keep, by letting their deadlines pass."""
        for job in self.jobs:
            job.set()
        self.clock.leap(2 * FAR_S)
        for server in self.servers.values():
            for generation in server.spawned:
                generation.signal_kill()
        self.clock.wake()

    # who stands still

    def _waits(self, player: Player) -> bool:
        """Whether a thread waits: for a letter, for other threads, or as its request shows."""
        if player.guest and player.name in self.reported:
            return any(passed.name == "Report" for passed in player.passed)  # its part has ended
        if player.name == CLOSER:
            return self._closer_waits()
        if player.name == ASKER and self.seen is not None:
            race = looked(self.seen.view)
            if race.waits_until is not None:
                return not race.letters and self.clock() < race.waits_until
        asked = self.call_of(player.name) if player.name in self.engines else None
        found = self.opinion() if asked is None else self.registration(asked)
        return found is not None and stands(*found, self.clock())

    def _closer_waits(self) -> bool:
        """For the race, for the requests of a solver, or for threads of the pool."""
        portfolio = looked(self.portfolio.view)
        if portfolio.closing is Closing.THREADS:
            guests = (self.stage.players[name] for name in self.engines)
            return bool(self.jobs) or any(isinstance(guest.position, At) for guest in guests)
        if portfolio.closing is Closing.RACES:
            return bool(portfolio.races)
        return any(lane.leaving and lane.requests for lane in (*portfolio.solvers, *portfolio.checkers))

    def arrives(self, step: Step) -> None:
        """A thread comes to a gate; the first gate of a part shows which thread runs it."""
        if step.name == "Register":
            solver = str(step.params["solver"])
            if not solver.endswith(CHECK):
                self.stage.receive(solver)
            self.note_id(self.call_at(step.params), str(step.params["attempt"]))

    # steps

    def perform(self, label: Function) -> None:
        """Take the step ``label`` for real."""
        name, of = str(label["name"]), str(label.get("of", ""))
        if name == "Cancel":
            self._cancel()
        elif name == "Shut":
            self._shut()
        elif name == "Reply":
            self._reply(of, str(label["finding"]))
        elif name == "Crash":
            self._crash(of)
        elif name == "FreeThread":
            self._free_thread()
        elif name == "Expire":
            self._expire()
        elif name == "Delay":
            self._pass_time(DELAY_S, lambda: not self.over() and not self.ripe(), "the delay")
        elif name == "GiveUp":
            self._pass_time(REPORT_S, lambda: self.over(), "the losers' time")
            self.patience = False
        else:
            self._go(label)

    def _go(self, label: Function) -> None:
        name, of = str(label["name"]), str(label.get("of", ""))
        who = self.player_of(name, of)
        at = self.stage.players[who].position
        if isinstance(at, At) and self.gate(who, at) != {k: v for k, v in label.items() if k != "outcome"}:
            raise Divergence(f"{who} stands at {at} where the model takes {label}")
        passed = self.advance(who, refuse_helper=label.get("outcome") == "no helper")
        went = "refused" if passed.error == "ClosedError" else passed.error or passed.outcome
        went = {"Enter": "entered", "Register": "registered"}.get(name, "") if went is None else went
        expected = "registered" if label.get("outcome") == "no helper" else label.get("outcome", "")
        if name not in ("Enter", "Register", "Settle", "CancelFuture"):
            went = passed.error or ""
        if went != expected:
            raise Divergence(f"{name} of {of or who} went {went} where the model takes {label}")

    def advance(self, who: str, *, refuse_helper: bool = False) -> Passed:
        """Let a thread take the step at whose gate it stands."""
        at = self.stage.players[who].position
        if not isinstance(at, At):
            raise Divergence(f"{who} stands at no gate: {at}")
        self._before(who, at)
        engine = str(at.params.get("solver", "")).removesuffix(CHECK)
        server = self.servers[engine] if at.name == "Register" else None
        if server is not None:
            server.refuses = refuse_helper
        passed = self.stage.release(who)
        if server is not None:
            server.refuses = False
        self._after(who, at, passed)
        return passed

    def _before(self, who: str, at: At) -> None:
        if at.name == "Submit" and self.idle():
            self.stage.expect(str(at.params["solver"]))
        elif at.name == "Report":
            self.reported.add(who)
            self._expect_queued()
        elif at.name == "Settle":
            self.note_heard(self.call_at(at.params))

    def _after(self, who: str, at: At, passed: Passed) -> None:
        if at.name == "Enter" and passed.error is None:
            self.seen = self.portfolio.races[-1]
        elif at.name == "Submit":
            self.note_id(str(at.params["solver"]), str(at.params["attempt"]))
        elif at.name == "Settle":
            self.note_end(self.call_at(at.params), passed.outcome)
        elif at.name == "Register" and passed.error == "ClosedError":
            self.note_end(self.call_at(at.params), "refused")

    def _expect_queued(self) -> None:
        queued = [name for name in self.engines if self.future_of(name) == "queued"]
        if queued:
            self.stage.expect(queued[0])

    # the user, the closer and the environment

    def _cancel(self) -> None:
        if self.token.reason is not None:
            raise Refused("cancelled before")
        self.stage.call(USER, partial(self.token.cancel, CancelReason.USER))
        if isinstance(self.stage.players[USER].position, At):
            self.stage.release(USER)

    def _shut(self) -> None:
        if not isinstance(self.stage.players[CLOSER].position, Idle):
            raise Refused("the closer is at it")
        begun = self.closer() != "open"
        self.stage.call(CLOSER, partial(self.portfolio.close, FAR_S))
        while isinstance(self.stage.players[CLOSER].position, At):
            self.stage.release(CLOSER)
            if not begun:  # again, it has nothing to do but to go through the gates
                break

    def _reply(self, call: str, finding: str) -> None:
        number = self._asked(call)
        self.server_of(call).tell(number, _COMMANDS[finding])
        self.stage.come_to_rest(f"the reply to {call}", moved=self.part_of(call))

    def opine(self, finding: str) -> None:
        """The second opinion that the race asked for."""
        self._tell_opinion(_COMMANDS[finding])
        self.stage.come_to_rest("the second opinion", moved=ASKER)

    def _crash(self, call: str) -> None:
        number = self._asked(call)
        self.server_of(call).kill(number)
        self.stage.come_to_rest(f"the crash of the helper of {call}", moved=self.part_of(call))

    def _asked(self, call: str) -> int:
        if self.stage_of(call) != "asked":
            raise Refused(f"{call} has asked nobody")
        return self.request(call).generation

    def _tell_opinion(self, command: str) -> None:
        found = self.opinion()
        assert found is not None
        request, lane = found
        self.servers[lane.engine].tell(request.generation, command)

    def _free_thread(self) -> None:
        if not self.busy:
            raise Refused("no earlier loser is left")
        self._expect_queued()
        self.busy -= 1
        self.jobs.pop().set()
        self.stage.come_to_rest("a thread of the pool came free")

    def _expire(self) -> None:
        if self.is_late() or self.is_all_over():
            raise Refused("the deadline has passed, or nobody is left to see it")
        asked = [call for call in self.calls if self.stage_of(call) == "asked"]
        if self.race_at() == "settle":
            self.patience = False
        self.clock.leap(LIMIT_S)
        self.clock.wake()
        for call in asked:
            self.server_of(call).tell(self.request(call).generation, "noise")
        if self.opinion() is not None:
            self._tell_opinion("noise")
        self.stage.come_to_rest("the deadline")

    def _pass_time(self, seconds: float, counts: Callable[[], bool], what: str) -> None:
        """Time that only the race is waiting for."""
        if not isinstance(self.stage.players[ASKER].position, Moving) or not counts():
            raise Refused(f"nobody waits for {what}")
        self.clock.leap(seconds)
        self.clock.wake()
        self.stage.come_to_rest(what, moved=ASKER)


def adapter(helpers: Helpers, bounds: Bounds, patience_s: float) -> GraphAdapter:
    """The bounded model's threads and helpers, as real ones."""
    return GraphAdapter(
        invariants=invariants(bounds.cpus),
        external=frozenset({"Cancel", "Shut", "Reply", "Crash", "FreeThread", "Expire", "Delay", "GiveUp"}),
        start=lambda initial, variant: RaceSystem(helpers, bounds, patience_s=patience_s),
    )
