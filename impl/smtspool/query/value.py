"""The values the rest of the system passes around: a query, its levels, its form.

Values that a query has many of are named tuples, which are made four times as fast as frozen dataclasses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["DEFAULT_TIMEOUT_MS", "Form", "Level", "Query", "Symbol", "Witness"]

DEFAULT_TIMEOUT_MS = 10_000  # of a query that names none (F363)


class Symbol(NamedTuple):
    """A declared constant or function. Names and sorts are canonical SMT-LIB text, quoted where needed."""

    name: str
    sort: str  # of the value: "Bool", "(_ BitVec 8)", "(Array (_ BitVec 32) (_ BitVec 8))"
    params: tuple[str, ...] = ()  # sorts of the arguments; empty for a constant

    @property
    def declaration(self) -> str:
        """Its ``declare-fun`` command, as it stands in :attr:`Query.declarations`."""
        return f"(declare-fun {self.name} ({' '.join(self.params)}) {self.sort})"


@dataclass(frozen=True, slots=True)
class Witness:
    """The concrete input a path was taken with, and which 8-bit constants stand for which byte of it."""

    input: bytes
    symbols: tuple[tuple[str, int], ...] = ()  # (constant, byte offset), each offset once


class Level(NamedTuple):
    """One assertion as an engine's stack sees it.

    ``key`` is a digest of the key of the level below, ``declarations`` and ``assertion``: two queries with
    the same key have the same stack up to this level, whatever else either of them declares.
    """

    key: str
    declarations: tuple[str, ...]  # commands first needed here, in order, with all they refer to
    assertion: str


@dataclass(frozen=True, slots=True)
class Form:
    """A query up to the names in it.

    Equal digests mean that renaming ``order[i]`` of one to ``order[i]`` of the other, with sorts, defined
    functions and bound variables renamed alike, turns one query's assertions into the other's.
    """

    digest: str
    order: tuple[str, ...]  # the declared symbols in use, by first appearance


@dataclass(frozen=True, slots=True)
class Query:
    """The question whether an assignment satisfies every prefix assertion and the target.

    ``id`` is the SHA-256 of logic, declarations, ordered prefix and target, and nothing else: white space,
    comments, witness, metadata, timeout and priority are outside it. Equality compares everything but the
    last two members, which say how it was asked.
    """

    logic: str
    symbols: tuple[Symbol, ...]
    declarations: tuple[str, ...]  # declare-fun, declare-sort and define-fun commands in order
    prefix: tuple[str, ...]
    target: str
    witness: Witness | None
    metadata: Mapping[str, object]
    timeout_ms: int
    priority: float
    id: str
    levels: tuple[Level, ...]  # one per assertion, the target's last
    form: Form
    size: int  # characters of declarations and assertions
    notes: tuple[str, ...] = field(default=(), compare=False)  # what was dropped when it was read
    values: tuple[str, ...] = field(default=(), compare=False)  # terms whose values a get-value asked for

    def __hash__(self) -> int:
        return hash(self.id)
