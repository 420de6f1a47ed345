"""Values of a state by the types that the models give them."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.engine.replay import State
from conformance.engine.values import Function, Value

__all__ = ["each", "members", "positions"]


def each(state: State, name: str) -> Mapping[Value, Value]:
    """A variable that is a function."""
    value = state[name]
    assert isinstance(value, Function)
    return value


def members(state: State, name: str) -> frozenset[Value]:
    """A variable that is a set."""
    value = state[name]
    assert isinstance(value, frozenset)
    return value


def positions(state: State, name: str = "pc") -> tuple[str, ...]:
    """Where the participants stand, whichever they are."""
    return tuple(sorted(str(at) for at in each(state, name).values()))
