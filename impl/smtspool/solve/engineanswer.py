"""The answer of one engine to one request. A race makes the answer of the service from several of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from smtspool.query import Attempt, Status

__all__ = ["EngineAnswer"]


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """An engine's answer: its attempt, as the query's answer lists it, and its model, not checked yet."""

    attempt: Attempt
    model: Mapping[str, str] | None = None

    @property
    def status(self) -> Status:
        return self.attempt.status
