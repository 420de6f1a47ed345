"""One call of a solver: its request, whether it was cancelled, and its outcome."""

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
    """One call of ``solve``. ``reason`` is set when it is cancelled: F381's event."""

    attempt_id: str
    query_id: str
    deadline: float
    decided: Callable[[CancelReason | None], object]
    reason: CancelReason | None = None
    ended: CancelReason | None = None  # the reason that counts: ``reason`` at Settle
    generation: int = 0
    keep: bool = False  # the generation may serve the next request
    reply: Reply | None = None
    failure: GenerationFailed | None = None
    trouble: InfrastructureError | None = None  # the machine gave no helper
    waiting: Waiting | None = None

    def decide(self) -> None:
        """Let the present ``reason`` count, and no later one. Called under the state lock."""
        self.ended = self.reason
        self.decided(self.ended)

    def view(self) -> RequestView:
        """The state of the call. Called under the state lock."""
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
