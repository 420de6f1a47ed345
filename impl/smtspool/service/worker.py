"""A worker: claim, answer, commit.

One worker is one thread with its own database connection and its own portfolio. It gets queries only by
leases and commits answers only by ``complete``. If it dies between the two, the lease expires, or is released
because the kernel releases the owner's lock, and another worker starts over.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from smtspool.errors import AdmissionError, ModelError
from smtspool.query import Answer, Failure, Query, Status, value_query
from smtspool.solve import Cancellation, CancelReason, Portfolio
from smtspool.store import Lease, Order, Store

from .config import Settings
from .desk import Desk
from .loops import FINISHED, MACHINE_FAILURES

if TYPE_CHECKING:
    from .probing import Prober

__all__ = ["Worker"]

log = logging.getLogger("smtspool")

# The most queries of one claim; usually as many as take BATCH_SECONDS at the pace of the last batch. Few
# enough that little is repeated after a kill, above all soon after the start; many enough to share a
# transaction and a path.
CLAIM_LIMIT = 64
FIRST_CLAIM = 16
# One worker takes at most one part in this many, per worker of its process, of the pending queries.
SHARES = 2
# After a batch has taken this long, the rest of it is released, so that a slow query does not delay others.
BATCH_SECONDS = 0.5
# An answer waits at most this long for others, to be committed with them.
COMMIT_DELAY_SECONDS = 0.05


class Worker:
    """The step of one worker thread; see :meth:`step`. Between steps it holds no leases, unless the store
    failed to release them; then the next step begins with that."""

    def __init__(
        self,
        owner: str,
        settings: Settings,
        desk: Desk,
        *,
        open_store: Callable[[], Store],
        open_portfolio: Callable[[], Portfolio],
        committed: Callable[[], None],
        prober: Prober | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._owner = owner
        self._settings = settings
        self._order = Order(settings.order)
        self._desk = desk
        self._open_store = open_store
        self._open_portfolio = open_portfolio
        self._committed = committed
        self._prober = prober
        self._clock = clock
        self._store: Store | None = None
        self._portfolio: Portfolio | None = None
        self._affinity: str | None = None
        self._claim_limit = FIRST_CLAIM
        # Rows of queries that could not be solved because the machine failed, since the last answer.
        self._refused: set[int] = set()
        self._unanswered: deque[Lease] = deque()
        self._answered: list[tuple[Lease, Answer]] = []

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = self._open_store()
        return self._store

    @property
    def portfolio(self) -> Portfolio:
        if self._portfolio is None:
            self._portfolio = self._open_portfolio()
        return self._portfolio

    def close(self) -> None:
        with ExitStack() as stack:
            for resource in (self._store, self._portfolio):
                if resource is not None:
                    stack.callback(resource.close)

    def step(self) -> float | None:
        """Work through one batch of leases. Returns the pause before the next, in seconds."""
        self._let_go()
        if self._desk.draining.is_set():
            return FINISHED
        # Opened before the claim, since a worker without engines must not use up attempts of queries.
        portfolio = self.portfolio
        leases = self._claim()
        if not leases:
            done = self._desk.admitted_all.is_set() and not self.store.counts().open
            return FINISHED if done else self._settings.poll_seconds
        self._desk.hold(leases)
        # Shorter paths before their extensions, which then find their prefix on a helper's stack.
        self._unanswered.extend(sorted(leases, key=_path))
        try:
            self._pass_over()
            self._work(portfolio)
        finally:
            self._let_go()
        return 0

    def _claim(self) -> list[Lease]:
        counts = self.store.counts()
        if not counts.open:
            return []  # an idle service writes nothing
        limit = max(1, min(self._claim_limit, counts.pending // (SHARES * self._settings.jobs)))
        limit += len(self._refused)
        return self.store.claim(self._owner, self._settings.lease_seconds, limit, self._order, self._affinity)

    def _pass_over(self) -> None:
        """Release queries that could not be solved because the machine failed, unless there are no others.

        Such a failure does not count as an attempt. So a query that always meets it must not delay the
        others; it has its turn again after the next answer.
        """
        refused = [lease for lease in self._unanswered if lease.number in self._refused]
        if 0 < len(refused) < len(self._unanswered):
            self.store.release(refused)
            for lease in refused:
                self._end(lease)

    def _work(self, portfolio: Portfolio) -> None:
        """Answer claimed queries until the time of the batch is over."""
        started = self._clock()
        until = started + BATCH_SECONDS
        claimed = len(self._unanswered)
        commit_at = float("inf")
        while self._unanswered and self._clock() < until and not self._desk.draining.is_set():
            lease = self._unanswered[0]
            with self._desk.solving(lease, portfolio):
                answer = self._answer(portfolio, lease)
            if answer is None:
                continue
            for error in answer.errors:
                log.warning(
                    "query %s: %s, but an engine reports an error: %s", lease.query.id, answer.status, error
                )
            self._unanswered.popleft()
            self._answered.append((lease, answer))
            self._refused.clear()
            now = self._clock()
            commit_at = min(commit_at, now + COMMIT_DELAY_SECONDS)
            if now >= commit_at:
                self._commit()
                commit_at = float("inf")
        ended = claimed - len(self._unanswered)
        share = max(self._clock() - started, BATCH_SECONDS / CLAIM_LIMIT) / BATCH_SECONDS
        self._claim_limit = max(1, min(CLAIM_LIMIT, round(ended / share)))

    def _answer(self, portfolio: Portfolio, lease: Lease) -> Answer | None:
        """The verified answer to one leased query; None if the lease has ended without one."""
        cancellation = self._desk.cancellation(lease)
        self._affinity = lease.affinity
        limit_s = (self._settings.timeout_ms or lease.query.timeout_ms) / 1e3
        try:
            if lease.reuse is not None:
                reused = self._reuse(portfolio, lease, lease.reuse, limit_s, cancellation)
                if reused is not None:
                    return self._valued(portfolio, lease.query, reused, limit_s, cancellation)
            answer = self._solve(portfolio, lease.query, limit_s, cancellation)
            answer = self._valued(portfolio, lease.query, answer, limit_s, cancellation)
        except MACHINE_FAILURES:
            if len(self._refused) < CLAIM_LIMIT:
                self._refused.add(lease.number)
            raise
        if not answer.status.definite and cancellation.reason is not None:
            if cancellation.reason is not CancelReason.LEASE_LOST:
                self.store.release([lease])
            self._end(lease)
            return None
        death = _death(answer)
        if death is not None:
            self._fail(lease, "no engine answered, and helpers crashed", helper_died=True, stderr=death)
            return None
        return answer

    def _solve(self, portfolio: Portfolio, query: Query, limit_s: float, cancel: Cancellation) -> Answer:
        """The answer of a probe, if it gives one, or else of a race in the time that is left."""
        if self._prober is None:
            return portfolio.solve(query, timeout_s=limit_s, cancel=cancel)
        started = self._clock()
        probe = self._prober.probe(portfolio, query, limit_s, cancel)
        if probe is None:
            return portfolio.solve(query, timeout_s=limit_s, cancel=cancel)
        if probe.answer is not None:
            return probe.answer
        # At least half of the time, in case an engine ignored the probe's limit.
        left_s = max(limit_s - (self._clock() - started), limit_s / 2)
        return portfolio.solve(query, timeout_s=left_s, cancel=cancel, probe=probe, limit_s=limit_s)

    def _valued(
        self, portfolio: Portfolio, query: Query, answer: Answer, limit_s: float, cancel: Cancellation
    ) -> Answer:
        """``answer`` with the values of the terms of :attr:`Query.values` under its model; those of symbols
        alone if no engine gives the others in time."""
        model = answer.model
        if model is None or not query.values:
            return answer if answer.values is None else replace(answer, values=None)
        values = {term: model[term] for term in query.values if term in model}
        if len(values) < len(set(query.values)):
            with suppress(AdmissionError, ModelError):  # of declared sorts with parameters
                asked, names = value_query(query, model)
                found = portfolio.solve(asked, timeout_s=limit_s, cancel=cancel).model or {}
                values.update((term, found[name]) for term, name in names.items() if name in found)
        return replace(answer, values={term: values[term] for term in query.values if term in values})

    def _reuse(
        self, portfolio: Portfolio, lease: Lease, known: Answer, limit_s: float, cancel: Cancellation
    ) -> Answer | None:
        """The answer of an equal form, its model checked on this query's assertions; None if that fails."""
        if known.status is Status.UNSAT:
            return known
        verdict = portfolio.verify(
            lease.query, known.model or {}, exclude_engine=known.engine, timeout_s=limit_s, cancel=cancel
        )
        if verdict.confirmed:
            return replace(known, verified_by=verdict.by)
        if verdict.confirmed is False:
            log.error("query %s: the model of %s does not satisfy it", lease.query.id, known.reused_from)
            self.store.refute(lease)
        return None

    # -- ending leases ----------------------------------------------------------------------------------

    def _fail(self, lease: Lease, reason: str, *, helper_died: bool, stderr: str = "") -> None:
        log.warning("query %s: attempt %d failed: %s", lease.query.id, lease.attempts, reason)
        self.store.fail(lease, reason, helper_died=helper_died, stderr=stderr)
        self._end(lease)

    def _end(self, lease: Lease) -> None:
        self._unanswered.remove(lease)
        self._desk.drop([lease])

    def _let_go(self) -> None:
        """Commit answers and release the other leases; afterwards none is held."""
        self._commit()
        if self._unanswered:
            self.store.release(self._unanswered)
            self._desk.drop(self._unanswered)
            self._unanswered.clear()

    def _commit(self) -> None:
        if not self._answered:
            return
        for (lease, answer), kept in zip(self._answered, self.store.complete(self._answered), strict=True):
            if kept:
                log.debug(
                    "query %s: %s%s",
                    lease.query.id,
                    answer.status,
                    f" by {answer.engine}" if answer.engine else f": {answer.reason}",
                    extra={"query": lease.query.id, "attempts": _told(answer)},
                )
            else:
                log.warning("query %s: lease %d was lost, its answer is dropped", lease.query.id, lease.token)
        self._desk.drop(lease for lease, _ in self._answered)
        self._answered.clear()
        self._desk.announce()
        self._committed()


def _told(answer: Answer) -> list[dict[str, object]]:
    """The attempts of an answer, for a log line."""
    return [
        {"attempt": one.attempt_id, "engine": one.engine, "generation": one.generation, "status": one.status}
        for one in answer.attempts
    ]


def _death(answer: Answer) -> str | None:
    """The last output of helpers that this query killed; None if none died, or if an engine answered."""
    if answer.status is not Status.ERROR:
        return None
    crashed = [one.reason or "" for one in answer.attempts if one.failure is Failure.CRASHED]
    return "\n".join(crashed) if crashed else None


def _path(lease: Lease) -> list[str]:
    """The prefix chain, as a sort key by which each path comes before its extensions."""
    return [level.key for level in lease.query.levels[:-1]]
