"""Probing: a query whose metadata names its site is first tried with the values that were seen there.

The metadata may name ``context``, ``site``, ``bits`` and ``operand``, a term of the query. If the served
generation has a domain for that key, the engine that would start the race is asked, with a small budget, for
a model in which the operand has a value of the domain. The outcome goes back to the coordinator as feedback.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from smtspool.errors import AdmissionError
from smtspool.profile import MAX_FEEDBACK, Domain, Key, ProfileGeneration, parse_runtime
from smtspool.query import Query
from smtspool.solve import Cancellation, Portfolio, Probe, ProbeEnd, restrict

from .increments import Increments

__all__ = ["Prober"]

log = logging.getLogger("smtspool")

# A probe takes at most one part in this many of the query's time.
SHARES = 10
# What each end of a probe adds to a row: attempts, rejects, queries, sat, validated, failed, unsat, unknown.
# The ninth number of a row is the time.
_COUNTED = {
    ProbeEnd.REJECTED: (1, 1, 0, 0, 0, 0, 0, 0),
    ProbeEnd.VALIDATED: (1, 0, 1, 1, 1, 0, 0, 0),
    ProbeEnd.INVALID: (1, 0, 1, 1, 0, 1, 0, 0),
    ProbeEnd.UNSAT: (1, 0, 1, 0, 0, 0, 1, 0),
    ProbeEnd.UNKNOWN: (1, 0, 1, 0, 0, 0, 0, 1),
}
# The names of the sums over all rows in telemetry, in their order; the last one is summed elsewhere.
_TOTALS = (
    "attempts",
    "prefilter_rejects",
    "solver_queries",
    "sat",
    "validated",
    "validation_failures",
    "unsat_fallbacks",
    "unknown_fallbacks",
    "solver_time_us",
)
_NO_ROW = (0,) * len(_TOTALS)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A generation, read; without domains if its text has an error."""

    generation: ProfileGeneration
    domains: Mapping[Key, Domain]


class Prober:
    """Probes for all workers of a service. Thread-safe; the lock guards ``_found`` and ``_loads``."""

    def __init__(
        self, serve: Callable[[], ProfileGeneration | None], increments: Increments, *, budget_s: float
    ) -> None:
        """``serve`` gives the generation that may be probed with; a budget of 0 probes nothing."""
        self._serve = serve
        self._increments = increments
        self._budget_s = budget_s
        self._loaded: _Loaded | None = None
        self._lock = threading.Lock()
        self._found: dict[Domain, tuple[int, ...]] = {}
        self._loads: dict[str, int] = {"profiles_loaded": 0, "parse_failures": 0}

    def probe(self, portfolio: Portfolio, query: Query, limit_s: float, cancel: Cancellation) -> Probe | None:
        """Probe ``query``, which has ``limit_s`` seconds in all; None if there is nothing to probe with."""
        key = _key(query.metadata)
        domain = None if key is None or not self._budget_s else self._domains().get(key)
        if domain is None:
            return None
        operand = query.metadata["operand"]
        assert isinstance(operand, str)
        try:
            restricted = restrict(query, operand, domain.key.bits, domain.values)
        except AdmissionError as error:
            log.debug("query %s: its operand cannot be probed: %s", query.id, error)
            self._increments.add({"probes.refused": 1})
            return None
        if restricted is None:
            probe = Probe(ProbeEnd.REJECTED, None)
        else:
            budget_s = min(self._budget_s, limit_s / SHARES)
            probe = portfolio.probe(query, restricted, timeout_s=budget_s, cancel=cancel)
        if cancel.reason is None:  # a cancelled probe tells nothing about the domain
            self._report(domain, probe)
        return probe

    def _domains(self) -> Mapping[Key, Domain]:
        generation = self._serve()
        if generation is None:
            return {}
        loaded = self._loaded
        if loaded is None or loaded.generation is not generation:
            loaded = self._loaded = self._load(generation)
        return loaded.domains

    def _load(self, generation: ProfileGeneration) -> _Loaded:
        """The domains of a generation. A text with any error disables probing, not solving."""
        try:
            domains = parse_runtime(generation.content).domains
        except AdmissionError as error:
            log.error("profiles: generation %s is not probed with: %s", generation.version, error)
            domains = ()
            with self._lock:
                self._loads["parse_failures"] += 1
        with self._lock:
            self._loads["profiles_loaded"] += len(domains)
        return _Loaded(generation, {domain.key: domain for domain in domains})

    def _report(self, domain: Domain, probe: Probe) -> None:
        row = (*_COUNTED[probe.end], probe.solver_us)
        with self._lock:
            before = self._found.get(domain, _NO_ROW)
            self._found[domain] = tuple(map(int.__add__, before, row))
        self._increments.add({"probes": 1, f"probes.{probe.end}": 1, "probes.seconds": probe.solver_us / 1e6})

    def take(self) -> list[dict[str, Any]]:
        """The outcomes of probes since the last call, as telemetry documents, at least one per program."""
        with self._lock:
            found, self._found = self._found, {}
            loads, self._loads = self._loads, dict.fromkeys(self._loads, 0)
        by_context: dict[str, list[tuple[Domain, tuple[int, ...]]]] = defaultdict(list)
        for domain, row in found.items():
            by_context[domain.key.context].append((domain, row))
        documents = [
            _document(context, part)
            for context, rows in by_context.items()
            for part in _parts(rows, MAX_FEEDBACK)
        ]
        if documents:
            documents[0] |= {f"empirical_domain_{name}": count for name, count in loads.items()}
        return documents


def _key(metadata: Mapping[str, object]) -> Key | None:
    """The site of a query, if its metadata names it in full. Types are checked, since producers write it."""
    if "operand" not in metadata:
        return None
    context, site, bits = (metadata.get(name) for name in ("context", "site", "bits"))
    if not isinstance(context, str) or type(site) is not int or type(bits) is not int:
        return None
    return Key(context, site, bits) if isinstance(metadata["operand"], str) else None


def _document(context: str, rows: list[tuple[Domain, tuple[int, ...]]]) -> dict[str, Any]:
    totals = dict(zip(_TOTALS, map(sum, zip(*(row for _, row in rows), strict=True)), strict=True))
    totals["unsat_fallbacks"] += totals["prefilter_rejects"]  # which also counts the rejects
    return {
        "schema": 3,
        "empirical_value_profile_context": context,
        "empirical_value_profiles": [],
        "empirical_domain_feedback": [[*domain.key[1:], list(domain.values), *row] for domain, row in rows],
        **{f"empirical_domain_{name}": total for name, total in totals.items()},
    }


def _parts(rows: list[Any], size: int) -> Iterator[list[Any]]:
    left = iter(rows)
    while part := list(islice(left, size)):
        yield part
