"""A worker: claim, answer, commit.

One worker is one thread with its own database connection and its own portfolio. Everything it is given
comes from a lease, everything it says goes through ``complete``; if it dies between the two, the lease
expires (or the kernel releases the owner's lock) and another worker starts over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from smtspool.query import Answer, Status
from smtspool.solve import CancelReason, FailureKind, Portfolio
from smtspool.store import Lease, Order, Store

from .config import Settings
from .desk import Desk
from .loops import FINISHED

__all__ = ["Worker"]

log = logging.getLogger("smtspool")

# Claimed at once: few enough that a killed service repeats little, many enough to share a transaction.
CLAIM_LIMIT = 16
# An answer waits at most this long for company in its commit.
COMMIT_DELAY_SECONDS = 0.05


class Worker:
    """The step of one worker thread; see :meth:`step`."""

    def __init__(
        self,
        owner: str,
        settings: Settings,
        desk: Desk,
        *,
        open_store: Callable[[], Store],
        open_portfolio: Callable[[], Portfolio],
        committed: Callable[[], None],
    ) -> None:
        self._owner = owner
        self._settings = settings
        self._order = Order(settings.order)
        self._desk = desk
        self._open_store = open_store
        self._open_portfolio = open_portfolio
        self._committed = committed
        self._store: Store | None = None
        self._portfolio: Portfolio | None = None
        self._affinity: str | None = None

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
        for resource in (self._portfolio, self._store):
            if resource is not None:
                resource.close()

    def step(self) -> float | None:
        """Work through one batch of leases. Returns the pause before the next, in seconds."""
        if self._desk.draining.is_set():
            return FINISHED
        leases = self.store.claim(
            self._owner, self._settings.lease_seconds, CLAIM_LIMIT, self._order, self._affinity
        )
        if not leases:
            done = self._desk.admitted_all.is_set() and not self.store.counts().open
            return FINISHED if done else self._settings.poll_seconds
        self._desk.hold(leases)
        try:
            self._work_through(leases)
        finally:
            self._desk.drop(leases)
        return 0

    def _work_through(self, leases: list[Lease]) -> None:
        answers: list[tuple[Lease, Answer]] = []
        waiting_since = 0.0
        for position, lease in enumerate(leases):
            if self._desk.draining.is_set():
                self._commit(answers)
                self.store.release(leases[position:])
                return
            answer = self._answer(lease)
            if answer is None:
                continue
            waiting_since = waiting_since or time.monotonic()
            answers.append((lease, answer))
            if time.monotonic() - waiting_since > COMMIT_DELAY_SECONDS:
                self._commit(answers)
                waiting_since = 0.0
        self._commit(answers)

    def _answer(self, lease: Lease) -> Answer | None:
        """The verified answer to one leased query; None if the query was given back or lost."""
        cancellation = self._desk.cancellation(lease)
        self._affinity = lease.affinity
        if lease.reuse is not None:
            reused = self._reuse(lease, lease.reuse)
            if reused is not None:
                return reused
        limit_ms = self._settings.timeout_ms or lease.query.timeout_ms
        answer = self.portfolio.solve(lease.query, timeout_s=limit_ms / 1e3, cancel=cancellation)
        if not answer.status.definite and cancellation.reason is not None:
            if cancellation.reason is not CancelReason.LEASE_LOST:
                self.store.release([lease])
            return None
        death = _death(answer)
        if death is not None:
            self.store.fail(lease, answer.reason or "crashed", helper_died=True, stderr=death)
            return None
        return answer

    def _reuse(self, lease: Lease, known: Answer) -> Answer | None:
        """The answer of an equal form, a model checked on this query's own assertions; None if it fails."""
        if known.status is Status.UNSAT:
            return known
        verdict = self.portfolio.verify(lease.query, known.model or {}, exclude_engine=known.engine)
        if verdict.confirmed:
            return replace(known, verified_by=verdict.engine)
        if verdict.confirmed is False:
            log.error("query %s: the model of %s does not satisfy it", lease.query.id, known.reused_from)
            self.store.refute(lease)
        return None

    def _commit(self, answers: list[tuple[Lease, Answer]]) -> None:
        """Commit what is answered and empty the list."""
        if not answers:
            return
        for (lease, answer), kept in zip(answers, self.store.complete(answers), strict=True):
            if kept:
                log.debug("query %s: %s by %s", lease.query.id, answer.status, answer.engine)
            else:
                log.warning("query %s: lease %d was lost, its answer is dropped", lease.query.id, lease.token)
        answers.clear()
        self._desk.announce()
        self._committed()


def _death(answer: Answer) -> str | None:
    """What the helpers left behind, if this query killed every helper that was asked; else None."""
    if answer.status is not Status.ERROR:
        return None
    deaths = [attempt.reason or "" for attempt in answer.attempts if attempt.reason]
    crashed = [text for text in deaths if text.startswith(FailureKind.CRASHED.value)]
    return "\n".join(crashed) if crashed else None
