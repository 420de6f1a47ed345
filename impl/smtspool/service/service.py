"""The service: admission, workers, heartbeat and publication over one campaign.

::

    with Service(Campaign.open(path), settings) as service:
        ...
        service.drain()

Threads, each owning what it opens: ``admission`` (spool to store), ``worker-N`` (claim, race, commit),
``heartbeat`` (renew leases, release those of dead owners), ``publication`` (outbox to files). Several
services may run on one campaign; each is one *owner* to the store.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from smtspool.solve import CancelReason
from smtspool.store import Backoff, Patience, Store

from .admission import Admission
from .campaign import Campaign
from .config import Settings
from .desk import Desk
from .fleet import Fleet
from .heartbeat import Heartbeat
from .loops import Health, Loop
from .publisher import Publisher
from .telemetry import Telemetry
from .worker import Worker

__all__ = ["Service"]

log = logging.getLogger("smtspool")


class Service:
    """All threads of one service process over one campaign; they start when it is entered.

    With ``once`` it ends by itself: the spool is empty, every query has a result, every result is published.
    Otherwise :meth:`drain` ends it in order and :meth:`stop` at once; either way what is not answered goes
    back to the queue, and when the ``with`` block ends no thread, process, lock or descriptor is left.
    A Service belongs to the thread that enters it, :meth:`drain` and :meth:`stop` to any.
    """

    def __init__(self, campaign: Campaign, settings: Settings, *, once: bool = False) -> None:
        self.campaign = campaign
        self.settings = settings
        self.health = Health()
        self.desk = Desk()
        self.telemetry = Telemetry()
        self._once = once
        self._halt = threading.Event()
        self._resources = ExitStack()
        self._workers: list[Loop] = []
        self._others: list[Loop] = []

    def open_store(self) -> Store:
        """A connection for the calling thread, with the patience of this service's settings."""
        return Store.open(
            self.campaign.store,
            patience=Patience(attempts=self.settings.max_attempts, deaths=self.settings.max_deaths),
            backoff=Backoff(failures=self.settings.publication_attempts),
        )

    # -- life -------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            store = stack.enter_context(self.open_store())
            owner = stack.enter_context(store.register())
            # Fork servers before threads: they are programs of their own, and cheap to start early.
            fleet = stack.enter_context(Fleet(self.settings, observe=self.telemetry.race))
            fleet.recall(store)
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
            once=self._once,
            open_store=self.open_store,
            admitted=self._wake_workers,
        )
        heartbeat = Heartbeat(self.settings, self.desk, self.telemetry, open_store=self.open_store)
        self._others = [
            self._loop("admission", admission.step, admission.close),
            self._loop("heartbeat", heartbeat.step, heartbeat.close),
            publish,
        ]
        for loop in self._loops():
            loop.start()

    def _loop(self, name: str, step: Callable[[], float | None], leave: Callable[[], None]) -> Loop:
        return Loop(name, step, stop=self._halt, health=self.health, leave=leave)

    def _loops(self) -> list[Loop]:
        return self._workers + self._others

    def _end(self) -> None:
        self.stop()
        for loop in self._loops():
            if loop.ident is not None:
                loop.join()

    # -- ending -----------------------------------------------------------------------------------------

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until a ``once`` service has done everything; True if it has, False after ``timeout_s``.

        Raises the error that stopped the service, if one did.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        for loops, done in ((self._workers, self.desk.solved_all), (self._others[-1:], self._halt)):
            for loop in loops:
                loop.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
                if loop.is_alive():
                    return False
            done.set()
            self._wake_all()
        if self.health.fatal_error is not None:
            raise self.health.fatal_error
        return True

    def drain(self) -> None:
        """Claim nothing more; what is being solved may finish for ``drain_seconds``, then it goes back."""
        self.desk.draining.set()
        self._wake_all()
        deadline = time.monotonic() + self.settings.drain_seconds
        for loop in self._workers:
            loop.join(max(0.0, deadline - time.monotonic()))
        self.stop()

    def stop(self) -> None:
        """Cancel what is being solved and end every loop. Does not wait."""
        self.desk.draining.set()
        self._halt.set()
        self.desk.cancel_all(CancelReason.CLOSED)
        self._wake_all()

    def _wake_workers(self) -> None:
        for loop in self._workers:
            loop.wake.set()

    def _wake_all(self) -> None:
        for loop in self._loops():
            loop.wake.set()
