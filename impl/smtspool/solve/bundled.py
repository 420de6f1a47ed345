"""The engines that come as Python wheels: one row each.

Everything else follows from the rows: the names that may be set and their fixed order, the module that a
helper imports, the package whose version is reported, and the expected time of an engine before it has been
timed. There is no column for logics, since an engine may fail in a logic that it claims to support; a trial
finds out (``capabilities``).

A new engine is a row here, its module in ``engines``, and its wheel in ``pyproject.toml``.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BUNDLED", "ENGINES", "EVALUATOR", "Bundled", "Costs", "usual"]

EVALUATOR = "evaluator"  # confirms models like an engine and is none, so that no engine may be called so


@dataclass(frozen=True, slots=True)
class Costs:
    """The usual times of an engine in a warm helper, milliseconds."""

    solve_ms: float  # for a query of SAGE
    check_ms: float  # for the check of a model of one


@dataclass(frozen=True, slots=True)
class Bundled:
    """One engine: ``package`` is its wheel's name in the registry, ``factory`` the module and class of
    ``engines`` that a helper makes it from. ``costs`` are measured: docs/measurements.md."""

    name: str
    package: str
    factory: str
    costs: Costs


ENGINES: tuple[Bundled, ...] = (
    Bundled("bitwuzla", "bitwuzla", "bitwuzla_wheel:BitwuzlaEngine", Costs(solve_ms=1.4, check_ms=0.8)),
    Bundled("z3", "z3-solver", "z3_wheel:Z3Engine", Costs(solve_ms=5.0, check_ms=1.0)),
    Bundled("cvc5", "cvc5", "cvc5_wheel:Cvc5Engine", Costs(solve_ms=6.0, check_ms=3.0)),
)
BUNDLED: tuple[str, ...] = tuple(engine.name for engine in ENGINES)

_STRANGER = Costs(solve_ms=20.0, check_ms=5.0)  # an external command, whose times are not known
_COSTS = {engine.name: engine.costs for engine in ENGINES}


def usual(engine: str) -> Costs:
    """The expected times of ``engine``, bundled or not, before it has been timed."""
    return _COSTS.get(engine, _STRANGER)
