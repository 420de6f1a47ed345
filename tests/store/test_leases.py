"""Leases are fenced: only the owner of the latest token, before its deadline, changes anything."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from smtspool.errors import MisuseError
from smtspool.query import Query, Status
from smtspool.store import Lease, Order, Patience, Store
from tests.clock import Clock
from tests.store.support import LEASE_S, UNSAT, query, sat


def claim(store: Store, owner: str = "w", limit: int = 1) -> list[Lease]:
    return store.claim(owner, LEASE_S, limit, Order.FIFO)


def test_a_claim_takes_a_query_from_everybody_else(store: Store, clock: Clock) -> None:
    store.ingest([query(1)])
    (lease,) = claim(store)
    assert (lease.query, lease.owner, lease.token, lease.attempts) == (query(1), "w", 1, 1)
    assert lease.deadline == clock.seconds + LEASE_S
    assert claim(store, "other") == []
    assert store.counts().leased == 1


def test_an_expired_lease_is_handed_out_again_with_a_higher_token(store: Store, clock: Clock) -> None:
    store.ingest([query(1)])
    (first,) = claim(store)
    clock.advance(LEASE_S)
    (second,) = claim(store, "other")
    assert (second.token, second.attempts) == (first.token + 1, 2)
    assert store.counters()["expired"] == 1


def test_a_completion_after_the_deadline_is_stale(store: Store, clock: Clock) -> None:
    store.ingest([query(1)])
    (lease,) = claim(store)
    clock.advance(LEASE_S)
    assert store.complete([(lease, UNSAT)]) == [False]
    assert store.result(query(1).id) is None
    assert store.counters()["stale"] == 1


def test_a_stale_completion_never_overwrites(store: Store, clock: Clock) -> None:
    store.ingest([query(1)])
    (late,) = claim(store)
    clock.advance(LEASE_S)
    (current,) = claim(store, "other")
    assert store.complete([(late, UNSAT)]) == [False]
    assert store.complete([(current, sat(current))]) == [True]
    assert store.complete([(late, UNSAT), (current, UNSAT)]) == [False, False]
    result = store.result(query(1).id)
    assert result is not None and result.answer.status is Status.SAT


def test_a_forged_owner_or_token_is_stale(store: Store) -> None:
    store.ingest([query(1)])
    (lease,) = claim(store)
    for forged in (replace(lease, owner="thief"), replace(lease, token=2), replace(lease, number=99)):
        assert store.complete([(forged, UNSAT)]) == [False]
        assert store.renew([forged], LEASE_S) == []
        assert store.release([forged]) == 0
        assert not store.fail(forged, "forged", helper_died=True)
    assert store.complete([(lease, UNSAT)]) == [True]


def test_renewal_moves_the_deadline_and_keeps_the_token(store: Store, clock: Clock) -> None:
    store.ingest([query(1)])
    (lease,) = claim(store)
    clock.advance(LEASE_S - 1)
    (renewed,) = store.renew([lease], LEASE_S)
    assert (renewed.token, renewed.deadline) == (lease.token, clock.seconds + LEASE_S)
    clock.advance(LEASE_S - 1)
    assert store.complete([(lease, UNSAT)]) == [True]


def test_renewal_returns_only_what_is_still_held(store: Store, clock: Clock) -> None:
    store.ingest([query(1), query(2)])
    done, held = claim(store, limit=2)
    store.complete([(done, UNSAT)])
    assert [lease.key for lease in store.renew([done, held], LEASE_S)] == [held.key]
    clock.advance(LEASE_S)
    assert store.renew([held], LEASE_S) == []


def test_a_released_query_is_pending_and_the_attempt_not_counted(store: Store) -> None:
    store.ingest([query(1)])
    (lease,) = claim(store)
    assert store.release([lease]) == 1
    assert store.release([lease]) == 0
    (again,) = claim(store)
    assert (again.token, again.attempts) == (2, 1)


def test_the_deadline_is_measured_after_the_write_lock(directory: Path) -> None:
    with Store.open(directory, create=True) as store:
        store.ingest([query(1)])
    locked, let_go = threading.Event(), threading.Event()

    def hold_the_lock() -> None:
        with Store.open(directory, clock=_signalling(locked, let_go)) as blocker:
            blocker.put("lock", 1)

    seconds = iter((50.0,))
    holder = threading.Thread(target=hold_the_lock)
    holder.start()
    assert locked.wait(10)

    def clock() -> float:
        # Read only once the other transaction is over: it is the one that reads 50.
        assert let_go.is_set()
        return next(seconds)

    releaser = threading.Timer(0.1, let_go.set)
    releaser.start()
    with Store.open(directory, clock=clock) as store:
        (lease,) = store.claim("w", LEASE_S, 1)
    holder.join()
    releaser.join()
    assert lease.deadline == 50.0 + LEASE_S


def _signalling(locked: threading.Event, let_go: threading.Event):  # type: ignore[no-untyped-def]
    def clock() -> float:
        locked.set()
        assert let_go.wait(10)
        return 0.0

    return clock


def test_a_batch_is_completed_in_one_transaction(store: Store) -> None:
    store.ingest([query(n) for n in range(5)])
    leases = claim(store, limit=5)
    unverified = replace(sat(leases[4]), verified_by=None)
    with pytest.raises(MisuseError):
        store.complete([*((lease, UNSAT) for lease in leases[:4]), (leases[4], unverified)])
    assert store.counts().done == 0
    assert store.complete([(lease, UNSAT) for lease in leases]) == [True] * 5
    assert store.counts().unsat == 5


def test_a_failed_attempt_puts_the_query_back(store: Store) -> None:
    store.ingest([query(1)])
    (lease,) = claim(store)
    assert store.fail(lease, "engine refused", helper_died=False)
    assert not store.fail(lease, "again", helper_died=False)
    (again,) = claim(store)
    assert again.attempts == 2


def test_attempts_that_run_out_end_as_an_error(directory: Path, clock: Clock) -> None:
    patience = Patience(attempts=3)
    with Store.open(directory, create=True, clock=clock, patience=patience) as store:
        store.ingest([query(1)])
        for _ in range(2):
            (lease,) = claim(store)
            assert store.fail(lease, "no memory", helper_died=False)
        claim(store)
        clock.advance(LEASE_S)
        assert claim(store) == []
        result = store.result(query(1).id)
        assert result is not None and result.answer.status is Status.ERROR
        assert result.answer.reason == "3 attempts failed; the last: the lease expired"
        assert store.counts().publications_due == 1


def test_a_query_that_kills_helpers_is_parked_with_the_last_stderr(store: Store) -> None:
    store.ingest([query(1)])
    for _ in range(3):
        (lease,) = claim(store)
        assert store.fail(lease, "bitwuzla died of signal 11", helper_died=True, stderr="stack smashed")
    result = store.result(query(1).id)
    assert result is not None and result.answer.status is Status.ERROR
    assert result.answer.reason is not None
    assert "3 helpers died" in result.answer.reason and "stack smashed" in result.answer.reason
    assert store.counters()["parked"] == 1
    assert claim(store) == []


def test_a_parked_query_is_opened_again_by_retry(store: Store) -> None:
    store.ingest([query(1)])
    for _ in range(3):
        store.fail(claim(store)[0], "died", helper_died=True)
    assert store.retry(query(1).id)
    assert not store.retry(query(1).id)
    assert store.result(query(1).id) is None
    assert store.counts().publications_due == 0
    (lease,) = claim(store)
    assert lease.attempts == 1 and lease.token == 4
    assert store.complete([(lease, UNSAT)]) == [True]


def test_a_proven_answer_is_not_opened_again(store: Store) -> None:
    store.ingest([query(1)])
    store.complete([(claim(store)[0], UNSAT)])
    assert not store.retry(query(1).id)
    assert not store.retry(query(2).id)


@pytest.mark.parametrize("owner", ["", "a\0b", "x" * 257])
def test_an_owner_has_a_name(store: Store, owner: str) -> None:
    with pytest.raises(MisuseError, match="owner"):
        store.claim(owner, LEASE_S, 1)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_a_lease_has_a_length(store: Store, seconds: float) -> None:
    with pytest.raises(MisuseError, match="lease"):
        store.claim("w", seconds, 1)
    with pytest.raises(MisuseError, match="lease"):
        store.renew([], seconds)


def test_a_query_whose_leases_keep_being_lost_is_claimed_alone(store: Store, clock: Clock) -> None:
    store.ingest([query(1), query(2), query(3)])
    for _ in range(3):
        assert len(claim(store, limit=3)) == 3
        clock.advance(LEASE_S)
    store.ingest([query(4), query(5)])
    for number in (4, 1, 5, 2, 3):  # the innocent come first, and every other time
        assert [lease.query for lease in claim(store, limit=4)] == [query(number)]


def test_a_query_that_is_claimed_alone_keeps_its_turn(store: Store, clock: Clock) -> None:
    store.ingest([query(2)])
    for _ in range(3):
        claim(store)
        clock.advance(LEASE_S)
    store.ingest([query(1, priority=1.0), query(3), query(4)])

    def batch() -> list[Query]:
        return [lease.query for lease in store.claim("w", LEASE_S, 2, Order.PRIORITY)]

    assert batch() == [query(1, priority=1.0)], "the one before it is claimed without it"
    assert batch() == [query(3)], "now it is first, and lets one batch pass"
    store.ingest([query(number) for number in range(5, 9)])
    assert batch() == [query(2)], "and no more, however many come"
    assert batch() == [query(4), query(5)]
