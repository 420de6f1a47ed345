"""What random walks of all protocols have in common: a system that walks, and the adapter of such walks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from conformance.engine import walk as engine
from conformance.engine.replay import Invariant, State
from conformance.engine.trace import Recorded
from conformance.engine.values import Function

__all__ = ["Walk", "Walking"]


class _System(Protocol):
    def project(self) -> State: ...

    def close(self) -> None: ...


S = TypeVar("S", bound=_System)


class Walk(ABC, Generic[S]):
    """One system on one walk, recorded where a protocol says so."""

    def __init__(self, system: S) -> None:
        self._system = system
        self.lines: list[Recorded] = []

    @abstractmethod
    def _moves(self) -> Iterator[tuple[Function, int]]:
        """The steps that may be taken now, with weights."""

    def moves(self) -> Mapping[Function, int]:
        """The steps that may be taken now, with weights."""
        return dict(self._moves())

    @abstractmethod
    def take(self, move: Function) -> str:
        """Take the step; how it went."""

    def project(self) -> State:
        """The real state."""
        return self._system.project()

    def close(self) -> None:
        """End all that takes part."""
        self._system.close()

    def record(
        self, who: str, action: str, params: Mapping[str, Any], outcome: str | None, error: str | None = None
    ) -> None:
        """A line about the step that was just taken."""
        at = len(self.lines) + 1
        self.lines.append(Recorded(at, who, at, at, action, params, outcome, error, begun=at))


@dataclass(frozen=True, slots=True)
class Walking:
    """The walks of one protocol."""

    invariants: Mapping[str, Invariant]
    start: Callable[[int], Walk[Any]]  # variant -> a fresh system
    shape: Callable[[State], Hashable]
    _lines: list[list[Recorded]] = field(default_factory=list)

    @property
    def recordings(self) -> list[list[Recorded]]:
        """Those of all walks."""
        return [lines for lines in self._lines if lines]

    def begin(self, variant: int) -> engine.Walk:
        """A fresh system."""
        walk = self.start(variant)
        self._lines.append(walk.lines)
        return walk
