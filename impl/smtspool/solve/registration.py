"""One call of a solver: what it asks for, what it was told, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from smtspool.errors import InfrastructureError

from .cancellation import CancelReason
from .request import GenerationFailed, Reply
from .views import RequestView, Waiting

__all__ = ["Registration"]


@dataclass(slots=True, eq=False)
class Registration:
    """One call of ``solve``: F381's event (``reason`` is set) and what the call went through."""

    attempt_id: str
    query_id: str
    deadline: float
    decided: Callable[[CancelReason | None], object]
    reason: CancelReason | None = None
    ended: CancelReason | None = None  # the reason that counted: what is told after Settle changes nothing
    generation: int = 0
    keep: bool = False  # the generation may serve the next request: nothing is in doubt
    reply: Reply | None = None
    failure: GenerationFailed | None = None
    trouble: InfrastructureError | None = None  # the machine gave no helper
    waiting: Waiting | None = None

    def decide(self) -> None:
        """What it was told so far counts, what comes later does not. Called under the state lock."""
        self.ended = self.reason
        self.decided(self.ended)

    def view(self) -> RequestView:
        """What it is at. Called under the state lock."""
        return RequestView(
            self.attempt_id,
            self.query_id,
            self.deadline,
            self.waiting,
            self.reason,
            self.ended,
            self.generation,
            None if self.reply is None else self.reply.status,
            None if self.failure is None else self.failure.kind,
            "" if self.trouble is None else str(self.trouble),
        )
