"""What a coordinator counts: ten counters of its own, twelve of the probers; all saturate at 2^64 - 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from smtspool.profile.record import UINT64, is_natural

__all__ = ["CONSUMPTION", "Counters"]

# What probers count per run; in telemetry each name has this prefix (F301).
CONSUMPTION = tuple(
    f"empirical_domain_{name}"
    for name in (
        "profiles_loaded",
        "context_skips",
        "parse_failures",
        "attempts",
        "prefilter_rejects",
        "solver_queries",
        "solver_time_us",
        "sat",
        "validated",
        "validation_failures",
        "unsat_fallbacks",
        "unknown_fallbacks",
    )
)


@dataclass(frozen=True, slots=True)
class Counters:
    """Counts since the first record of this folder; a counter that is missing or damaged restarts at 0."""

    records_observed: int = 0
    generations_published: int = 0
    semantic_noops: int = 0
    publication_failures: int = 0
    checkpoint_truncations: int = 0  # records dropped from checkpoints for their size
    checkpoint_failures: int = 0
    recovery_replays: int = 0
    recovery_replay_mismatches: int = 0
    suppression_generations: int = 0
    profiles_suppressed: int = 0
    consumption: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(CONSUMPTION, 0))

    def plus(self, **increments: int) -> Counters:
        """These counters with ``increments`` added."""
        return replace(
            self, **{name: min(UINT64, getattr(self, name) + more) for name, more in increments.items()}
        )

    def consumed(self, document: Mapping[str, Any]) -> Counters:
        """These counters with those of the probers in ``document`` added; a malformed one counts as 0."""
        more = {
            name: min(UINT64, value + (document[name] if is_natural(document.get(name)) else 0))
            for name, value in self.consumption.items()
        }
        return replace(self, consumption=more)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Counters:
        """The counters among the members of ``document``; saturated, and 0 if missing."""
        counted = document.get("consumption")
        consumption = counted if isinstance(counted, Mapping) else {}
        return cls(
            **{name: _count(document.get(name)) for name in _NAMES},
            consumption={name: _count(consumption.get(name)) for name in CONSUMPTION},
        )


_NAMES = tuple(one.name for one in fields(Counters) if one.name != "consumption")


def _count(value: object) -> int:
    return min(value, UINT64) if type(value) is int and value >= 0 else 0
