"""The result of a qualification (F355 §4)."""

from __future__ import annotations

from dataclasses import dataclass

from .capability import Capability
from .diagnostics import Diagnostic
from .proof import Proof, exact_generation

__all__ = ["QualificationResult", "contained_failure"]


@dataclass(frozen=True, slots=True)
class QualificationResult:
    """One attempt to prove the locks of a directory.

    ``verified``: every rank passed every phase and committed the same transcript. ``clean`` alone: no error
    was found, but all ranks are on one host, so nothing was proved between hosts. Neither: ``diagnostic`` has
    the reason; ``proof`` then counts the rounds that had ended, and has no transcript. Only a verified result
    has a capability with a proof. ``elapsed`` is in seconds; 0.0 after a contained exception means "not
    measured". ``stale`` counts dropped messages of earlier attempts.
    """

    clean: bool
    verified: bool
    capability: Capability | None
    proof: Proof
    generation: int
    epoch: str
    rank: int | None
    elapsed: float
    stale: int = 0
    diagnostic: Diagnostic | None = None

    @property
    def error(self) -> str:
        """Why it is not clean, in at most 512 printable characters; empty if it is."""
        return "" if self.diagnostic is None else self.diagnostic.text

    def to_json(self) -> dict[str, object]:
        """Schema ``smtspool-qualification-v1``."""
        return {
            "schema": "smtspool-qualification-v1",
            "clean": self.clean,
            "verified": self.verified,
            "generation": self.generation,
            "epoch": self.epoch,
            "rank": self.rank,
            "elapsed": self.elapsed,
            "stale": self.stale,
            "proof": self.proof.to_json(),
            "capability": None if self.capability is None else self.capability.to_json(),
            "diagnostic": None if self.diagnostic is None else self.diagnostic.to_json(),
        }


def contained_failure(diagnostic: Diagnostic, capability: object, generation: object) -> QualificationResult:
    """The result for a contained exception: no proof and no measured time.

    Inputs are kept only if they have exactly the right type.
    """
    kept = exact_generation(generation)
    return QualificationResult(
        clean=False,
        verified=False,
        capability=capability.unproved() if type(capability) is Capability else None,
        proof=Proof(),
        generation=0 if kept is None else kept,
        epoch="",
        rank=diagnostic.rank,
        elapsed=0.0,
        diagnostic=diagnostic,
    )
