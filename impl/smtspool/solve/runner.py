"""One engine's part in a race: its outcome and its attempt."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial

from smtspool.errors import InfrastructureError, MisuseError
from smtspool.query import Attempt, Failure, Status

from .cancellation import CancelReason
from .engineanswer import EngineAnswer
from .persistent import PersistentSolver
from .verification import NOBODY_KNOWS, Verdict
from .views import Part, PartView

__all__ = ["Finding", "Runner"]


@dataclass(frozen=True, slots=True)
class Finding:
    """An engine's answer and, for ``sat``, its model with a value for every symbol and the verifier's
    verdict."""

    said: EngineAnswer
    model: Mapping[str, str] = field(default_factory=dict)
    verdict: Verdict = NOBODY_KNOWS

    @property
    def engine(self) -> str:
        return self.said.attempt.engine

    @property
    def accepted(self) -> bool:
        """Whether it may end the race: ``unsat``, or ``sat`` with a model that was confirmed."""
        return self.said.status is Status.UNSAT or self.verdict.confirmed is True

    @property
    def unchecked(self) -> bool:
        """Whether it is a ``sat`` whose model was not checked, mostly because the race ended first."""
        return self.said.status is Status.SAT and self.verdict.confirmed is None


def _part(future: Future[Finding] | None) -> Part:
    if future is None:
        return Part.REFUSED
    if future.cancelled():
        return Part.CANCELLED
    if future.done():
        return Part.ENDED
    return Part.RUNNING if future.running() else Part.QUEUED


@dataclass(slots=True, eq=False)
class Runner:
    """An engine in the race. ``finding`` is None until it reports, and stays None if the race ends before."""

    solver: PersistentSolver
    attempt_id: str
    started: float
    yielding: bool  # it joined later, and runs at a lower CPU priority
    finding: Finding | None = None
    trouble: InfrastructureError | MisuseError | None = None  # why it could not be asked
    told: CancelReason | None = None
    future: Future[Finding] | None = None  # of its part; None if that was refused a thread
    settled: bool = False  # its solver has decided, so a cancellation comes too late
    ended: CancelReason | None = None  # why it settled on being cancelled

    def settle(self, reason: CancelReason | None) -> None:
        """Record that its solver has decided, on the thread that asks."""
        self.ended = reason
        self.settled = True

    @property
    def attempt(self) -> Attempt:
        """The attempt, as the answer lists it."""
        if self.finding is not None:
            verdict = self.finding.verdict
            return replace(self.finding.said.attempt, verified=verdict.confirmed)
        attempt = partial(Attempt, self.attempt_id, self.solver.engine)
        if self.trouble is not None:
            return attempt(Status.ERROR, reason=str(self.trouble), failure=Failure.UNASKED)
        if self.settled and self.ended is None:
            unheard = "answered, and was not heard in time"
            return attempt(Status.UNKNOWN, reason=unheard, failure=Failure.UNHEARD)
        why = self.ended or self.told
        return attempt(Status.UNKNOWN, reason=f"cancelled: {why}", cancelled=True, cancel_reason=why)

    def view(self) -> PartView:
        """The state of this part."""
        known = self.finding is not None or self.trouble is not None
        return PartView(self.solver.name, self.attempt_id, self.started, _part(self.future), known, self.told)

    @property
    def complaint(self) -> str:
        """Why this part gave no answer."""
        attempt = self.attempt
        if self.finding is not None and attempt.status is Status.SAT:
            refuted = self.finding.verdict.confirmed is False
            return f"{attempt.engine}: sat with {'a wrong' if refuted else 'an unverified'} model"
        return f"{attempt.engine}: {attempt.reason or attempt.status}"
