"""What every engine can do inside its helper, and what they all need."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from smtspool.query import Status

__all__ = ["Engine", "EngineError", "Session", "Wanted", "default"]


class EngineError(Exception):
    """The engine refused the text or failed in an orderly way; the text says why. Its session is of no more use."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A symbol whose value is asked for: name in SMT-LIB spelling, sort, and the sorts of its parameters."""

    name: str
    sort: str
    params: tuple[str, ...] = ()

    def function(self, variables: Sequence[str], body: str) -> str:
        """The ``define-fun`` text that is the value of a function symbol."""
        binders = " ".join(f"({name} {sort})" for name, sort in zip(variables, self.params, strict=True))
        return f"(define-fun {self.name} ({binders}) {self.sort} {body})"


class Session(Protocol):
    """One assertion stack of an engine. Every method may raise :class:`EngineError`."""

    def load(self, commands: str) -> None:
        """Declarations, definitions and assertions."""

    def push(self) -> None: ...

    def pop(self) -> None: ...

    def check(self) -> tuple[Status, str | None]:
        """SAT, UNSAT, or UNKNOWN and why."""

    def values(self, wanted: Sequence[Wanted]) -> dict[str, str]:
        """After SAT: value texts; of a function symbol its ``define-fun``."""

    def core(self) -> tuple[int, ...] | None:
        """After UNSAT: indices of assertions that suffice, when the engine was told to keep track of them."""

    def close(self) -> None: ...


class Engine(Protocol):
    """An engine that has been imported, or found."""

    def open(self, logic: str, *, timeout_ms: int, incremental: bool) -> Session: ...


_BIT_VECTOR = re.compile(r"\(_ BitVec ([0-9]+)\)")


def default(symbol: Wanted) -> str:
    """A value of the symbol's sort: zero, false, the array or function that is that everywhere."""
    value = _zero(symbol.sort)
    if not symbol.params:
        return value
    return symbol.function([f"x!{index}" for index in range(len(symbol.params))], value)


def _zero(sort: str) -> str:
    casts = []
    element = sort
    while element.startswith("(Array "):
        casts.append(f"((as const {element}) ")
        element = _range_of(element)
    vector = _BIT_VECTOR.fullmatch(element)
    if element == "Bool":
        value = "false"
    elif vector:
        width = int(vector[1])
        value = "#x" + "0" * (width // 4) if width % 4 == 0 else "#b" + "0" * width
    else:
        raise EngineError(f"no default value of sort {element} is known")
    return "".join(casts) + value + ")" * len(casts)


def _range_of(array: str) -> str:
    """``R`` of ``(Array D R)``."""
    depth = 0
    for position, char in enumerate(array[:-1]):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == " " and depth == 1 and position > len("(Array"):
            return array[position + 1 : -1]
    raise EngineError(f"{array} is not an array sort")
