"""What one engine says when it is asked once. What the service answers is made of several: see ``race``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from smtspool.query import Attempt, Status

__all__ = ["EngineAnswer"]


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """One engine's word: its line in the account of the query, and its model, which nobody has checked."""

    attempt: Attempt
    model: Mapping[str, str] | None = None

    @property
    def status(self) -> Status:
        return self.attempt.status
