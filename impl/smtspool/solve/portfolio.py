"""Several engines, one verified answer: the portfolio that races them (F381, F467)."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType

from smtspool import threads
from smtspool.errors import ClosedError, ConfigError, MisuseError
from smtspool.query import Answer, Attempt, Query, Status

from .cancellation import Cancellation, CancelReason
from .domainprobe import Probe, ProbeEnd, probe_domain
from .generation import Helpers
from .hedging import Hedge, HedgePolicy, Plan
from .persistent import PersistentSolver
from .race import Race, RaceRules
from .spec import Recycle
from .steps import race_action as action
from .verification import Confirm, Verdict, Verifier
from .views import Closing, PortfolioView

__all__ = ["Portfolio", "RaceSummary"]


@dataclass(frozen=True, slots=True)
class RaceSummary:
    """One finished race, for counters: ``winner`` is None if no engine answered; ``delay_s`` is the hedge."""

    winner: str | None
    asked: tuple[str, ...]
    delay_s: float
    cancelled: int
    disagreement: bool
    elapsed_ms: float


class Portfolio:
    """Engines that race for queries. Thread-safe, but an engine serves one race at a time, and simultaneous
    races for one query end together, since a cancellation names its query.

    Every engine has two helpers, started when first needed: one to solve, one to check other engines'
    models. The caller closes the fork servers, which portfolios of several workers share, after the
    portfolios.
    """

    def __init__(
        self,
        servers: Sequence[Helpers],
        *,
        takes: Callable[[str, str], bool] = lambda engine, logic: True,
        start_s: Callable[[str], float] = lambda engine: 0.0,
        rules: RaceRules | None = None,
        policy: HedgePolicy | None = None,
        recycle: Recycle | None = None,
        confirm: Confirm = Confirm.ANY,
        observe: Callable[[RaceSummary], object] | None = None,
        name: str = "",
        clock: Callable[[], float] = time.monotonic,
        wait: threads.Wait = threading.Condition.wait,
        pool: Executor | None = None,
        stood_still: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """``takes(engine, logic)`` tells what each engine can do, ``start_s(engine)`` how long it takes until
        it can do anything, if it has to be started first; ``servers`` come in the fixed order. ``confirm``
        says who may check models. By ``name`` recordings tell its solvers and races from another portfolio's.
        ``stood_still`` tells how many seconds ``clock`` has left out; see :class:`RunningTime`. ``pool`` has
        threads for the parts of races, two for each engine by default, and is shut down with the portfolio.
        """
        names = [server.spec.name for server in servers]
        if not names or len(set(names)) < len(names):
            raise ConfigError("a portfolio needs at least one engine, each under a name of its own")
        self._process = os.getpid()
        self.policy = policy or HedgePolicy()
        self._takes = takes
        self._start_s = start_s
        self._rules = rules or RaceRules()
        self._observe = observe
        self._clock = clock
        self._wait = wait
        self._stood_still = stood_still
        self._name = name
        self._lanes = {
            server.spec.name: PersistentSolver(
                server, name=f"{name}{server.spec.name}", recycle=recycle, clock=clock, wait=wait
            )
            for server in servers
        }
        self._verifier = Verifier(
            [
                PersistentSolver(
                    server, name=f"{name}{server.spec.name}/check", recycle=recycle, clock=clock, wait=wait
                )
                for server in servers
            ],
            takes,
            start_s=start_s,
            confirm=confirm,
            clock=clock,
        )
        # A loser that no race waits for keeps its thread a little longer; the next race must not wait for it.
        self._pool = pool or ThreadPoolExecutor(2 * len(names), thread_name_prefix="smtspool-race")
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()  # protects the two below
        self._races: list[Race] = []
        self._closing = Closing.OPEN

    @property
    def engines(self) -> tuple[str, ...]:
        """Names, in the fixed order."""
        return tuple(self._lanes)

    @property
    def races(self) -> tuple[Race, ...]:
        """The running races, in the order in which they began."""
        with threads.looking_at(self._changed, "a portfolio"):
            return tuple(self._races)

    def view(self) -> PortfolioView:
        """A view of the portfolio; from any thread. Raises InfrastructureError if a lock is not free."""
        return PortfolioView(
            self._clock(),
            self._closing,
            tuple(race.view() for race in self.races),
            tuple(lane.view() for lane in self._lanes.values()),
            self._verifier.view(),
        )

    def solve(
        self,
        query: Query,
        *,
        timeout_s: float,
        cancel: Cancellation | None = None,
        hard: bool = False,
        probe: Probe | None = None,
        limit_s: float | None = None,
    ) -> Answer:
        """Race for an answer; with ``hard``, with all CPUs from the start.

        ``probe`` has been there and decided nothing: it is in the account. The answer states ``limit_s``, if
        the query's whole limit is more than ``timeout_s``.

        A ``sat`` answer has a complete model and ``verified_by``. Returns within ``timeout_s`` and the
        rules' grace, whatever the engines do, and at once when ``cancel`` is cancelled: ``unknown`` with
        reason ``cancelled: why``. An engine that gave up while the machine stood still is asked again, with
        the time it had before. ``error`` if no engine takes the logic or each one failed.
        Raises :class:`ClosedError`; :class:`InfrastructureError` if the machine gave no engine a helper;
        :class:`MisuseError` in a forked child.
        """
        if os.getpid() != self._process:
            raise MisuseError("a portfolio must not cross a fork: make one in the child")
        able = [engine for engine in self._lanes if self._takes(engine, query.logic)]
        if not able:
            engines = ", ".join(self._lanes)
            return Answer(Status.ERROR, reason=f"no engine takes logic {query.logic}: there is {engines}")
        plan = self._plan(query, able, hard=hard)
        outside = cancel or Cancellation()
        race = Race(
            name=f"{self._name}race-{next(self._numbers)}",
            query=query,
            plan=plan,
            lanes=self._lanes,
            verifier=self._verifier,
            rules=self._rules,
            limit=self._clock() + timeout_s,
            pool=self._pool,
            clock=self._clock,
            wait=self._wait,
            stood_still=self._stood_still,
            outside=outside,
        )
        with action("Enter", race=race.name, query=query.id), self._changed:
            if self._closing is not Closing.OPEN:
                raise ClosedError("the portfolio is closed")
            self._races.append(race)
        try:
            with outside.listening(race.tell):
                conclusion = race.run()
        finally:
            with action("Leave", race=race.name), self._changed:
                self._races.remove(race)
                attempts = race.attempts
                self._changed.notify_all()
        earlier = () if probe is None or probe.attempt is None else (probe.attempt,)
        limit_ms = round((timeout_s if limit_s is None else limit_s) * 1e3)
        answer = race.answer(conclusion, (*earlier, *attempts), limit_ms)
        self.policy.learn(query, race.times())
        if self._observe is not None:
            self._observe(_summary(answer, attempts, plan.delay_s))
        return answer

    def probe(
        self,
        query: Query,
        restricted: Query,
        *,
        timeout_s: float,
        cancel: Cancellation | None = None,
    ) -> Probe:
        """Have the engine that would lead the race look for a model of ``restricted``; see :func:`restrict`.

        Takes at most twice ``timeout_s`` and the rules' grace: to find a model, and to verify it.
        """
        able = [engine for engine in self._lanes if self._takes(engine, query.logic)]
        if not able:
            return Probe(ProbeEnd.UNKNOWN, None)
        outside = cancel or Cancellation()
        limit = self._clock() + timeout_s

        def verify(engine: str, model: Mapping[str, str]) -> Verdict:
            return self.verify(query, model, exclude_engine=engine, timeout_s=timeout_s, cancel=outside)

        return probe_domain(
            query,
            restricted,
            solver=self._lanes[self._plan(query, able, hard=False).order[0]],
            attempt_id=f"probe-{next(self._numbers)}",
            verify=verify,
            limit=limit,
            grace_s=self._rules.grace_s,
            cancellation=outside,
            clock=self._clock,
        )

    def _plan(self, query: Query, able: Sequence[str], *, hard: bool) -> Plan:
        """The policy's plan; if the policy learns, the engine with most of the path on its stack goes first.

        An engine that has to be started is asked later, by what that takes, as is one behind it.
        """
        plan = self.policy.plan(query, able, hard=hard)
        if plan.delay_s > 0:
            plan = replace(plan, delay_s=plan.delay_s + max(map(self._start_s, plan.order[:2])))
        if self.policy.mode is not Hedge.LEARNT:
            return plan
        held = {engine: self._lanes[engine].held(query) for engine in plan.order}
        leader = max(plan.order, key=held.__getitem__)
        if 2 * held[leader] < len(query.levels):
            return plan
        return replace(plan, order=(leader, *(engine for engine in plan.order if engine != leader)))

    def verify(
        self,
        query: Query,
        model: Mapping[str, str],
        *,
        exclude_engine: str | None = None,
        exclude: Collection[str] = (),
        timeout_s: float = 10.0,
        cancel: Cancellation | None = None,
    ) -> Verdict:
        """Whether ``model`` satisfies ``query``, by the cheapest who can tell, of engines only those not
        excluded.

        The verdict unpacks to (confirmed, by); ``confirmed`` is None if no checker could tell.
        """
        deadline = self._clock() + timeout_s
        token = cancel or Cancellation()
        with token.listening(lambda reason: self._verifier.cancel(query.id, reason)):
            return self._verifier.verify(
                query, model, exclude=(exclude_engine, *exclude), deadline=deadline, cancellation=token
            )

    def close(self, grace_s: float = 5.0) -> bool:
        """Refuse new races, cancel those there are, end helpers and threads. Idempotent.

        Bounded: each of the steps gets ``grace_s``. True once every thread and every caller has left; False
        if some could not, in which case they end with their requests' deadlines. In a forked child it does
        nothing: helpers and threads are the parent's.
        """
        if os.getpid() != self._process:
            return True
        with action("Shut", portfolio=self._name), self._changed:
            self._closing = Closing.TOLD
            races = tuple(self._races)
        for race in races:
            race.tell(CancelReason.CLOSED)
        until = self._clock() + grace_s
        with self._changed:
            self._closing = Closing.RACES
            left = threads.wait_until(
                self._changed, lambda: not self._races, until, clock=self._clock, wait=self._wait
            )
            self._closing = Closing.SOLVERS
        closed = [lane.close(grace_s) for lane in self._lanes.values()]
        left = self._verifier.close(grace_s) and all(closed) and left
        self._closing = Closing.THREADS
        self._pool.shutdown(wait=left, cancel_futures=True)
        self._closing = Closing.CLOSED
        return left

    def __enter__(self) -> Portfolio:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _summary(answer: Answer, attempts: Sequence[Attempt], delay_s: float) -> RaceSummary:
    return RaceSummary(
        winner=answer.engine if answer.status.definite else None,
        asked=tuple(attempt.engine for attempt in attempts),
        delay_s=delay_s,
        cancelled=sum(attempt.cancelled for attempt in attempts),
        disagreement=answer.disagreement,
        elapsed_ms=answer.elapsed_ms,
    )
