"""The service as a library: it ends when it should, and a defect ends it at once."""

from __future__ import annotations

import shutil
import threading
from contextlib import nullcontext

import pytest

from smtspool.errors import LastingError, MisuseError
from smtspool.service import Campaign, Service, Settings
from smtspool.service.engines import Engines
from smtspool.service.loops import Loop
from smtspool.service.publisher import Publisher
from smtspool.store import Store
from tests.service.support import ODD_ENGINE, PATIENCE_S, answers, equation, locked, submit, until
from tests.solve.refusals import no_more_threads

SETTINGS = Settings(jobs=1, engines=("bitwuzla", "z3"), poll_seconds=0.05)


def test_once_answers_and_publishes_everything_and_ends(campaign: Campaign) -> None:
    submit(campaign, a=equation(1), b=equation(2, against=3))
    with Service(campaign, SETTINGS, once=True) as service:
        until(lambda: service.join(0.1), "the end")
    assert sorted(answers(campaign).values()) == ["sat", "unsat"]
    assert len(list((campaign.out / "results").iterdir())) == 2


def test_once_with_nothing_to_do_ends(campaign: Campaign) -> None:
    with Service(campaign, SETTINGS, once=True) as service:
        assert service.join(PATIENCE_S)


def test_without_a_store_it_ends_at_once_and_says_what_makes_one(campaign: Campaign) -> None:
    shutil.rmtree(campaign.store)
    with pytest.raises(MisuseError, match="smtspool init"), Service(campaign, SETTINGS):
        pass


def test_join_says_false_when_the_time_is_over(campaign: Campaign) -> None:
    with Service(campaign, SETTINGS) as service:
        assert service.join(0.01) is False


def test_drain_lets_what_was_answered_be_published(campaign: Campaign) -> None:
    submit(campaign, a=equation(1))
    with Service(campaign, SETTINGS) as service:
        until(lambda: answers(campaign))
        service.drain()
        until(lambda: service.join(0.1), "the end")
        with service.open_store() as store:
            assert store.counts().publications_published == 1


def test_drain_turns_into_stop_when_its_time_is_over(campaign: Campaign) -> None:
    submit(campaign, a=equation(1, name="slow", against=2))
    settings = Settings(jobs=1, engines=(ODD_ENGINE,), timeout_ms=1_000_000, drain_seconds=0.1)
    with Service(campaign, settings) as service:
        until(service.desk.held, "a lease")
        service.drain()
        until(lambda: service.join(0.1), "the end")
        with service.open_store() as store:
            assert store.counts().pending == 1


def test_a_defect_stops_everything_and_is_raised_by_join(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def defective(self: Publisher) -> float:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(Publisher, "step", defective)
    submit(campaign, a=equation(1, name="slow", against=2))
    settings = Settings(jobs=2, engines=(ODD_ENGINE,), timeout_ms=1_000_000)
    with Service(campaign, settings) as service, pytest.raises(ZeroDivisionError):
        until(lambda: service.join(0.1), "the end")
    assert "please report it" in caplog.text
    assert {thread.name for thread in threading.enumerate() if "worker" in thread.name} == set()


def test_what_was_learnt_about_engines_serves_the_next_service(campaign: Campaign) -> None:
    submit(campaign, a=equation(1))
    with Service(campaign, SETTINGS, once=True) as service:
        until(lambda: service.join(0.1), "the end")
    with Store.open(campaign.store) as store, Engines(SETTINGS) as engines:
        assert store.get("hedging")
        engines.recall(store)
        assert engines.policy.to_json() == store.get("hedging")


def test_unusable_knowledge_is_said_and_forgotten(
    campaign: Campaign, caplog: pytest.LogCaptureFixture
) -> None:
    submit(campaign, a=equation(1))
    service = Service(campaign, SETTINGS, once=True)
    with service.open_store() as store:
        store.put("hedging", {"QF_BV/3": "nonsense"})
    with service:
        until(lambda: service.join(0.1), "the end")
    assert "unusable" in caplog.text
    assert list(answers(campaign).values()) == ["sat"]


def test_a_thread_that_is_refused_at_the_start_is_asked_for_again_after_a_while(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start, hurry, refusals = Loop.start, Loop.hurry, iter([True, True])
    hurried: list[str] = []

    def told(loop: Loop) -> None:
        hurried.append(loop.name)
        hurry(loop)

    def refused(loop: Loop) -> None:
        assert "start" not in hurried  # it backs off
        with no_more_threads() if loop.name == "heartbeat" and next(refusals, False) else nullcontext():
            start(loop)

    monkeypatch.setattr(Loop, "hurry", told)
    monkeypatch.setattr(Loop, "start", refused)
    submit(campaign, a=equation(1))
    with Service(campaign, SETTINGS, once=True) as service:
        until(lambda: service.join(0.1), "the end")
    assert caplog.text.count("refuses one more thread") == 2
    assert list(answers(campaign).values()) == ["sat"]


@pytest.mark.parametrize("damage", ["cut", "overwritten"])
def test_a_damaged_store_ends_it_at_once_and_says_what_saves_it(campaign: Campaign, damage: str) -> None:
    index = campaign.store / "index.sqlite3"
    with index.open("r+b") as file:
        if damage == "cut":
            file.truncate(index.stat().st_size // 2)
        else:
            file.write(b"not a database")
    with pytest.raises(LastingError, match="smtspool salvage"), Service(campaign, SETTINGS, once=True):
        pass
    assert list((campaign.store / "owners").iterdir()) == []


def test_a_store_that_is_locked_is_waited_for(campaign: Campaign) -> None:
    with locked(campaign), Service(campaign, SETTINGS, once=True) as service:
        until(service.health.ailing, "the failure")
        assert service.join(0.01) is False
