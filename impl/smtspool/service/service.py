"""The service: admission, workers, heartbeat and publication over one campaign.

::

    with Service(Campaign.open(path), settings) as service:
        ...
        service.drain()
        service.join()

Its threads, each of which owns what it opens, are ``admission`` (spool to store), ``worker-N`` (claim, race,
commit), ``heartbeat`` (renew leases, release those of dead owners), ``engines`` (try failed ones again),
``profiling`` (telemetry to domains) and ``publication`` (outbox to files). Before them run ``start``, which
opens what they share and closes it after them, and ``plate``, which reports the state of this service.
Several services may run on one campaign; each is one *owner* in the store.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Self
from uuid import uuid4

from smtspool.errors import InfrastructureError, LastingError, SmtspoolError
from smtspool.profile import parse_telemetry
from smtspool.solve import CancelReason
from smtspool.spool import Spool
from smtspool.store import BUSY_TIMEOUT_SECONDS, Backoff, Patience, Presence, Store

from .admitter import Admitter
from .campaign import Campaign
from .config import Settings
from .descriptors import allow_descriptors
from .desk import Desk
from .engines import Engines
from .exporter import Exporter
from .heartbeat import Heartbeat, renew_leases
from .increments import Increments
from .intake import submit_telemetry
from .loops import FINISHED, MACHINE_FAILURES, Health, Loop
from .metrics import exposed
from .plate import Plate
from .profiling import Profiling
from .publisher import Publisher
from .worker import Worker

__all__ = ["Service"]

log = logging.getLogger("smtspool")

# How often join() checks whether the time for draining is over.
JOIN_SECONDS = 0.2
# The pause of the keeper, which only waits for the end.
KEEP_SECONDS = 3600.0
# How long the first attempt to start waits for a locked store; not longer, because signals are obeyed only
# after it.
START_BUSY_SECONDS = 5.0


class Service:
    """All threads of one service process over one campaign; they start when it is entered.

    With ``once`` it ends by itself: the spool is empty, every query has a result, every result is published.
    Without ``admits`` it leaves the spool to another service and solves what that one stores.
    Otherwise :meth:`drain` ends it in order and :meth:`stop` at once; either way what is not answered goes
    back to the queue, and when the ``with`` block ends no thread, process, lock or descriptor is left.
    Entering it raises LastingError if no engine works, or if the store is damaged or may not be written, and
    ConfigError if an engine does not exist. After any other failure of the machine, such as a full disk or a
    locked store, it tries again until it can start. With ``creates`` it makes a missing store. A Service
    belongs to the thread that enters it; :meth:`drain` and :meth:`stop` may be called by any thread. A forked
    child has none of its locks and helpers, and leaving the block there ends nothing.

    :class:`Campaign` has an example.
    """

    def __init__(
        self,
        campaign: Campaign | str | os.PathLike[str],
        settings: Settings | None = None,
        *,
        once: bool = False,
        admits: bool = True,
        creates: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.campaign = campaign = campaign if isinstance(campaign, Campaign) else Campaign.open(campaign)
        self.settings = settings = settings or Settings.load(campaign)
        self._process = os.getpid()
        self.health = Health()
        self.desk = Desk()
        self.increments = Increments()
        self._once = once
        self._admits = admits
        self._clock = clock
        self._halt = threading.Event()
        self._drained_by: float | None = None  # when drain() becomes stop()
        self._creates = creates
        self._attempted = threading.Event()  # to open everything
        self._up = threading.Event()  # everything is open
        self._gone = threading.Event()  # everything is closed
        self._plate = Plate(settings, self.desk, self.health, make=lambda: Presence(campaign.store))
        self._plate_loop = self._loop("plate", self._plate.step, self._plate.close, stop=self._gone)
        self._keeper = self._loop("start", self._keep, self._leave)
        self._resources = ExitStack()  # of the keeper
        self._workers: list[Loop] = []
        self._publication: list[Loop] = []  # ends after the workers, since it publishes their last answers
        self._others: list[Loop] = []

    def open_store(self, busy_timeout_s: float = BUSY_TIMEOUT_SECONDS) -> Store:
        """A connection for the calling thread, with the patience and the rules of this service's settings."""
        return Store.open(
            self.campaign.store,
            busy_timeout_s=busy_timeout_s,
            patience=Patience(attempts=self.settings.max_attempts, deaths=self.settings.max_deaths),
            backoff=Backoff(failures=self.settings.publication_attempts),
            confirm_unsat=self.settings.confirm_unsat,
        )

    def renew_leases(self) -> int:
        """Renew the leases of all queries that are being solved; returns how many were lost.

        The heartbeat thread does so regularly."""
        with self.open_store() as store:
            return renew_leases(store, self.desk, self.settings.lease_seconds)

    def observe(self, *documents: Mapping[str, object]) -> None:
        """Give telemetry of runs to the coordinator, durably, through the spool.

        Raises AdmissionError, and passes nothing on, if a document is not telemetry.
        """
        files = [json.dumps(document).encode() for document in documents]
        for data in files:
            parse_telemetry(data)
        submit_telemetry(self.campaign.spool, ((f"{uuid4().hex}.json", data) for data in files))

    # -- life -------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        allow_descriptors()
        # A spool that cannot be opened now is a mistake in the call, so the error is raised and not retried.
        Spool.open(self.campaign.spool).close()
        try:
            self._plate_loop.start()
            self._keeper.start()
            self._attempted.wait()
            if self.health.fatal_error is not None and not self._up.is_set():
                raise self.health.fatal_error
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() == self._process:  # a forked child leaves it to its parent
            self._end()

    def _end(self) -> None:
        self.stop()
        # The plate ends last: it reports the end, and its lock file must exist until the owner is
        # unregistered.
        for loop, end in ((self._keeper, self._halt), (self._plate_loop, self._gone)):
            end.set()
            loop.hurry()
            if loop.ident is not None:
                loop.join()

    def _keep(self) -> float | None:
        """The step of the thread that opens what all threads share, as soon as it can, and keeps it open."""
        try:
            if not self._up.is_set() and not self.desk.draining.is_set():
                self._open()
                self._up.set()
        except LastingError as error:
            self._stop_for_good(error)
        except MACHINE_FAILURES:
            raise  # the loop tries again
        except SmtspoolError as error:
            self._stop_for_good(error)
        finally:
            self._attempted.set()
        return KEEP_SECONDS if self._up.is_set() else FINISHED

    def _open(self) -> None:
        if self._creates:
            self.campaign.create_store()
        presence = self._plate.presence()
        self._plate_loop.wake.set()
        with ExitStack() as stack:
            store = stack.enter_context(self.open_store(busy_timeout_s=START_BUSY_SECONDS))
            owner = stack.enter_context(store.register(presence))
            # Fork servers are started before threads, since starting a program is cheapest then.
            engines = stack.enter_context(Engines(self.settings, observe=self.increments.race))
            engines.recall(store)
            self._plate.engines = engines.names
            self._plate.port = stack.enter_context(self._exposed())
            stack.callback(engines.remember, store)
            self._start(owner.name, engines)
            stack.callback(self._join_all)
            stack.callback(engines.give_up)
            self._resources = stack.pop_all()
        self._plate.serving = True
        self._plate_loop.wake.set()
        log.info(
            "serving %s: %d workers, engines %s; SIGTERM or Ctrl-C drains",
            self.campaign.root,
            self.settings.jobs,
            ", ".join(engines.names),
        )

    @property
    def serving(self) -> bool:
        """Whether everything is open, so that queries are admitted and solved."""
        return self._up.is_set()

    def _exposed(self) -> AbstractContextManager[int | None]:
        exporter = Exporter(
            self.campaign,
            self.settings,
            self.desk,
            self.health,
            self.increments,
            open_store=self.open_store,
        )
        return exposed(self.settings.metrics_port, exporter)

    def _leave(self) -> None:
        self._resources.close()

    def _start(self, owner: str, engines: Engines) -> None:
        profiling = Profiling(
            self.campaign,
            self.settings,
            self.increments,
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
                open_portfolio=engines.portfolio,
                committed=publish.wake.set,
                prober=profiling.prober,
                clock=engines.clock,
            )
            for _ in range(self.settings.jobs)
        ]
        self._workers = [
            self._loop(f"worker-{number}", worker.step, worker.close)
            for number, worker in enumerate(workers, 1)
        ]
        admitter = Admitter(
            self.campaign,
            self.settings,
            self.desk,
            self.increments,
            consumer=owner,
            admits=self._admits,
            once=self._once,
            open_store=self.open_store,
            admitted=self._wake_workers,
        )
        heartbeat = Heartbeat(
            self.settings, self.desk, self.increments, open_store=self.open_store, clock=self._clock
        )
        self._publication = [publish]
        self._others = [
            self._loop("admission", admitter.step, admitter.close),
            self._loop("heartbeat", heartbeat.step, heartbeat.close),
            self._loop("engines", lambda: self._look_after(engines), lambda: None),
            profile,
        ]
        profiling.begin()
        self._begin()

    def _loop(
        self,
        name: str,
        step: Callable[[], float | None],
        leave: Callable[[], None],
        stop: threading.Event | None = None,
    ) -> Loop:
        return Loop(
            name,
            step,
            stop=stop or self._halt,
            health=self.health,
            defect=self._stop_for_good,
            leave=leave,
        )

    def _loops(self) -> list[Loop]:
        return self._workers + self._others + self._publication

    def _stop_for_good(self, error: Exception) -> None:
        self.health.fatal(error)
        self.stop()

    def _look_after(self, engines: Engines) -> float | None:
        pause = engines.look(self.health)
        self._plate.engines = engines.names
        return pause

    def _begin(self) -> None:
        """Start every loop, or none if the machine refuses a thread; then starting is tried again."""
        try:
            for loop in self._loops():
                loop.start()
        except InfrastructureError:
            self._halt.set()
            self.desk.cancel_all(CancelReason.CLOSED)
            for loop in self._loops():  # without the loop that runs this, which backs off
                loop.hurry()
            self._join()
            self._workers, self._others, self._publication = [], [], []
            if not self.desk.draining.is_set():  # else the end was asked for meanwhile
                self._halt.clear()
            raise

    def _join_all(self) -> None:
        self.stop()
        self._join()

    def _join(self) -> None:
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
        while self._keeper.is_alive() and not self._up.is_set():
            if self._clock() >= deadline:
                return False
            self._up.wait(min(JOIN_SECONDS, deadline - self._clock()))
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
        """Admit and claim nothing more. Running queries may finish and be published within ``drain_seconds``;
        after that they go back to the queue. Returns at once; :meth:`join` waits."""
        if self._drained_by is None:
            self._drained_by = self._clock() + self.settings.drain_seconds
        self.desk.draining.set()
        self._hurry_all()

    def stop(self) -> None:
        """Cancel what is being solved and end every loop. Returns at once."""
        self.desk.draining.set()
        self._halt.set()
        self.desk.cancel_all(CancelReason.CLOSED)
        self._hurry_all()

    def _wake_workers(self) -> None:
        for loop in self._workers:
            loop.wake.set()

    def _hurry_all(self) -> None:
        for loop in (self._keeper, *self._loops()):
            loop.hurry()
