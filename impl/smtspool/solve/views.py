"""Snapshots of solvers and races: for the plate of a service, for a debugger, for conformance.

A view is a copy of one object, made under the lock of that object and from any thread, so it shows a state in
which the object was. The views inside a :class:`PortfolioView` are made one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from smtspool.query import Status

from .cancellation import CancelReason
from .request import FailureKind

__all__ = [
    "Closing",
    "HelperView",
    "Part",
    "PartView",
    "PortfolioView",
    "RaceView",
    "RequestView",
    "SolverView",
    "Waiting",
]


class Waiting(StrEnum):
    """The reason why a request waits between two of its steps."""

    TURN = "turn"  # another request has the helper
    HELPER = "helper"  # a helper is being started
    REPLY = "reply"  # the helper works on it


@dataclass(frozen=True, slots=True)
class RequestView:
    """One call of :meth:`PersistentSolver.solve` that has not returned.

    ``reason`` is why it was cancelled, ``ended`` the reason that counted when it settled. ``reply``,
    ``failure`` and ``trouble`` are its outcome: at most one of them is set.
    """

    attempt_id: str
    query_id: str
    deadline: float
    waiting: Waiting | None
    reason: CancelReason | None
    ended: CancelReason | None
    generation: int  # 0 before it has a helper
    reply: Status | None
    failure: FailureKind | None
    trouble: str  # why the machine gave no helper, "" for none


@dataclass(frozen=True, slots=True)
class HelperView:
    """The helper of a solver. ``asked``: the whole of a request was sent, and no reply has come."""

    generation: int
    alive: bool
    asked: bool


@dataclass(frozen=True, slots=True)
class SolverView:
    """One engine's solver. ``holder`` is the attempt that has the turn at the helper, ``active`` the one that
    the helper works on. ``leaving``: a call of ``close`` waits for the requests to leave."""

    name: str
    engine: str
    requests: tuple[RequestView, ...]
    holder: str | None
    active: str | None
    helper: HelperView | None
    closed: bool
    leaving: bool


class Part(StrEnum):
    """The states of an engine's part in a race."""

    QUEUED = "queued"  # no thread of the pool has taken it
    RUNNING = "running"
    ENDED = "ended"
    CANCELLED = "cancelled"  # before a thread took it
    REFUSED = "refused"  # the machine gave it no thread


@dataclass(frozen=True, slots=True)
class PartView:
    """An engine in a race, since ``started``. ``known``: the race has read its outcome; ``told``: why it was
    dismissed."""

    solver: str
    attempt_id: str
    started: float
    part: Part
    known: bool
    told: CancelReason | None


@dataclass(frozen=True, slots=True)
class RaceView:
    """One race. ``waits_until`` is set while its thread waits for a letter; ``next_start`` is when the first
    of ``to_come`` may join."""

    name: str
    query_id: str
    parts: tuple[PartView, ...]
    to_come: tuple[str, ...]
    next_start: float
    letters: tuple[str, ...]  # attempts that have reported, and reasons told from outside; not read so far
    waits_until: float | None
    over: CancelReason | None


class Closing(StrEnum):
    """The stages of a portfolio's ``close``."""

    OPEN = "open"
    TOLD = "told"  # it takes no race, and cancels those there are
    RACES = "races"  # it waits for them
    SOLVERS = "solvers"  # it closes one after the other
    THREADS = "threads"  # it waits for those of its pool
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class PortfolioView:
    """A portfolio: ``solvers`` answer queries, ``checkers`` check models, each in the fixed order. ``taken``
    is when it was looked at, by the clock of all times in it."""

    taken: float
    closing: Closing
    races: tuple[RaceView, ...]
    solvers: tuple[SolverView, ...]
    checkers: tuple[SolverView, ...]
