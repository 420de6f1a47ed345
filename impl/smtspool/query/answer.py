"""The service's answer to a query, and the attempt of each engine that it asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["Answer", "Attempt", "Failure", "Status"]


class Status(StrEnum):
    """The four answers. An engine that crashed gives ``error`` and not ``unknown``."""

    SAT = "sat"
    UNSAT = "unsat"
    UNKNOWN = "unknown"  # asked and not decided: timeout, disagreement, unverified
    ERROR = "error"  # every engine refused the query, or helpers died of it

    @property
    def definite(self) -> bool:
        """True for ``sat`` and ``unsat``.

        >>> [status.value for status in Status if status.definite]
        ['sat', 'unsat']
        """
        return self in (Status.SAT, Status.UNSAT)


class Failure(StrEnum):
    """Why an attempt that was not cancelled has no answer of its engine."""

    REFUSED = "refused"  # the engine reported the query as an error
    CRASHED = "crashed"  # the helper died while it solved the query
    NO_REPLY = "no-reply"  # the helper sent something that is no reply
    UNASKED = "unasked"  # the engine could not be asked, since the machine gave no helper
    UNHEARD = "unheard"  # the engine answered after the race was over


@dataclass(frozen=True, slots=True)
class Attempt:
    """One engine's part in the race for one query. Times are milliseconds of wall time.

    ``reason`` is a sentence for people. ``failure`` is for the service that ran the race. It is not part of a
    stored result or its JSON, and two attempts that differ only in it are equal.
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

    A ``sat`` answer of the service has a complete ``model`` (every declared symbol has a value, as SMT-LIB
    text) and ``verified_by``: ``evaluator``, or another engine than ``engine``. ``unknown`` and ``error``
    have a ``reason``. ``at_limit`` marks an answer that was given at or after the time limit ``limit_ms``;
    such an answer is reported, but not reused for other queries.
    """

    status: Status
    model: Mapping[str, str] | None = None
    values: Mapping[str, str] | None = None  # of the terms of a get-value, under the model
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
        """The reasons of engines that were asked and refused the query or died of it."""
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
