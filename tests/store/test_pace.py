"""The pace of a store: counted from times, without looking at every row."""

from __future__ import annotations

import pytest

from smtspool.store import Rate, Store
from tests.clock import Clock
from tests.store.support import LEASE_S, UNSAT, query


def answer(store: Store, count: int) -> None:
    leases = store.claim("w", LEASE_S, count)
    assert all(store.complete([(lease, UNSAT) for lease in leases]))


def test_an_empty_store_has_no_pace(store: Store) -> None:
    assert store.pace().answered == store.pace().admitted == Rate()


def test_the_last_minute_and_the_last_quarter_are_counted(store: Store, clock: Clock) -> None:
    store.ingest([query(n) for n in range(10)])
    answer(store, 4)
    first = clock()
    clock.advance(600)
    store.ingest([query(n) for n in range(10, 13)])
    answer(store, 2)
    last = clock()
    clock.advance(30)
    assert store.pace().answered == Rate(2, 6, first, last)
    assert store.pace().admitted == Rate(3, 13, first, last)
    clock.advance(31)
    assert store.pace().answered == Rate(0, 6, first, last)
    clock.advance(900)
    assert store.pace().answered == Rate(0, 0, first, last)


@pytest.mark.parametrize("old", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("new", [0, 1, 2, 3, 64, 99])
def test_however_many_there_are(store: Store, clock: Clock, old: int, new: int) -> None:
    store.ingest([query(n) for n in range(old)])
    clock.advance(3600)
    store.ingest([query(n) for n in range(old, old + new)])
    assert (store.pace().admitted.minute, store.pace().admitted.quarter) == (new, new)


def test_a_rate_is_over_the_time_that_there_was() -> None:
    assert Rate(30, 90, first=0.0).per_second(3600.0) == (0.5, 0.1)
    assert Rate(30, 30, first=0.0).per_second(15.0) == (2.0, 2.0)
    assert Rate(30, 120, first=0.0).per_second(240.0) == (0.5, 0.5)
    assert Rate(5, 5, first=10.0).per_second(10.0) == (5.0, 5.0)
    assert Rate().per_second(10.0) == (0.0, 0.0)
