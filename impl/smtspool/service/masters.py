"""Services on several hosts over one shared spool. Each has a master, whose qualification decides who admits.

Every host has its own store on its own disk. Hosts share ``out/`` and the spool, where the admission lock
admits one consumer at a time. So no database file is ever open on two hosts.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from smtspool.cluster import (
    Capability,
    Code,
    Communicator,
    Diagnostic,
    Host,
    Master,
    Position,
    QualificationAttempt,
    RenewalPlan,
    Rights,
    Stage,
    Time,
    contained,
    probe_directory,
)
from smtspool.files import Directory, read_stable, write_durable

from .campaign import Campaign
from .config import Settings
from .logs import flush_log
from .service import Service
from .signals import LOOK_SECONDS, obey

__all__ = ["MasteredService"]

log = logging.getLogger("smtspool")

IDENTITY = "identity"
IDENTITY_BYTES = 64
# A renewal must end before the leases expire that are renewed before it, so it gets this part of their time.
RENEWALS_PER_LEASE = 3
# How much longer than the drain of this rank those of the others may take.
GRACE_SECONDS = 5.0


@dataclass
class MasteredService:
    """One rank of a fleet: a master, and the service it lets run.

    Everything happens on the thread that calls :meth:`run`, the only one that uses MPI.
    """

    comm: Communicator
    campaign: Campaign
    settings: Settings
    processor_name: Callable[[], str]
    once: bool = False
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    service: Service | None = field(default=None, init=False)

    def run(self, received: list[int]) -> None:
        """Qualify, then serve until every service of the fleet has ended. ``received`` collects signals.

        Does not return if the fleet fails: Abort(65) before anything was admitted, Abort(70) later, after
        this rank's service has ended in order and the others had time to end theirs.
        """
        # Only the identity of the store is read here; its database is opened after all ranks have compared
        # theirs.
        self.campaign.store.mkdir(parents=True, exist_ok=True)
        master = self._master()
        rights = master.start()
        if rights is Rights.REFUSED:
            return  # only where Abort returns
        admits = master.view().admits
        log.info(
            "rank %s: %s; this one %s", master.rank, rights.value, "admits" if admits else "does not admit"
        )
        at = Position(Stage.SERVICE, rank=master.rank)
        with ExitStack() as stack:

            def serve() -> None:
                self.service = stack.enter_context(
                    Service(self.campaign, self.settings, once=self.once, admits=admits, creates=True)
                )
                self._take_turns(master, self.service, received)

            if master.fatal is None:
                contained("the service failed", at, serve, master.fail)
            if master.fatal is not None:
                master.shutdown(stack.close)

    def _master(self) -> Master:
        campaign, settings = self.campaign, self.settings

        def probed() -> Capability:
            return probe_directory(campaign.spool, publication_root=campaign.out)

        def heartbeat() -> int:
            return 0 if self.service is None else self.service.renew_leases()

        return Master(
            self.comm,
            Host(campaign.spool, probed, self.processor_name, keeps=_identity(campaign)),
            startup=QualificationAttempt(timeout=settings.qualify_seconds),
            plan=RenewalPlan(
                interval=settings.renew_seconds,
                timeout=min(settings.qualify_seconds, settings.lease_seconds / RENEWALS_PER_LEASE),
                jitter=settings.renew_jitter,
            ),
            heartbeat=heartbeat,
            say=_say,
            time=Time(self.clock, self.pause),
        )

    def _take_turns(self, master: Master, service: Service, received: list[int]) -> None:
        """Take turns until all services have ended, or the master has a fatal failure."""
        done_at: float | None = None
        while not master.ended and master.fatal is None:
            finished = service.join(LOOK_SECONDS)
            obey(service, received)
            if received:
                master.drain()
            if master.draining and not service.desk.draining.is_set():
                log.info("draining with the others")
                service.drain()
            if finished and done_at is None:
                done_at = self.clock()
                master.done()
            master.turn()
            if done_at is not None and not master.ended:
                self.pause(LOOK_SECONDS)
                patience = self.settings.drain_seconds + GRACE_SECONDS
                if master.draining and self.clock() > done_at + patience:
                    late = "the services of other ranks did not end"
                    master.fail(Diagnostic(Stage.SERVICE, Code.EXPIRED, master.rank, 0, late))


def _say(message: str) -> None:
    """Print a message at once, since Abort may end the process at any moment."""
    log.error(message)
    flush_log()


def _identity(campaign: Campaign) -> str:
    """The identity of this store, made once. If two hosts read the same one, they use the same folder."""
    with Directory.open(campaign.store) as store:
        if not store.exists(IDENTITY):
            name = os.urandom(IDENTITY_BYTES // 2).hex().encode()
            try:
                write_durable(store, IDENTITY, name, replace=False)
            except FileExistsError:
                log.debug("another service has just named this store")
        return read_stable(store, IDENTITY, IDENTITY_BYTES)[0].decode("ascii", "replace")
