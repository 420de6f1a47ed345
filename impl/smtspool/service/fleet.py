"""The engines of one service process: fork servers, what each can do, portfolios over them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from smtspool.errors import ConfigError, InfrastructureError
from smtspool.query import Status, parse_smt2
from smtspool.solve import (
    ForkServer,
    Generation,
    GenerationFailed,
    Hedge,
    HedgePolicy,
    HelperLimits,
    Op,
    Portfolio,
    RaceRules,
    RaceSummary,
    Request,
    parse_engine,
)
from smtspool.store import Store

from .config import Settings

__all__ = ["Fleet"]

log = logging.getLogger("smtspool")

MIB = 1 << 20
KNOWLEDGE = "hedging"
# Longest an engine may take to start and to answer all probes.
PROBE_SECONDS = 30.0

_BYTE = "(_ BitVec 8)"
_X = f"(declare-const x {_BYTE})(assert (bvult #x2a x))"
_ARRAY = f"(declare-const a (Array {_BYTE} {_BYTE}))(assert (= (select a x) #x07))"
_FUNCTION = f"(declare-fun f ({_BYTE}) {_BYTE})(assert (= (f x) #x09))"
# One tiny satisfiable query per logic: an engine takes a logic if it answers that one.
PROBES = {
    "QF_BV": _X,
    "QF_ABV": _X + _ARRAY,
    "QF_UFBV": _X + _FUNCTION,
    "QF_AUFBV": _X + _ARRAY + _FUNCTION,
}


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
        self._clock = clock
        self._resources = ExitStack()
        self._servers: list[ForkServer] = []
        self._logics: dict[str, frozenset[str]] = {}
        self.policy = HedgePolicy(Hedge(settings.hedge))

    def __enter__(self) -> Self:
        specs = [parse_engine(text) for text in self._settings.engines]
        names = [spec.name for spec in specs]
        if len(set(names)) < len(names):
            raise ConfigError(f"each engine needs a name of its own: {', '.join(names)}")
        limits = HelperLimits(memory=self._settings.helper_memory_mib * MIB)
        with ExitStack() as stack:
            # All of them first: they import their engines at the same time.
            servers = [stack.enter_context(ForkServer(spec, limits)) for spec in specs]
            self._servers = [server for server in servers if self._probe(server)]
            if not self._servers:
                raise InfrastructureError(f"no engine works: {', '.join(names)}; the lines above say why")
            self._resources = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def _probe(self, server: ForkServer) -> bool:
        """Find out which logics an engine takes; False if it takes none."""
        name = server.spec.name
        complaints: dict[str, str] = {}
        deadline = self._clock() + PROBE_SECONDS
        generation: Generation | None = None
        try:
            for logic, text in PROBES.items():
                if generation is None or not generation.alive:
                    generation = server.spawn(deadline)
                complaint = _complaint(generation, logic, text, deadline)
                if complaint:
                    complaints[logic] = complaint
                    generation.retire("doubtful")
        except InfrastructureError as error:
            complaints = dict.fromkeys(PROBES, str(error))
        finally:
            if generation is not None:
                generation.retire("probed")
        self._logics[name] = frozenset(PROBES.keys() - complaints.keys())
        if not self._logics[name]:
            log.error("engine %s does not work and is left out: %s", name, complaints["QF_BV"])
        elif complaints:
            log.info("engine %s does not take %s", name, ", ".join(complaints))
        return bool(self._logics[name])

    def recall(self, store: Store) -> None:
        """Take over what earlier services learnt about this campaign's queries."""
        known = store.get(KNOWLEDGE)
        try:
            self.policy.load(known if isinstance(known, dict) else {})
        except ValueError as error:
            # It only saves time, so a start from nothing is better than none.
            log.warning("what earlier services learnt about engines is unusable: %s", error)

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
            rules=RaceRules(confirm_unsat=self._settings.confirm_unsat),
            policy=self.policy,
            observe=self._observe,
        )


def _complaint(generation: Generation, logic: str, text: str, deadline: float) -> str:
    """What an engine says against a query that it should find satisfiable; empty if nothing."""
    [query] = parse_smt2(f"(set-logic {logic}){text}(check-sat)")
    request = Request(
        f"probe-{logic}",
        Op.SOLVE,
        logic,
        query.levels,
        query.symbols,
        timeout_ms=int(PROBE_SECONDS * 1e3),
        fresh=True,
    )
    try:
        reply = generation.exchange(request, deadline)
    except GenerationFailed as failure:
        return f"{failure} {failure.stderr.strip()}"
    if reply.status is Status.SAT and reply.model and set(reply.model) == {s.name for s in query.symbols}:
        return ""
    return f"{reply.status} {reply.reason or 'without a complete model'}"
