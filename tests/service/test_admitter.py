"""Admission as a loop takes it: what is deferred; and by a service that may not admit, which waits for the
owner of the spool, but not for ever."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import Any

import pytest

from smtspool.actions import Step, observed_by
from smtspool.errors import InfrastructureError
from smtspool.files import Directory
from smtspool.service import Campaign, Service, Settings
from smtspool.service import admitter as module
from smtspool.service.admitter import OWNER_PATIENCE_SECONDS, Admitter
from smtspool.service.desk import Desk
from smtspool.service.increments import Increments
from smtspool.service.loops import FINISHED
from smtspool.spool import ScanReport, Spool
from smtspool.store import Store
from tests.clock import Clock
from tests.service.support import PATIENCE_S, answers, equation, query, submit
from tests.store.support import in_child

SETTINGS = Settings(jobs=1, engines=("bitwuzla", "z3"), poll_seconds=0.05)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def desk() -> Desk:
    return Desk()


def admission(
    campaign: Campaign, desk: Desk, settings: Settings = SETTINGS, **how: Any
) -> AbstractContextManager[Admitter]:
    opened = Admitter(
        campaign,
        settings,
        desk,
        Increments(),
        consumer="test",
        open_store=lambda: Store.open(campaign.store),
        admitted=lambda: None,
        **how,
    )
    return closing(opened)


@pytest.fixture
def follower(campaign: Campaign, desk: Desk, clock: Clock) -> Iterator[Callable[[], float | None]]:
    """The step of a service that does not admit."""
    with admission(campaign, desk, clock=clock, admits=False, once=True) as admits_not:
        yield admits_not.step


def take(campaign: Campaign, name: str) -> None:
    """What the owner of the spool does with a file in the end."""
    incoming = campaign.spool / "incoming" / name
    incoming.rename(campaign.spool / "accepted" / name)


def test_it_ends_with_the_spool_empty(
    campaign: Campaign, follower: Callable[[], float | None], desk: Desk
) -> None:
    submit(campaign, a=equation(1))
    assert follower() == SETTINGS.poll_seconds
    assert not desk.admitted_all.is_set()
    take(campaign, "a.smt2")
    assert follower() is FINISHED
    assert desk.admitted_all.is_set()


def test_it_ends_when_nobody_takes_what_is_left(
    campaign: Campaign,
    follower: Callable[[], float | None],
    desk: Desk,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    submit(campaign, a=equation(1))
    follower()
    clock.advance(OWNER_PATIENCE_SECONDS)
    submit(campaign, late=equation(2))
    assert follower() is FINISHED
    assert desk.admitted_all.is_set()
    assert "2 spool files" in caplog.text


def test_it_waits_as_long_as_the_owner_gets_on(
    campaign: Campaign, follower: Callable[[], float | None], clock: Clock
) -> None:
    submit(campaign, a=equation(1), b=equation(2), c=equation(3))
    follower()
    for name in ("a.smt2", "b.smt2"):
        clock.advance(OWNER_PATIENCE_SECONDS - 1)
        take(campaign, name)
        assert follower() == SETTINGS.poll_seconds
    clock.advance(OWNER_PATIENCE_SECONDS)
    assert follower() is FINISHED


def test_what_its_store_has_is_solved_whatever_the_spool_has(
    campaign: Campaign, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OWNER_PATIENCE_SECONDS", 0.1)
    store.ingest([query(1)])
    submit(campaign, left=equation(2))
    with Service(campaign, SETTINGS, once=True, admits=False) as service:
        assert service.join(PATIENCE_S)
    assert answers(campaign) == {query(1).id: "sat"}


@pytest.mark.parametrize(
    ("once", "pauses", "waits"),
    [(False, [0] * 6, [0.05, 0.1, 0.2, 0.4, 0.5, 0.5]), (True, [0.05] * 6, [])],
)
def test_what_is_deferred_again_and_again_is_looked_at_less_often(
    campaign: Campaign,
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
    once: bool,
    pauses: list[float],
    waits: list[float],
) -> None:
    scan, waited = Spool.scan, list[float]()

    def stuck(self: Spool, *arguments: Any, **named: Any) -> ScanReport:
        return replace(scan(self, *arguments, **named), deferred=1, backlog=1)

    monkeypatch.setattr(Spool, "scan", stuck)
    monkeypatch.setattr(Spool, "wait", lambda self, timeout_s, stop: waited.append(timeout_s))
    settings = replace(SETTINGS, poll_seconds=0.5)
    with admission(campaign, desk, settings, admits=True, once=once) as owner:
        assert [owner.step() for _ in pauses] == pauses
    assert waited == waits


class KilledAt:
    """An observer of the protocol's steps that kills its own process at one of them."""

    def __init__(self, name: str) -> None:
        self._name = name

    def before(self, step: Step) -> None:
        if step.name == self._name:
            os.kill(os.getpid(), signal.SIGKILL)

    def after(self, step: Step) -> None:
        pass


@pytest.mark.parametrize("step", ["Commit", "WriteSidecar", "Move", "Release"])
def test_files_are_recorded_and_counted_once_whenever_their_service_is_killed(
    campaign: Campaign, desk: Desk, step: str
) -> None:
    submit(campaign, a=equation(1), b=equation(1), c=equation(2) + "(check-sat)", d="(assert")

    def admit_until_killed() -> int:
        with observed_by(KilledAt(step)), admission(campaign, desk, admits=True, once=True) as admitting:
            admitting.step()
        return 0

    assert in_child(admit_until_killed) == -signal.SIGKILL
    with admission(campaign, desk, admits=True, once=True) as admitting:
        admitting.step()
    with Store.open(campaign.store) as store:
        counters = store.counters()
        found = store.submissions(query(1).id)
        assert {(one.file, one.number) for one in found.listed} == {("a.smt2", 1), ("b.smt2", 1)}
        assert found.total == 2
        assert store.submissions(query(2).id).total == 2
    assert (counters["admission.accepted"], counters["admission.latency_count"]) == (3, 3)
    assert counters["admission.rejected"] == 1


def test_what_a_pass_did_before_it_failed_is_counted(
    campaign: Campaign, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full from the first move on: the queries are committed, one bad file is quarantined."""
    submit(campaign, a="(assert", b=equation(1))
    rename = Directory.rename

    def rename_or_fail(self: Directory, name: str, to: Directory, new_name: str) -> None:
        if name == "b.smt2":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rename(self, name, to, new_name)

    monkeypatch.setattr(Directory, "rename", rename_or_fail)
    with admission(campaign, desk, admits=True, once=True) as admitting, pytest.raises(InfrastructureError):
        admitting.step()
    with Store.open(campaign.store) as store:
        counters = store.counters()
    assert (counters["admission.accepted"], counters["admission.latency_count"]) == (1, 1)
    assert counters["admission.rejected"] == 1
