"""Workers: one answer per lease, and no lease left behind whatever goes wrong."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from smtspool.errors import InfrastructureError
from smtspool.query import Answer, Query, Status
from smtspool.service import Campaign, Settings
from smtspool.service.desk import Desk
from smtspool.service.engines import Engines
from smtspool.service.heartbeat import Heartbeat
from smtspool.service.increments import Increments
from smtspool.service.loops import FINISHED
from smtspool.service.worker import BATCH_SECONDS, CLAIM_LIMIT, Worker
from smtspool.solve import CancelReason, Portfolio
from smtspool.store import Owner, Patience, Store
from tests.service.support import ODD_ENGINE, PATIENCE_S, Z3, locked, query, until
from tests.solve.refusals import no_more_threads

SETTINGS = Settings(jobs=1, engines=("bitwuzla", "z3"), max_deaths=2, lease_seconds=1000.0)


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    with Engines(SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def odd_engines() -> Iterator[Engines]:
    with Engines(replace(SETTINGS, engines=(ODD_ENGINE,))) as running:
        yield running


@pytest.fixture
def owner(store: Store) -> Iterator[Owner]:
    with store.register() as registered:
        yield registered


class Bench:
    """One worker, on this thread unless told otherwise."""

    def __init__(self, campaign: Campaign, engines: Engines, owner: Owner, **options: object) -> None:
        self.desk = Desk()
        self.desk.admitted_all.set()
        self.commits = 0
        patience = Patience(deaths=SETTINGS.max_deaths)
        defaults: dict[str, object] = {
            "open_store": lambda: Store.open(campaign.store, patience=patience, busy_timeout_s=0.05),
            "open_portfolio": engines.portfolio,
            "committed": self._count,
        }
        self.worker = Worker(owner.name, SETTINGS, self.desk, **(defaults | options))  # type: ignore[arg-type]

    def _count(self) -> None:
        self.commits += 1

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.worker.close()

    def finish(self) -> None:
        while self.worker.step() is not FINISHED:
            pass


def status_of(store: Store, identity: str) -> Status | None:
    result = store.result(identity)
    return None if result is None else result.answer.status


def test_it_answers_everything_and_ends(
    campaign: Campaign, store: Store, engines: Engines, owner: Owner
) -> None:
    sats, unsats = [query(1), query(2)], [query(3, against=4)]
    store.ingest([*sats, *unsats])
    with Bench(campaign, engines, owner) as bench:
        bench.finish()
        assert bench.commits > 0
        assert bench.desk.held() == []
    for asked in sats:
        result = store.result(asked.id)
        assert result is not None
        assert result.answer.status is Status.SAT
        assert result.answer.verified_by not in (None, result.answer.engine)
    assert status_of(store, unsats[0].id) is Status.UNSAT


def test_what_one_engine_calls_an_error_is_told_beside_the_answer_of_another(
    campaign: Campaign, store: Store, owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    strange = query(1, name="strange", against=2)
    store.ingest([strange])
    leader = ODD_ENGINE.replace("odd=", "bitwuzla=")
    with (
        Engines(replace(SETTINGS, engines=(leader, "z3"))) as engines,
        Bench(campaign, engines, owner) as bench,
    ):
        bench.finish()
    result = store.result(strange.id)
    assert result is not None
    assert result.answer.status is Status.UNSAT
    assert [attempt.status for attempt in result.answer.attempts] == [Status.ERROR, Status.UNSAT]
    assert f"query {strange.id}: unsat, but an engine reports an error: bitwuzla: " in caplog.text


def test_equal_forms_are_solved_once_and_the_reused_model_is_verified(
    campaign: Campaign, store: Store, engines: Engines, owner: Owner
) -> None:
    first, second = query(7, name="x"), query(7, name="y")
    store.ingest([first, second])
    with Bench(campaign, engines, owner) as bench:
        bench.finish()
    reused = {asked.id: store.result(asked.id) for asked in (first, second)}
    sources = [result.answer.reused_from for result in reused.values() if result is not None]
    assert sorted(sources, key=str) == sorted([None, first.id], key=str)
    second_result = reused[second.id]
    assert second_result is not None
    assert second_result.answer.verified_by is not None
    assert second_result.answer.model == {"y": "#x07"} or second_result.answer.model == {"y": "#b00000111"}


def test_an_offered_model_that_fails_is_refuted_and_the_query_solved(
    campaign: Campaign, store: Store, engines: Engines, owner: Owner
) -> None:
    first, second = query(7, name="x"), query(7, name="y")
    store.ingest([first])
    [lease] = store.claim(owner.name, 60, 1)
    lie = Answer(Status.SAT, {"x": "#x08"}, engine="z3", verified_by="bitwuzla")
    assert store.complete([(lease, lie)]) == [True]
    store.ingest([second])
    with Bench(campaign, engines, owner) as bench:
        bench.finish()
    result = store.result(second.id)
    assert result is not None
    assert result.answer.status is Status.SAT
    assert result.answer.reused_from is None
    assert store.counters()["reuse.refuted"] == 1


def test_a_query_that_kills_its_helpers_is_parked_with_their_last_words(
    campaign: Campaign, store: Store, odd_engines: Engines, owner: Owner
) -> None:
    deadly, harmless = query(1, name="poison", against=2), query(3, against=4)
    store.ingest([deadly, harmless])
    with Bench(campaign, odd_engines, owner) as bench:
        bench.finish()
        result = store.result(deadly.id)
        assert result is not None
        assert result.answer.status is Status.ERROR
        assert result.answer.reason is not None
        assert "2 helpers died of it" in result.answer.reason
        assert "it was the poison" in result.answer.reason
        assert status_of(store, harmless.id) is Status.UNSAT
        assert store.counters()["deaths"] == 2
        assert store.retry(deadly.id)
        assert store.counts().pending == 1
        bench.finish()
    assert store.counters()["deaths"] == 4


def test_a_query_whose_external_engine_was_killed_once_is_asked_again(
    campaign: Campaign, store: Store, owner: Owner, tmp_path: Path
) -> None:
    once = f'if grep -q unlucky "$0" && mkdir {tmp_path}/killed 2>/dev/null; then kill -9 $$; fi'
    engine = f"mortal=sh -c '{once}; exec {Z3} \"$0\"' {{query}}"
    unlucky = query(1, name="unlucky", against=2)
    store.ingest([unlucky])
    with (
        Engines(replace(SETTINGS, engines=(engine,))) as engines,
        Bench(campaign, engines, owner) as bench,
    ):
        bench.finish()
    assert status_of(store, unlucky.id) is Status.UNSAT
    assert store.counters()["deaths"] == 1


def test_a_lost_lease_cancels_the_solve_and_commits_nothing(
    campaign: Campaign, store: Store, odd_engines: Engines, owner: Owner
) -> None:
    endless = query(1, name="slow", against=2)
    store.ingest([endless])
    with Bench(campaign, odd_engines, owner) as bench:
        step = threading.Thread(target=bench.finish)
        step.start()
        until(bench.desk.held, "a lease")
        [held] = bench.desk.held()
        assert store.release([held]) == 1  # as if it had expired ...
        store.ingest([endless])
        [stolen] = store.claim(owner.name, 60, 1)  # ... and somebody else had taken it
        reopen = partial(Store.open, campaign.store)
        heartbeat = Heartbeat(SETTINGS, bench.desk, Increments(), open_store=reopen)
        heartbeat.step()
        heartbeat.close()
        until(lambda: not bench.desk.held(), "the end of the solve")
        assert store.complete([(stolen, Answer(Status.UNSAT, engine="z3"))]) == [True]
        step.join(PATIENCE_S)
        assert not step.is_alive()
    result = store.result(endless.id)
    assert result is not None
    assert result.answer.engine == "z3"
    assert store.counters().get("stale", 0) == 0


def test_leases_are_renewed_and_counters_written_although_nobody_can_see_who_is_dead(
    campaign: Campaign, store: Store, owner: Owner
) -> None:
    store.ingest([query(1)])
    desk = Desk()
    desk.hold(store.claim(owner.name, 60, 1))
    with store.register() as other:
        lock = campaign.store / "owners" / f"{other.name.rsplit(':', 1)[1]}.lock"
        lock.unlink()
        os.mknod(lock, stat.S_IFSOCK | 0o600)  # which cannot be opened
        counted = Increments()
        counted.add({"probes": 1})
        heartbeat = Heartbeat(SETTINGS, desk, counted, open_store=partial(Store.open, campaign.store))
        with pytest.raises(InfrastructureError, match="whether an owner lives"):
            heartbeat.step()
        assert store.counters()["probes"] == 1
        heartbeat.close()
    with closing(sqlite3.connect(campaign.store / "index.sqlite3")) as index:
        [(deadline,)] = index.execute("SELECT deadline FROM queries").fetchall()
    assert deadline > desk.held()[0].deadline + SETTINGS.lease_seconds / 2


def _used_up(campaign: Campaign) -> list[tuple[str, int, int]]:
    """State, attempts and deaths of every query, in the order of their rows."""
    with closing(sqlite3.connect(campaign.store / "index.sqlite3")) as index:
        return index.execute("SELECT state, attempts, deaths FROM queries ORDER BY number").fetchall()


def test_a_machine_that_refuses_threads_costs_no_query_an_attempt(
    campaign: Campaign, store: Store, engines: Engines, owner: Owner
) -> None:
    store.ingest([query(5)])
    refusals = iter([True] * (Patience().attempts + 1))

    class Refused:
        """Every thread, for more attempts than a query has."""

        def __init__(self, portfolio: Portfolio) -> None:
            self._portfolio = portfolio
            self.verify, self.close = portfolio.verify, portfolio.close

        def solve(self, *args: object, **options: object) -> Answer:
            with no_more_threads() if next(refusals, False) else nullcontext():
                return self._portfolio.solve(*args, **options)  # type: ignore[arg-type]

    with Bench(campaign, engines, owner, open_portfolio=lambda: Refused(engines.portfolio())) as bench:
        for _ in range(Patience().attempts + 1):
            with pytest.raises(InfrastructureError, match="refuses one more thread"):
                bench.worker.step()
        assert _used_up(campaign) == [("pending", 0, 0)]
        bench.finish()
    assert status_of(store, query(5).id) is Status.SAT


def test_a_query_that_always_meets_a_failure_of_the_machine_holds_up_no_other(
    campaign: Campaign, store: Store, engines: Engines, owner: Owner
) -> None:
    large, others = query(1, name="large"), [query(value) for value in range(2, 9)]
    store.ingest([large, *others])

    class Short:
        """Of memory, for one query."""

        def __init__(self, portfolio: Portfolio) -> None:
            self._portfolio = portfolio
            self.verify, self.close = portfolio.verify, portfolio.close

        def solve(self, asked: Query, **options: object) -> Answer:
            if asked.id == large.id:
                raise MemoryError
            return self._portfolio.solve(asked, **options)  # type: ignore[arg-type]

    with Bench(campaign, engines, owner, open_portfolio=lambda: Short(engines.portfolio())) as bench:
        for _ in range(4 * len(others)):
            with suppress(MemoryError):
                bench.worker.step()
    assert [state for state, _, _ in _used_up(campaign)] == ["pending"] + ["done"] * len(others)
    assert _used_up(campaign)[0] == ("pending", 0, 0)


def test_a_cancelled_query_that_the_store_refuses_to_take_back_is_given_back_later(
    campaign: Campaign, store: Store, engines: Engines, owner: Owner
) -> None:
    store.ingest([query(5)])
    lock = locked(campaign)

    class Cancelled:
        """Is cancelled while it solves, and then the store is locked."""

        def __init__(self, portfolio: Portfolio) -> None:
            self.close = portfolio.close

        def solve(self, *args: object, **options: object) -> Answer:
            bench.desk.cancel_all(CancelReason.CLOSED)
            lock.__enter__()
            return Answer(Status.UNKNOWN, reason="cancelled: closed")

    with Bench(campaign, engines, owner, open_portfolio=lambda: Cancelled(engines.portfolio())) as bench:
        with pytest.raises(InfrastructureError):
            bench.worker.step()
        lock.__exit__(None, None, None)
        bench.desk.draining.set()
        assert bench.worker.step() is FINISHED
        assert bench.desk.held() == []
        assert store.counts().pending == 1


def test_a_stopped_solve_goes_back_to_the_queue_and_its_attempt_does_not_count(
    campaign: Campaign, store: Store, odd_engines: Engines, owner: Owner
) -> None:
    store.ingest([query(number, name="slow", against=0) for number in range(1, 5)])
    with Bench(campaign, odd_engines, owner) as bench:
        step = threading.Thread(target=bench.finish)
        step.start()
        until(bench.desk.held, "a lease")
        bench.desk.draining.set()
        bench.desk.cancel_all(CancelReason.CLOSED)
        step.join(PATIENCE_S)
        assert not step.is_alive()
    assert store.counts().pending == store.counts().open
    assert {lease.attempts for lease in store.claim(owner.name, 60, 10)} == {1}


def test_a_locked_store_loses_no_answer(
    campaign: Campaign, store: Store, engines: Engines, owner: Owner
) -> None:
    store.ingest([query(5)])
    solved = threading.Event()

    class Watched:
        """Locks the store between the answer and its commit."""

        def __init__(self, portfolio: Portfolio) -> None:
            self._portfolio = portfolio
            self.verify, self.close = portfolio.verify, portfolio.close

        def solve(self, *args: object, **options: object) -> Answer:
            answer = self._portfolio.solve(*args, **options)  # type: ignore[arg-type]
            lock.__enter__()
            solved.set()
            return answer

    lock = locked(campaign)
    with Bench(campaign, engines, owner, open_portfolio=lambda: Watched(engines.portfolio())) as bench:
        with pytest.raises(InfrastructureError):
            bench.worker.step()
        assert len(bench.desk.held()) == 1  # so it is still renewed
        lock.__exit__(None, None, None)
        bench.finish()
        assert bench.desk.held() == []
    assert status_of(store, query(5).id) is Status.SAT
    assert store.counters().get("stale", 0) == 0


def test_without_helpers_the_leases_go_back_and_nothing_is_used_up(
    campaign: Campaign, store: Store, owner: Owner
) -> None:
    store.ingest([query(number) for number in range(4)])

    def broken() -> Portfolio:
        raise InfrastructureError("no helper process")

    with (
        Bench(campaign, Engines(SETTINGS), owner, open_portfolio=broken) as bench,
        pytest.raises(InfrastructureError),
    ):
        bench.worker.step()
    assert store.counts().pending == store.counts().open
    assert {lease.attempts for lease in store.claim(owner.name, 60, 10)} == {1}


def test_a_worker_takes_a_fair_part_of_a_short_queue(
    campaign: Campaign, store: Store, engines: Engines, owner: Owner
) -> None:
    claimed: list[int] = []

    class Claims(Desk):
        def hold(self, leases: object) -> None:
            claimed.append(len(leases))  # type: ignore[arg-type]
            super().hold(leases)  # type: ignore[arg-type]

    store.ingest([query(number) for number in range(100)])
    bench = Bench(campaign, engines, owner)
    bench.desk = Claims()
    with bench:
        bench.worker = Worker(
            owner.name,
            replace(SETTINGS, jobs=4),
            bench.desk,
            open_store=lambda: Store.open(campaign.store),
            open_portfolio=engines.portfolio,
            committed=lambda: None,
        )
        while store.counts().open:
            bench.worker.step()
    assert claimed[0] == 12  # of a hundred, for the first of four
    assert claimed[-1] == 1
    assert max(claimed) <= CLAIM_LIMIT


def test_a_slow_query_sends_the_rest_of_the_batch_back(
    campaign: Campaign, store: Store, engines: Engines, owner: Owner
) -> None:
    # A clock that says the first answer took too long.
    ticks = iter([0.0, 0.0, *([2 * BATCH_SECONDS] * 100)])
    store.ingest([query(number) for number in range(20)])
    with Bench(campaign, engines, owner, clock=lambda: next(ticks)) as bench:
        bench.worker.step()
        assert bench.desk.held() == []
    assert store.counts().leased == 0
    assert store.counts().done == 1
