"""What is counted in memory reaches the store, and outlives a store that refuses it."""

from __future__ import annotations

from functools import partial

import pytest

from smtspool.errors import InfrastructureError
from smtspool.service import Campaign, Settings
from smtspool.service.desk import Desk
from smtspool.service.heartbeat import IDLE_FLUSH_SECONDS, Heartbeat
from smtspool.service.increments import Increments
from smtspool.solve import RaceSummary
from smtspool.spool import Outcome, ScanReport
from smtspool.store import Store
from tests.service.support import locked

SCAN = ScanReport(Outcome.SCANNED, accepted=2, deferred=1)
IDLE = ScanReport(Outcome.IDLE, lock_wait_ns=1000)
BUSY = ScanReport(Outcome.BUSY, backlog=None, lock_wait_ns=1000)
RACE = RaceSummary("z3", ("bitwuzla", "z3"), 0.1, 1, False, 250.0)


def test_scans_and_races_add_up(store: Store) -> None:
    increments = Increments()
    for _ in range(2):
        increments.scan(SCAN)
        increments.race(RACE)
    increments.flush(store)
    counters = store.counters()
    assert counters["admission.scans.scanned"] == 2
    assert counters["admission.deferred"] == 2
    assert counters["races"] == counters["races.hedged"] == 2
    assert counters["races.seconds"] == 0.5


def test_what_was_flushed_is_not_counted_again(store: Store) -> None:
    increments = Increments()
    increments.scan(SCAN)
    increments.flush(store)
    increments.flush(store)
    assert store.counters()["admission.deferred"] == 1


def test_a_refused_flush_loses_nothing(campaign: Campaign) -> None:
    increments = Increments()
    increments.scan(SCAN)
    with Store.open(campaign.store, busy_timeout_s=0.01) as store:
        with locked(campaign), pytest.raises(InfrastructureError):
            increments.flush(store)
        increments.scan(SCAN)
        increments.flush(store)
        assert store.counters()["admission.deferred"] == 2


def test_an_idle_service_writes_nothing_but_once_a_minute(campaign: Campaign, store: Store) -> None:
    now = 1000.0
    increments = Increments()
    open_store = partial(Store.open, campaign.store)
    heartbeat = Heartbeat(Settings(), Desk(), increments, open_store=open_store, clock=lambda: now)

    def beat(*reports: ScanReport) -> float:
        """How many idle scans the store knows of afterwards."""
        for report in reports:
            increments.scan(report)
        heartbeat.step()
        return store.counters().get("admission.scans.idle", 0)

    assert beat(IDLE) == 1
    assert beat(IDLE, BUSY) == beat(IDLE) == 1
    assert beat(IDLE, SCAN) == 4
    now += IDLE_FLUSH_SECONDS / 2
    assert beat(IDLE) == 4
    now += IDLE_FLUSH_SECONDS / 2
    assert beat(IDLE) == 6
    assert beat(IDLE) == 6
    heartbeat.close()
    assert store.counters()["admission.scans.idle"] == 7
