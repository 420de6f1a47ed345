"""The service: admission, workers, heartbeat and publication over one campaign.

::

    with Service(Campaign.open(path), settings) as service:
        ...
        service.drain()
        service.join()

Threads, each owning what it opens: ``admission`` (spool to store), ``worker-N`` (claim, race, commit),
``heartbeat`` (renew leases, release those of dead owners), ``profiling`` (telemetry to domains),
``publication`` (outbox to files). Several
services may run on one campaign; each is one *owner* to the store.
"""

from __future__ import annotations

import json
import logging
import resource
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self
from uuid import uuid4

from smtspool.profile import parse_telemetry
from smtspool.solve import CancelReason
from smtspool.spool import Spool
from smtspool.store import Backoff, Patience, Store

from .admission import Admission
from .campaign import Campaign
from .config import Settings
from .desk import Desk
from .fleet import Fleet
from .heartbeat import Heartbeat, renew_leases
from .intake import submit_telemetry
from .loops import Health, Loop
from .profiling import Profiling
from .publisher import Publisher
from .telemetry import Telemetry
from .worker import Worker

__all__ = ["Service"]

log = logging.getLogger("smtspool")

# How often join() looks whether the time for draining is over.
JOIN_SECONDS = 0.2
# A worker takes eight per engine, and the usual limit is 1024. Not all that a machine may allow: there are
# commands that close every descriptor they might have when they start.
DESCRIPTORS = 1 << 16


class Service:
    """All threads of one service process over one campaign; they start when it is entered.

    With ``once`` it ends by itself: the spool is empty, every query has a result, every result is published.
    Without ``admits`` it leaves the spool to another service and solves what that one stores.
    Otherwise :meth:`drain` ends it in order and :meth:`stop` at once; either way what is not answered goes
    back to the queue, and when the ``with`` block ends no thread, process, lock or descriptor is left.
    Entering it raises InfrastructureError if no engine works, ConfigError if one does not exist.
    A Service belongs to the thread that enters it; :meth:`drain` and :meth:`stop` may be called by any.
    """

    def __init__(
        self,
        campaign: Campaign,
        settings: Settings,
        *,
        once: bool = False,
        admits: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.campaign = campaign
        self.settings = settings
        self.health = Health()
        self.desk = Desk()
        self.telemetry = Telemetry()
        self._once = once
        self._admits = admits
        self._clock = clock
        self._halt = threading.Event()
        self._drained_by: float | None = None  # when drain() becomes stop()
        self._resources = ExitStack()
        self._workers: list[Loop] = []
        self._publication: list[Loop] = []  # outlives the workers: it has their last answers to publish
        self._others: list[Loop] = []

    def open_store(self) -> Store:
        """A connection for the calling thread, with the patience and the rules of this service's settings."""
        return Store.open(
            self.campaign.store,
            patience=Patience(attempts=self.settings.max_attempts, deaths=self.settings.max_deaths),
            backoff=Backoff(failures=self.settings.publication_attempts),
            confirm_unsat=self.settings.confirm_unsat,
        )

    def renew_leases(self) -> int:
        """Keep every query that is being solved, now; returns how many were lost.

        The heartbeat thread does so in its own time."""
        with self.open_store() as store:
            return renew_leases(store, self.desk, self.settings.lease_seconds)

    def observe(self, *documents: Mapping[str, object]) -> None:
        """Give the coordinator what runs of the program have seen, durably, through the spool.

        Raises AdmissionError, and gives it nothing, if a document is no telemetry.
        """
        files = [json.dumps(document).encode() for document in documents]
        for data in files:
            parse_telemetry(data)
        submit_telemetry(self.campaign.spool, ((f"{uuid4().hex}.json", data) for data in files))

    # -- life -------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        _allow_descriptors()
        # A spool that cannot be opened now is a mistake of whoever starts us: said at once, not retried.
        Spool.open(self.campaign.spool).close()
        with ExitStack() as stack:
            store = stack.enter_context(self.open_store())
            owner = stack.enter_context(store.register())
            # Fork servers before threads: they are programs of their own, and cheap to start early.
            fleet = stack.enter_context(Fleet(self.settings, observe=self.telemetry.race))
            fleet.recall(store)
            log.info(
                "serving %s: %d workers, engines %s; SIGTERM or Ctrl-C drains",
                self.campaign.root,
                self.settings.jobs,
                ", ".join(fleet.engines),
            )
            stack.callback(fleet.remember, store)
            stack.callback(self._end)
            self._start(owner.name, fleet)
            self._resources = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def _start(self, owner: str, fleet: Fleet) -> None:
        profiling = Profiling(
            self.campaign,
            self.settings,
            self.telemetry,
            admits=self._admits,
            open_store=self.open_store,
            clock=self._clock,
        )
        profile = self._loop("profiling", profiling.step, profiling.close)
        publication = Publisher(self.campaign, self.desk, open_store=self.open_store)
        publish = self._loop("publication", publication.step, publication.close)
        workers = [
            Worker(
                owner,
                self.settings,
                self.desk,
                open_store=self.open_store,
                open_portfolio=fleet.portfolio,
                committed=publish.wake.set,
                prober=profiling.prober,
                clock=self._clock,
            )
            for _ in range(self.settings.jobs)
        ]
        self._workers = [
            self._loop(f"worker-{number}", worker.step, worker.close)
            for number, worker in enumerate(workers, 1)
        ]
        admission = Admission(
            self.campaign,
            self.settings,
            self.desk,
            self.telemetry,
            consumer=owner,
            admits=self._admits,
            once=self._once,
            open_store=self.open_store,
            admitted=self._wake_workers,
        )
        heartbeat = Heartbeat(
            self.settings, self.desk, self.telemetry, open_store=self.open_store, clock=self._clock
        )
        self._publication = [publish]
        self._others = [
            self._loop("admission", admission.step, admission.close),
            self._loop("heartbeat", heartbeat.step, heartbeat.close),
            profile,
        ]
        profiling.begin()
        for loop in self._loops():
            loop.start()

    def _loop(self, name: str, step: Callable[[], float | None], leave: Callable[[], None]) -> Loop:
        return Loop(name, step, stop=self._halt, health=self.health, defect=self._stop_for_good, leave=leave)

    def _loops(self) -> list[Loop]:
        return self._workers + self._others + self._publication

    def _stop_for_good(self, error: Exception) -> None:
        self.health.fatal(error)
        self.stop()

    def _end(self) -> None:
        self.stop()
        for loop in self._loops():
            if loop.ident is not None:
                loop.join()

    # -- ending -----------------------------------------------------------------------------------------

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until a ``once`` or draining service has done everything; False after ``timeout_s``.

        Turns :meth:`drain` into :meth:`stop` after ``drain_seconds``. Raises the error that stopped the
        service, if one did.
        """
        deadline = float("inf") if timeout_s is None else self._clock() + timeout_s
        for loops, done in ((self._workers, self.desk.solved_all), (self._publication, self._halt)):
            for loop in loops:
                if not self._joined(loop, deadline):
                    return False
            if not done.is_set():
                done.set()
                self._hurry_all()
        if self.health.fatal_error is not None:
            raise self.health.fatal_error
        return True

    def _joined(self, loop: Loop, deadline: float) -> bool:
        while loop.is_alive():
            now = self._clock()
            if self._drained_by is not None and now >= self._drained_by and not self._halt.is_set():
                log.warning("not drained in time: stopping; what is not answered goes back to the queue")
                self.stop()
            if now >= deadline:
                return False
            loop.join(min(JOIN_SECONDS, deadline - now))
        return True

    def drain(self) -> None:
        """Admit and claim nothing more. What is being solved may finish, and be published, for
        ``drain_seconds``; then it goes back. Does not wait: :meth:`join` does."""
        if self._drained_by is None:
            self._drained_by = self._clock() + self.settings.drain_seconds
        self.desk.draining.set()
        self._hurry_all()

    def stop(self) -> None:
        """Cancel what is being solved and end every loop. Does not wait."""
        self.desk.draining.set()
        self._halt.set()
        self.desk.cancel_all(CancelReason.CLOSED)
        self._hurry_all()

    def _wake_workers(self) -> None:
        for loop in self._workers:
            loop.wake.set()

    def _hurry_all(self) -> None:
        for loop in self._loops():
            loop.hurry()


def _allow_descriptors() -> None:
    """Raise this process's own limit as far as it may, for good."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < min(hard, DESCRIPTORS):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, DESCRIPTORS), hard))
