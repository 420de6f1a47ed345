"""The interface of engines inside a helper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from smtspool.query import Status

__all__ = ["Engine", "EngineDied", "EngineError", "Session", "WantedSymbol"]


class EngineError(Exception):
    """The engine refused the text or reported an error; the message says which. Its session has ended."""


class EngineDied(Exception):
    """The process of the engine was killed or has crashed; the message says how. The helper then ends too, so
    that the query counts as one that killed its helper."""


class WantedSymbol(NamedTuple):
    """A symbol whose value is wanted: name in SMT-LIB spelling, sort, and the sorts of its parameters."""

    name: str
    sort: str
    params: tuple[str, ...] = ()

    def function(self, variables: Sequence[str], body: str) -> str:
        """The ``define-fun`` command that is the value of a function symbol."""
        binders = " ".join(f"({name} {sort})" for name, sort in zip(variables, self.params, strict=True))
        return f"(define-fun {self.name} ({binders}) {self.sort} {body})"


class Session(Protocol):
    """One assertion stack of an engine. Every method may raise :class:`EngineError` or `EngineDied`."""

    def load(self, commands: str) -> None:
        """The logic, declarations, definitions and assertions."""

    def push(self) -> None: ...

    def pop(self) -> None: ...

    def check(self, timeout_ms: int) -> tuple[Status, str | None]:
        """SAT, UNSAT, or UNKNOWN with a reason. Engines keep the time limit only roughly."""

    @property
    def ended(self) -> bool:
        """Whether the session ended because a check was cut off; then it can only be closed."""

    def values(self, wanted: Sequence[WantedSymbol]) -> dict[str, str]:
        """After SAT, of symbols that were loaded: value texts; of a function symbol its ``define-fun``."""

    def close(self) -> None: ...


class Engine(Protocol):
    """An engine that has been imported, or a command that can be started."""

    def open(self, *, incremental: bool) -> Session:
        """A session that has options and no logic yet."""

    def evaluate(self, closed: str) -> Status | None:
        """The status of assertions without free symbols, by rewriting alone; None if that does not tell."""
        return None
