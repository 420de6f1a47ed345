"""The engines of one service process: fork servers, what each can do, portfolios over them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from smtspool.solve import (
    ForkServer,
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

__all__ = ["Fleet"]

MIB = 1 << 20
KNOWLEDGE = "hedging"


class Fleet:
    """One fork server per engine, shared by the portfolios of all workers, and one hedge policy.

    Fork servers are programs of their own, started here; close the portfolios before the fleet.
    """

    def __init__(self, settings: Settings, *, observe: Callable[[RaceSummary], object] | None = None) -> None:
        self._settings = settings
        self._observe = observe
        self._resources = ExitStack()
        self._servers: list[ForkServer] = []
        self.policy = HedgePolicy(Hedge(settings.hedge))

    def __enter__(self) -> Self:
        limits = HelperLimits(memory=self._settings.helper_memory_mib * MIB)
        with ExitStack() as stack:
            self._servers = [
                stack.enter_context(ForkServer(parse_engine(text), limits)) for text in self._settings.engines
            ]
            self._resources = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def recall(self, store: Store) -> None:
        """Take over what earlier services learnt about this campaign's queries."""
        known = store.get(KNOWLEDGE)
        if isinstance(known, dict):
            self.policy.load(known)

    def remember(self, store: Store) -> None:
        """Write down what was learnt, for the next service."""
        store.put(KNOWLEDGE, self.policy.to_json())

    def portfolio(self) -> Portfolio:
        """A portfolio for one worker; the caller closes it."""
        return Portfolio(
            self._servers,
            rules=RaceRules(confirm_unsat=self._settings.confirm_unsat),
            policy=self.policy,
            observe=self._observe,
        )
