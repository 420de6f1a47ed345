"""The thresholds: which values form a domain, and which domains are not worth probing (F300-F304)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from smtspool.errors import ConfigError
from smtspool.profile.record import MAX_VALUES, UINT64, Yield

__all__ = ["Policy"]

_PPM = 1_000_000


@dataclass(frozen=True, slots=True)
class Policy:
    """The configured thresholds. Raises ``ConfigError`` for one that is out of range.

    A key is *limited* with at least ``min_observations`` and at most ``max_distinct_values``, none lost. A
    domain is *suppressed* after ``min_solver_queries`` probes that cost ``min_solver_time_us`` or more, of
    which less than ``min_validated_ratio_ppm`` millionths gave a validated model; a ratio of 0 suppresses
    nothing.
    """

    min_observations: int = 8
    max_distinct_values: int = 4
    min_solver_queries: int = 8
    min_validated_ratio_ppm: int = 125_000
    min_solver_time_us: int = 1_000

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise ConfigError(f"{name} must be a whole number from {least} to {most}, not {value!r}")

    def condemns(self, found: Yield) -> bool:
        """Whether ``found`` shows that probing does not pay: often tried, seldom validated, costly."""
        return (
            found.solver_queries >= self.min_solver_queries
            and found.validated * _PPM < found.solver_queries * self.min_validated_ratio_ppm
            and found.solver_time_us >= self.min_solver_time_us
        )

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def of(cls, document: object) -> Policy | None:
        """The inverse of :meth:`to_json`; None for anything else."""
        if not isinstance(document, dict) or document.keys() != _RANGES.keys():
            return None
        try:
            return cls(**document)
        except ConfigError:
            return None


_RANGES = {
    "min_observations": (1, UINT64),
    "max_distinct_values": (1, MAX_VALUES),
    "min_solver_queries": (1, UINT64),
    "min_validated_ratio_ppm": (0, _PPM),
    "min_solver_time_us": (0, UINT64),
}
assert [field.name for field in fields(Policy)] == list(_RANGES)
