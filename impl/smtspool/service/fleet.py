"""The engines of one service process: fork servers, what each can do, portfolios over them."""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from smtspool.errors import InfrastructureError
from smtspool.query import Query
from smtspool.solve import (
    Hedge,
    HedgePolicy,
    HelperLimits,
    Portfolio,
    RaceRules,
    RaceSummary,
    parse_engine,
)
from smtspool.store import Store

from .config import Settings
from .member import Member

__all__ = ["Fleet", "NoEngineWorks"]

log = logging.getLogger("smtspool")

MIB = 1 << 20
KNOWLEDGE = "hedging"
# Longest an engine may take to start and to answer all probes.
PROBE_SECONDS = 30.0


class NoEngineWorks(InfrastructureError):
    """Nothing can be answered: a mistake in the settings or the installation, so it is said at once."""


class Fleet:
    """One fork server per engine, shared by the portfolios of all workers, and one hedge policy.

    Fork servers are programs of their own, started here; close the portfolios before the fleet. Entering it
    waits until every engine has answered its probes, so no query pays for an engine's start; with ``first``,
    only the engine that leads the race for that query, and each other is started when somebody asks it. An
    engine that does not work is reported and left out; InfrastructureError if none works.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        first: Query | None = None,
        observe: Callable[[RaceSummary], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._first = first
        self._observe = observe
        self._numbers = itertools.count(1)  # portfolios
        self._clock = clock
        self._resources = ExitStack()
        self._members: dict[str, Member] = {}
        # A share of the cores, and two at least: a stalled engine must not be alone with its query.
        self._engines_at_once = max(2, len(os.sched_getaffinity(0)) // settings.jobs)
        self.policy = HedgePolicy(Hedge(settings.hedge))

    def __enter__(self) -> Self:
        limits = HelperLimits(memory=self._settings.helper_memory_mib * MIB)
        specs = [parse_engine(text) for text in self._settings.engines]
        members = {spec.name: Member(spec, limits, clock=self._clock) for spec in specs}
        with ExitStack() as stack:
            for member in members.values():
                stack.callback(member.close)
            failed = self._failed(members)
            self._members = {name: member for name, member in members.items() if name not in failed}
            if not self._members:
                raise NoEngineWorks(f"no engine works: {', '.join(members)}; the lines above say why")
            if len(self._members) == 1:
                log.warning(
                    "%s is the only engine: a sat answer needs a second one to confirm it", *self.engines
                )
            self._resources = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def _failed(self, members: Mapping[str, Member]) -> set[str]:
        """Those that turn out not to work: of all, or of those that were to lead, up to one that does."""
        plan = None if self._first is None else self.policy.plan(self._first, tuple(members))
        in_turn = plan is not None and plan.delay_s > 0
        failed: set[str] = set()
        if not in_turn:
            for member in members.values():
                member.start()  # all of them first: they import their engines at the same time
        for name in members if plan is None else plan.order:
            if not members[name].works(self._clock() + PROBE_SECONDS):
                failed.add(name)
            elif in_turn:
                break
        return failed

    @property
    def engines(self) -> list[str]:
        """Names of the engines that work, in the order of the settings."""
        return list(self._members)

    def recall(self, store: Store) -> None:
        """Take over what earlier services learnt about this campaign's queries."""
        try:
            known = store.get(KNOWLEDGE)
        except ValueError:
            known = "no JSON"
        unusable = self.policy.load(known)
        if unusable:
            # It only saves time.
            log.warning("%d of what earlier services learnt about engines is unusable: left out", unusable)

    def remember(self, store: Store) -> None:
        """Write down what was learnt, for the next service."""
        try:
            store.put(KNOWLEDGE, self.policy.to_json())
        except InfrastructureError as error:
            log.warning("what was learnt about engines is lost: %s", error)

    def portfolio(self) -> Portfolio:
        """A portfolio for one worker; the caller closes it."""
        return Portfolio(
            list(self._members.values()),
            takes=lambda engine, logic: self._members[engine].takes(logic),
            rules=RaceRules(cpus=self._engines_at_once, confirm_unsat=self._settings.confirm_unsat),
            policy=self.policy,
            observe=self._observe,
            name=f"w{next(self._numbers)}:",
        )
