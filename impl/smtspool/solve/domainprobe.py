"""A probe: is there a model in which one term takes one of a few values? (F301, F305 §7)

Let F be the query and D the restriction of the term to these values. A model of F and D is a model of F, and
is checked against F as any other. If F and D have no model, F may have one; an error of the probe tells
nothing either. So a probe answers ``sat`` or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from smtspool.errors import InfrastructureError, ModelError
from smtspool.query import Answer, Attempt, Query, Status, canonical_term, complete, extended

from .cancellation import Cancellation
from .persistent import PersistentSolver
from .prefilter import fitting
from .request import RequestRefused
from .verification import Verdict

__all__ = ["Probe", "ProbeEnd", "probe_domain", "restrict"]

_BOUND = "probed"


class ProbeEnd(StrEnum):
    """The outcome of a probe."""

    REJECTED = "rejected"  # no value can make the target true; no engine was asked
    VALIDATED = "validated"  # a model, confirmed as one of the query
    INVALID = "invalid"  # a model that was not confirmed
    UNSAT = "unsat"  # no model within the domain; the query may have one outside of it
    UNKNOWN = "unknown"  # no time, no helper, cancelled, a term the engine refuses, an unprintable value


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe that has ended. ``answer`` is an answer to the query itself, or None."""

    end: ProbeEnd
    attempt: Attempt | None  # among the attempts of the query; None if no engine was asked
    answer: Answer | None = None
    solver_us: int = 0  # the time of the engine's check


def restrict(query: Query, operand: str, bits: int, values: Sequence[int]) -> Query | None:
    """``query`` with the assertion that ``operand``, a term over its symbols, is one of ``values``.

    For engines only. All assertions of ``query`` come first, so that both have the same stack in a helper.
    Values that cannot make the target true are left out; None if all are. Raises ``AdmissionError`` if
    ``operand`` is no such term or does not have ``bits`` bits.
    """
    term = canonical_term(query, operand)
    fit = fitting(query.target, term, bits, values)
    if not fit:
        return None
    either = " ".join(f"(= {_BOUND} (_ bv{value} {bits}))" for value in fit)
    body = f"(or {either})" if len(fit) > 1 else either
    return extended(query, f"(let (({_BOUND} {term})) {body})")


def probe_domain(
    query: Query,
    restricted: Query,
    *,
    solver: PersistentSolver,
    attempt_id: str,
    verify: Callable[[str, Mapping[str, str]], Verdict],
    limit: float,
    grace_s: float,
    cancellation: Cancellation,
    clock: Callable[[], float],
) -> Probe:
    """Ask one engine for a model of ``restricted`` until ``limit``, and verify it as a model of ``query``.

    Failures of query, machine or engine are not raised, since the race that follows meets and reports them.
    Raises :class:`ClosedError` when the solver is closed.
    """
    started = clock()
    try:
        with cancellation.listening(lambda reason: solver.cancel(restricted.id, reason)):
            said = solver.solve(
                restricted,
                attempt_id=attempt_id,
                deadline=limit + grace_s,
                timeout_ms=max(1, int((limit - started) * 1e3)),
                cancellation=cancellation,
            )
    except (InfrastructureError, RequestRefused):
        return Probe(ProbeEnd.UNKNOWN, None)
    attempt = said.attempt
    solver_us = int(attempt.elapsed_ms * 1e3)
    if said.status is not Status.SAT:
        end = ProbeEnd.UNSAT if said.status is Status.UNSAT else ProbeEnd.UNKNOWN
        return Probe(end, _undecided(attempt, end), solver_us=solver_us)
    try:
        model = complete(query, said.model or {})
    except ModelError as error:  # the values of declared sorts in the engine's model are malformed
        attempt = replace(attempt, status=Status.UNKNOWN, reason=f"probe: {error}")
        return Probe(ProbeEnd.UNKNOWN, attempt, solver_us=solver_us)
    try:
        verdict = verify(solver.engine, model)
    except (InfrastructureError, RequestRefused):
        verdict = Verdict(None, None)
    if not verdict.confirmed:
        attempt = replace(_undecided(attempt, ProbeEnd.INVALID), verified=verdict.confirmed)
        return Probe(ProbeEnd.INVALID, attempt, solver_us=solver_us)
    attempt = replace(attempt, verified=True)
    answer = Answer(
        Status.SAT,
        model,
        engine=solver.engine,
        verified_by=verdict.by,
        elapsed_ms=(clock() - started) * 1e3,
        attempts=(attempt,),
    )
    return Probe(ProbeEnd.VALIDATED, attempt, answer, solver_us)


def _undecided(attempt: Attempt, end: ProbeEnd) -> Attempt:
    """The attempt as ``unknown`` with the outcome as its reason; that of a failed engine stays as it is."""
    if attempt.status is Status.ERROR or attempt.cancelled:
        return attempt
    return replace(attempt, status=Status.UNKNOWN, reason=f"probe: {end}")
