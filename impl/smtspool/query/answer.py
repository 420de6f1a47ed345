"""What the service answers to a query, and what each engine that it asked came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["Answer", "Attempt", "Failure", "Status"]


class Status(StrEnum):
    """The four answers. They are never blurred: an engine that crashed did not say ``unknown``."""

    SAT = "sat"
    UNSAT = "unsat"
    UNKNOWN = "unknown"  # asked and not decided: timeout, disagreement, unverified
    ERROR = "error"  # never properly asked: refused by every engine, or helpers died of it

    @property
    def definite(self) -> bool:
        """True for ``sat`` and ``unsat``."""
        return self in (Status.SAT, Status.UNSAT)


class Failure(StrEnum):
    """Why an attempt that nobody cancelled is not what its engine says of the query."""

    REFUSED = "refused"  # the engine calls the query an error
    CRASHED = "crashed"  # its helper died over it
    NO_REPLY = "no-reply"  # what its helper sent is no reply to it
    UNASKED = "unasked"  # it could not be asked: the machine gave no helper
    UNHEARD = "unheard"  # it answered, and the race was over


@dataclass(frozen=True, slots=True)
class Attempt:
    """One engine's part in the race for one query. Times are milliseconds of wall time.

    ``reason`` is a sentence for people. ``failure`` is for the program that raced: a result and its JSON keep
    the sentence alone, and two attempts that differ in nothing else are equal.
    """

    attempt_id: str
    engine: str
    status: Status
    reason: str | None = None
    cancelled: bool = False
    cancel_reason: str | None = None  # lost-race, closed, deadline, lease-lost, user
    generation: int = 0  # number of the helper process that served it; 0 when none did
    prefix_hit: int = 0  # assertions already on the helper's stack
    verified: bool | None = None  # of a sat model; None when nothing was checked
    elapsed_ms: float = 0.0
    failure: Failure | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one query.

    A ``sat`` answer that leaves the service carries a complete ``model`` (every declared symbol has a
    value, as SMT-LIB text) and ``verified_by``: ``evaluator``, or another engine than ``engine``. ``unknown``
    and ``error`` carry a ``reason``. ``at_limit`` marks what was answered at or past the time limit: it is
    reported, and never reused; ``limit_ms`` is that limit.
    """

    status: Status
    model: Mapping[str, str] | None = None
    values: Mapping[str, str] | None = None  # under the model, of the terms that a get-value asked for
    engine: str | None = None
    reason: str | None = None
    verified_by: str | None = None
    disagreement: bool = False
    reused_from: str | None = None
    at_limit: bool = False
    limit_ms: int | None = None
    elapsed_ms: float = 0.0
    attempts: tuple[Attempt, ...] = ()

    @property
    def errors(self) -> tuple[str, ...]:
        """What each engine said that was asked and called the query an error, or died of it."""
        failed = (one for one in self.attempts if one.status is Status.ERROR and one.generation)
        return tuple([f"{one.engine}: {one.reason}" for one in failed])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON members; the inverse of :meth:`from_json`. The model is the answer's own, not a copy."""
        # Not dataclasses.asdict, whose deep copies took a tenth of the service's CPU time.
        members = {name: getattr(self, name) for name in Answer.__slots__}
        members["attempts"] = [
            {name: getattr(attempt, name) for name in _ATTEMPT} for attempt in self.attempts
        ]
        return members

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> Answer:
        # Answers that version 0.1 stored have a core, which is always null.
        kept = {name: value for name, value in members.items() if name != "core"}
        attempts = (
            Attempt(**{**attempt, "status": Status(attempt["status"])}) for attempt in members["attempts"]
        )
        return cls(**{**kept, "status": Status(members["status"]), "attempts": tuple(attempts)})


_ATTEMPT = tuple(name for name in Attempt.__slots__ if name != "failure")
