"""The adapter with which a graph is driven."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from conformance.engine.replay import Invariant, State, System
from conformance.engine.values import Function

__all__ = ["GraphAdapter"]


@dataclass(kw_only=True)
class GraphAdapter:
    """What ``Adapter`` of the engine asks for, as values."""

    invariants: Mapping[str, Invariant]
    external: frozenset[str]
    kills: frozenset[str] = frozenset({"Crash"})
    excluded: Mapping[str, Callable[[Function, State], bool]] = field(default_factory=dict)
    start: Callable[[State, int], System]
