"""The values the store hands out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from smtspool.query import Answer, Query, Remarks, Witness

from .submissions import Submissions

__all__ = ["Counts", "Lease", "Order", "Publication", "Result", "State"]


class State(StrEnum):
    """The state of a query."""

    PENDING = "pending"  # may be claimed
    WAITING = "waiting"  # another query of the same form is being solved for it
    LEASED = "leased"  # an owner has it until a deadline
    DONE = "done"  # has a result


class Order(StrEnum):
    """Which pending query is claimed first; ties go to the higher priority, then to the older one."""

    DFS = "dfs"  # longest prefix
    BFS = "bfs"  # shortest prefix
    PRIORITY = "priority"  # highest priority
    FIFO = "fifo"  # oldest, whatever its priority


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to answer one query until ``deadline`` (seconds, the store's clock).

    ``token`` grows with every lease of the query and so fences off the owners of earlier ones. ``reuse`` is
    the answer of a solved query of the same form, its model already in this query's symbols; it must be
    verified before it is used.
    """

    query: Query
    owner: str
    token: int
    deadline: float
    attempts: int  # this one included
    number: int  # row of the query
    prefix: int  # row of its prefix
    reuse: Answer | None = None

    @property
    def key(self) -> tuple[str, int]:
        """Identifies this lease among all leases ever given."""
        return self.query.id, self.token

    @property
    def affinity(self) -> str:
        """Names the query's prefix, to be passed to the next ``claim``."""
        return str(self.prefix)


@dataclass(frozen=True, slots=True)
class Result:
    """The committed answer of one query, as :meth:`Campaign.results` gives them.

    ``results(after=result.number)`` continues behind it.
    """

    number: int  # order of completion; where to go on with ``results(after=...)``
    query_id: str
    answer: Answer
    completed: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class Publication:
    """A result whose files are to be written.

    ``id`` names this result, not the query: after ``retry`` the query gets a new result with another id,
    which an outdated publication cannot acknowledge. Nor does it acknowledge changes after it was read.
    """

    id: int
    remarks: Remarks
    witnesses: tuple[Witness, ...]
    submissions: Submissions
    query: Query | None  # only for a model whose bytes no witness tells
    result: Result
    failures: int  # of earlier tries
    due: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class Counts:
    """How many queries are in each state, and how many results there are of each kind."""

    pending: int
    waiting: int
    leased: int
    sat: int
    unsat: int
    unknown: int
    error: int
    publications_due: int
    publications_published: int
    publications_dead: int

    @property
    def open(self) -> int:
        """Queries without a result."""
        return self.pending + self.waiting + self.leased

    @property
    def done(self) -> int:
        return self.sat + self.unsat + self.unknown + self.error

    @property
    def total(self) -> int:
        return self.open + self.done

    @classmethod
    def of(cls, counters: Mapping[str, int | float]) -> Counts:
        """From the counters that triggers of the database maintain."""
        return cls(
            **{name: int(counters[f"queries.{name}"]) for name in ("pending", "waiting", "leased")},
            **{name: int(counters[f"results.{name}"]) for name in ("sat", "unsat", "unknown", "error")},
            **{
                f"publications_{name}": int(counters[f"publications.{name}"])
                for name in ("due", "published", "dead")
            },
        )
