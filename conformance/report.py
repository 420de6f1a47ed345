"""What `make conformance` reports of a protocol."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from conformance.engine.mutants import Mutant
from conformance.engine.replay import Drive

__all__ = ["Figures", "Kill", "Report"]


@dataclass(frozen=True, slots=True)
class Figures:
    """What was driven, and what there was to drive, of one graph or of several together."""

    states: int = 0
    edges: int = 0
    edges_required: int = 0
    refusals: int = 0
    refusals_required: int = 0
    excluded: int = 0
    steps: int = 0
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """In a line."""
        return f"{self.edges} edges, {self.refusals} refusals, {self.seconds:.0f} s"

    @classmethod
    def of(cls, drive: Drive) -> Self:
        """The figures of one drive."""
        return cls(
            len(drive.graph.states),
            len(drive.edges),
            len(drive.graph.edges),
            len(drive.refusals),
            drive.refusals_required,
            drive.excluded,
            drive.steps,
            drive.seconds,
        )

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            **{item.name: getattr(self, item.name) + getattr(other, item.name) for item in fields(self)}
        )

    def to_json(self) -> dict[str, Any]:
        """Arguments that make it again."""
        return asdict(self)

    @property
    def complete(self) -> bool:
        """True when nothing that is required is missing, and something was required."""
        return self.edges == self.edges_required > 0 and self.refusals == self.refusals_required > 0


@dataclass(frozen=True, slots=True)
class Kill:
    """What became of a mutant: the detector that saw it first, and what it said; None when it survived."""

    mutant: Mutant
    detector: str | None
    message: str
    seconds: float

    @property
    def as_wanted(self) -> bool:
        """Mutants are caught, controls survive."""
        return (self.detector is None) == self.mutant.control


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of one protocol."""

    protocol: str
    figures: Figures
    random_steps: int
    traces: int
    kills: tuple[Kill, ...]
    seconds: float

    @property
    def complete(self) -> bool:
        """True when everything required was driven and every mutant went as it must."""
        return self.figures.complete and bool(self.kills) and all(kill.as_wanted for kill in self.kills)

    @property
    def cells(self) -> dict[str, str]:
        """One row: column -> text."""
        driven = self.figures
        mutants = [kill for kill in self.kills if not kill.mutant.control]
        return {
            "protocol": self.protocol,
            "states": str(driven.states),
            "edges": f"{driven.edges}/{driven.edges_required}",
            "refusals": f"{driven.refusals}/{driven.refusals_required}",
            "left out": str(driven.excluded),
            "steps": str(driven.steps),
            "random steps": str(self.random_steps),
            "traces": str(self.traces),
            "mutants": f"{sum(kill.as_wanted for kill in mutants)}/{len(mutants)}",
            "seconds": f"{self.seconds:.0f}",
        }
