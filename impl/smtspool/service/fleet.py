"""The engines of one service process: fork servers, what each can do, portfolios over them."""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from smtspool.errors import InfrastructureError
from smtspool.solve import (
    ForkServer,
    Hedge,
    HedgePolicy,
    HelperLimits,
    Portfolio,
    RaceRules,
    RaceSummary,
    parse_engine,
    probe,
)
from smtspool.store import Store

from .config import Settings

__all__ = ["Fleet"]

log = logging.getLogger("smtspool")

MIB = 1 << 20
KNOWLEDGE = "hedging"
# Longest an engine may take to start and to answer all probes.
PROBE_SECONDS = 30.0


class Fleet:
    """One fork server per engine, shared by the portfolios of all workers, and one hedge policy.

    Fork servers are programs of their own, started here; close the portfolios before the fleet. Entering it
    waits until every engine has answered its probes, so no query pays for an engine's start. An engine that
    does not work is reported and left out; InfrastructureError if none works.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        observe: Callable[[RaceSummary], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._observe = observe
        self._numbers = itertools.count(1)  # portfolios
        self._clock = clock
        self._resources = ExitStack()
        self._servers: list[ForkServer] = []
        self._logics: dict[str, frozenset[str]] = {}
        # A share of the cores, and two at least: a stalled engine must not be alone with its query.
        self._engines_at_once = max(2, len(os.sched_getaffinity(0)) // settings.jobs)
        self.policy = HedgePolicy(Hedge(settings.hedge))

    def __enter__(self) -> Self:
        specs = [parse_engine(text) for text in self._settings.engines]
        names = [spec.name for spec in specs]
        limits = HelperLimits(memory=self._settings.helper_memory_mib * MIB)
        with ExitStack() as stack:
            # All of them first: they import their engines at the same time.
            servers = [stack.enter_context(ForkServer(spec, limits)) for spec in specs]
            self._servers = [server for server in servers if self._works(server)]
            if not self._servers:
                raise InfrastructureError(f"no engine works: {', '.join(names)}; the lines above say why")
            if len(self._servers) == 1:
                log.warning(
                    "%s is the only engine: a sat answer needs a second one to confirm it", *self.engines
                )
            self._resources = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def _works(self, server: ForkServer) -> bool:
        """Find out what an engine can do; False if it can do nothing."""
        found = probe(server, self._clock() + PROBE_SECONDS, clock=self._clock)
        self._logics[found.engine] = found.logics
        if not found.logics:
            log.error("engine %s does not work and is left out: %s", found.engine, found.trouble[0])
        elif found.trouble:
            log.info("engine %s: %s", found.engine, "; ".join(found.trouble))
        return bool(found.logics)

    @property
    def engines(self) -> list[str]:
        """Names of the engines that work."""
        return [server.spec.name for server in self._servers]

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
            self._servers,
            takes=lambda engine, logic: logic in self._logics[engine],
            rules=RaceRules(cpus=self._engines_at_once, confirm_unsat=self._settings.confirm_unsat),
            policy=self.policy,
            observe=self._observe,
            name=f"w{next(self._numbers)}:",
        )
