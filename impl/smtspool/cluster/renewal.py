"""Renewal: when the locks are proved again, and how a finished attempt is counted (F330-F332, F353).

A proof shows only that the locks held at that time, so it is repeated while a fleet runs; each repetition is
one *generation*. The controller decides when, takes the result, and keeps ``attempts == successes +
failures``: it either enters an attempt as a whole or stays as it was.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

from smtspool.errors import MisuseError

from .capability import Capability
from .diagnostics import Diagnostic, Position, Stage, contained
from .proof import MAX_GENERATION, Proof, exact_generation, require_complete, transcript_of
from .result import QualificationResult

__all__ = ["AgreedPlan", "Completion", "Ledger", "RenewalController", "RenewalPlan", "complete_renewal"]

MAX_INTERVAL = 86_400.0
MAX_TIMEOUT = 3600.0
MAX_JITTER = 0.5
_PLAN = b"smtspool-cluster-renewal-plan-v1\0"
_JITTER = b"smtspool-cluster-renewal-jitter-v1\0"


@dataclass(frozen=True, slots=True)
class RenewalPlan:
    """How often to prove the locks again. All ranks must have the same plan.

    Every ``interval`` seconds (0: never), lengthened by a fraction of at most ``jitter``, and each time
    within ``timeout`` seconds.
    """

    interval: float = 60.0
    timeout: float = 30.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        for name, low, high in (
            ("interval", 0.0, MAX_INTERVAL),
            ("timeout", 0.001, MAX_TIMEOUT),
            ("jitter", 0.0, MAX_JITTER),
        ):
            value = getattr(self, name)
            if type(value) not in (int, float) or not low <= value <= high:  # refuses NaN too
                raise ValueError(f"{name} must be a number between {low:g} and {high:g}, not {value!r}")
            object.__setattr__(self, name, abs(float(value)))  # -0.0 becomes 0.0, since the bits are hashed


@dataclass(frozen=True, slots=True)
class AgreedPlan:
    """A plan that all ``members`` ranks of an epoch have; :func:`.compare_plans` makes it."""

    plan: RenewalPlan
    epoch: str
    members: int

    @property
    def fingerprint(self) -> str:
        """A hash of epoch and plan."""
        numbers = struct.pack(">3d", self.plan.interval, self.plan.timeout, self.plan.jitter)
        return hashlib.sha256(_PLAN + bytes.fromhex(self.epoch) + numbers).hexdigest()

    def delay(self, generation: int) -> float:
        """Seconds from the end of ``generation`` to the next: the same on every rank, spread over fleets."""
        interval, jitter = self.plan.interval, self.plan.jitter
        seed = hashlib.sha256(_JITTER + bytes.fromhex(self.epoch) + generation.to_bytes(8)).digest()
        fraction = (int.from_bytes(seed[:8]) >> 11) / 2.0**53  # in [0, 1)
        longest = interval * (1.0 + jitter)
        delay = interval * (1.0 + jitter * fraction)
        # Rounding may give the upper end, which is excluded.
        return min(delay, math.nextafter(longest, 0.0)) if longest > interval else interval


@dataclass(frozen=True, slots=True)
class Ledger:
    """The counts of a controller; every change is one assignment of a whole new ledger.

    ``in_flight`` is the generation being proved, 0 for none. ``completed_at`` is when the last proof in force
    was completed, on the caller's clock. ``delay`` is counted from there.
    """

    completed_at: float
    delay: float
    generation: int = 0
    in_flight: int = 0
    attempts: int = 0
    successes: int = 0
    failures: int = 0
    total_elapsed: float = 0.0
    last_elapsed: float = 0.0


class RenewalController:
    """The renewals of one rank, from the proof of generation 0 on. Used by one thread."""

    def __init__(
        self, agreed: AgreedPlan, *, capability: Capability, completed_at: float, generation: int = 0
    ) -> None:
        if not math.isfinite(completed_at):
            raise MisuseError("a controller needs the time at which the first proof was completed")
        self.agreed = agreed
        self.capability = capability.unproved()
        self.ledger = Ledger(completed_at, agreed.delay(generation), generation)

    def due(self, now: float, *, safe: bool = True) -> bool:
        """Whether the next renewal should begin; only rank 0 asks. False while the caller is not ``safe``."""
        ledger = self.ledger
        return (
            safe
            and self.agreed.plan.interval > 0
            and not ledger.in_flight
            and ledger.generation < MAX_GENERATION
            and now - ledger.completed_at >= ledger.delay
        )

    def begin(self, generation: int | None = None) -> int:
        """Begin the next generation; MisuseError if ``generation`` is given and is another one."""
        following = self.ledger.generation + 1
        if self.ledger.in_flight or exact_generation(following) is None:
            raise MisuseError("no renewal can begin now")
        if generation is not None and (type(generation) is not int or generation != following):
            raise MisuseError(f"generation {following} is next, not {generation!r}")
        self.ledger = replace(self.ledger, in_flight=following)
        return following

    def complete(self, generation: int, result: QualificationResult, *, completed_at: float) -> bool:
        """Enter one attempt as a success or as a failure; True for a success.

        After an exception the ledger is as before: a generation that is not in flight (MisuseError), a value
        of another type (TypeError), a time that is not finite or runs backwards (ValueError), an overflow of
        the sum (OverflowError).
        """
        before = self.ledger
        if type(generation) is not int or generation != before.in_flight or not generation:
            raise MisuseError(f"generation {generation!r} is not being renewed")
        if type(result) is not QualificationResult:
            raise TypeError("a renewal ends with a qualification result")
        if not math.isfinite(completed_at) or completed_at < before.completed_at:
            raise ValueError(f"completed at {completed_at!r}, before {before.completed_at!r}")
        measured = (
            type(result.elapsed) in (int, float) and math.isfinite(result.elapsed) and result.elapsed >= 0
        )
        elapsed = float(result.elapsed) if measured else 0.0
        total = before.total_elapsed + elapsed
        if not math.isfinite(total):
            raise OverflowError("the total time of all renewals is too large for a number")
        success = measured and self._proves(result, generation)
        # The only change is one assignment, which cannot fail: all or nothing (F353).
        self.ledger = Ledger(
            completed_at=completed_at if success else before.completed_at,
            delay=self.agreed.delay(generation),
            generation=generation,
            attempts=before.attempts + 1,
            successes=before.successes + success,
            failures=before.failures + (not success),
            total_elapsed=total,
            last_elapsed=elapsed,
        )
        return success

    def _proves(self, result: QualificationResult, generation: int) -> bool:
        """Whether every part of ``result`` is as this generation of this fleet must give it."""
        proof, capability = result.proof, result.capability
        if not (result.clean is True and result.verified is True and result.diagnostic is None):
            return False
        if (
            type(result.generation) is not int
            or result.generation != generation
            or result.epoch != self.agreed.epoch
        ):
            return False
        if type(proof) is not Proof or type(capability) is not Capability:
            return False
        if capability.proof != proof or capability.unproved() != self.capability:
            return False
        try:
            require_complete(proof)
            bare = replace(proof, transcript="")
            return len(proof.members) == self.agreed.members and proof.transcript == transcript_of(
                self.agreed.epoch, generation, bare
            )
        except (TypeError, ValueError):
            return False


@dataclass(frozen=True, slots=True)
class Completion:
    """How an attempt was entered: as a success, as a failure, or, with a ``diagnostic``, not at all because
    entering it raised."""

    success: bool
    diagnostic: Diagnostic | None = None


def complete_renewal(
    controller: RenewalController,
    generation: int,
    result: QualificationResult,
    *,
    clock: Callable[[], float],
    rank: int | None = None,
) -> Completion:
    """Call ``controller.complete`` with the clock, read once; total over ``Exception`` (F354)."""
    return contained(
        "cluster lock renewal was not accounted for",
        Position(Stage.COMPLETION, exact_generation(generation) or 0, rank),
        lambda: Completion(controller.complete(generation, result, completed_at=clock())),
        lambda diagnostic: Completion(False, diagnostic),
    )
