"""The engines of one service process: fork servers, capabilities, and portfolios over them."""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable, Container, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from smtspool.backoff import backoff_seconds
from smtspool.errors import ClosedError, InfrastructureError, LastingError
from smtspool.query import Query
from smtspool.solve import (
    LOGICS,
    Confirm,
    Hedge,
    HedgePolicy,
    HelperLimits,
    Portfolio,
    RaceRules,
    RaceSummary,
    RunningTime,
    parse_engine,
)
from smtspool.store import Store

from .config import Settings
from .enginemember import EngineMember
from .loops import FINISHED, Health

__all__ = ["Engines", "NoEngineWorks"]

log = logging.getLogger("smtspool")

MIB = 1 << 20
KNOWLEDGE = "hedging"
# Longest an engine may take to start and to pass its trial.
TRIAL_SECONDS = 30.0
# How often a service checks its engines.
LOOK_SECONDS = 1.0
# Pauses before an engine that does not work is tried again: the first, and the longest.
AGAIN_SECONDS = 2.0
AGAIN_MAX_SECONDS = 600.0


class NoEngineWorks(LastingError):
    """No engine works, which is a mistake in the settings or the installation, so waiting would not help."""


class Engines:
    """One fork server per engine, shared by the portfolios of all workers, and one hedge policy.

    Fork servers are programs of their own, started here; close the portfolios before them. Entering this
    waits until every engine has had its trial, so no query waits for an engine's start. With ``first`` it
    waits only for the engine that leads the race for that query; each other engine is started when it is
    first asked. An engine that does not work is left out until :meth:`look` finds that it does. Raises
    InfrastructureError if none works.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        first: Query | None = None,
        logics: Container[str] = LOGICS,
        observe: Callable[[RaceSummary], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._process = os.getpid()
        self._settings = settings
        self._first = first
        self._logics = logics
        self._observe = observe
        self._numbers = itertools.count(1)  # portfolios
        self.clock = RunningTime(clock)
        self._resources = ExitStack()
        self._members: dict[str, EngineMember] = {}
        self._again_at: dict[str, float] = {}  # when an engine that is out is tried again
        # A share of the cores, but at least two, so that a query does not depend on one stalled engine.
        self._engines_at_once = max(2, len(os.sched_getaffinity(0)) // settings.jobs)
        self.policy = HedgePolicy(Hedge(settings.hedge))

    def __enter__(self) -> Self:
        limits = HelperLimits(
            memory=self._settings.helper_memory_mib * MIB,
            spare=self._first is None,  # engines that start on demand have no spare helper either
        )
        specs = [parse_engine(text) for text in self._settings.engines]
        members = {
            spec.name: EngineMember(spec, limits, logics=self._logics, clock=self.clock) for spec in specs
        }
        with ExitStack() as stack:
            stack.enter_context(self.clock)
            for member in members.values():
                stack.callback(member.close)
            self._members = members
            self._prove(members)
            if not self.names:
                raise NoEngineWorks(f"no engine works: {', '.join(members)}; the lines above say why")
            if len(self.names) == 1:
                log.warning(
                    "%s is the only engine: a sat answer needs a second one to confirm it", *self.names
                )
            self._resources = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() == self._process:  # a forked child leaves it to its parent
            self._resources.close()

    def _prove(self, members: Mapping[str, EngineMember]) -> None:
        """Find out which engines work; with ``first``, only until the first that works."""
        plan = None if self._first is None else self.policy.plan(self._first, tuple(members))
        in_turn = plan is not None and plan.delay_s > 0
        if not in_turn:
            for member in members.values():
                member.start()  # all are started before one is asked, so that they import at the same time
        for name in members if plan is None else plan.order:
            if members[name].works(self.clock() + TRIAL_SECONDS) and in_turn:
                break

    def look(self, health: Health) -> float | None:
        """Report the engines that do not work, and try those again that are due; the step of a loop.

        Returns the pause before the next, in seconds; FINISHED after :meth:`give_up`.
        """
        try:
            for name, member in self._members.items():
                self._look_after(name, member, health)
        except ClosedError:
            return FINISHED
        return LOOK_SECONDS

    def _look_after(self, name: str, member: EngineMember, health: Health) -> None:
        now = self.clock()
        if now < self._again_at.get(name, now):
            return
        if name in self._again_at:
            member.works(now + TRIAL_SECONDS, again=True)
        trouble, loop = member.trouble, f"engine {name}"
        if trouble is None:
            self._again_at.pop(name, None)
            if health.recovered(loop):
                log.info("%s works again", loop)
            return
        failures = health.failed(loop, InfrastructureError(trouble))
        pause = backoff_seconds(failures, first=AGAIN_SECONDS, most=AGAIN_MAX_SECONDS)
        self._again_at[name] = now + pause
        log.warning("%s: %s (try again in %.0f s)", loop, trouble, pause)

    def give_up(self) -> None:
        """Try no engine again; a try that is under way ends."""
        for member in self._members.values():
            if member.trouble is not None:
                member.close()

    @property
    def names(self) -> list[str]:
        """Names of the engines that are not known to fail, in the order of the settings."""
        return [name for name, member in self._members.items() if member.trouble is None]

    def _takes(self, engine: str, logic: str) -> bool:
        """Whether ``engine`` may be asked for a query of this ``logic``.

        If no working engine takes the logic, those that do not work are asked; the query is not blamed then.
        """
        if any(member.takes(logic) for member in self._members.values()):
            return self._members[engine].takes(logic)
        return self._members[engine].trouble is not None

    def recall(self, store: Store) -> None:
        """Read the times of engines that earlier services of this campaign learnt."""
        try:
            known = store.get(KNOWLEDGE)
        except ValueError:
            known = "no JSON"
        unusable = self.policy.load(known)
        if unusable:
            # It only saves time.
            log.warning("%d of what earlier services learnt about engines is unusable: left out", unusable)

    def remember(self, store: Store) -> None:
        """Store the learnt times of engines for the next service."""
        try:
            store.put(KNOWLEDGE, self.policy.to_json())
        except InfrastructureError as error:
            log.warning("what was learnt about engines is lost: %s", error)

    def portfolio(self) -> Portfolio:
        """A portfolio for one worker; the caller closes it."""
        return Portfolio(
            list(self._members.values()),
            takes=self._takes,
            start_s=lambda engine: self._members[engine].start_s,
            rules=RaceRules(cpus=self._engines_at_once, confirm_unsat=self._settings.confirm_unsat),
            policy=self.policy,
            confirm=Confirm(self._settings.confirm_sat),
            observe=self._observe,
            clock=self.clock,
            stood_still=self.clock.stood_still,
            name=f"w{next(self._numbers)}:",
        )
