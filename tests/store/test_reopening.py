"""A query that ended for lack of time is asked again when somebody gives it more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from smtspool.query import Answer, Query, QueryFile, Status, file_mark
from smtspool.store import Store
from tests.store.support import LEASE_S, TIMEOUT, UNSAT, query, sat

DISAGREEMENT = replace(TIMEOUT, disagreement=True, reason="engines disagree")
NO_LIMIT = Answer(Status.UNKNOWN, reason="sat with an unverified model")
ERROR = Answer(Status.ERROR, reason="refused by every engine")


def end(store: Store, answer: Answer, asked: Query) -> None:
    store.ingest([asked])
    (lease,) = store.claim("w", LEASE_S, 9)
    assert store.complete([(lease, answer)]) == [True]


def admit(store: Store, asked: Query, *, limit_ms: int | None = None) -> None:
    file = QueryFile("a.smt2", file_mark("a.smt2", 1, 0), 1, 0.0, (asked,))
    assert store.admit([file], limit_ms=limit_ms) == [False]


def test_a_larger_limit_opens_a_timeout_again_and_its_answer_is_published(store: Store) -> None:
    end(store, TIMEOUT, query(1, timeout_ms=1))
    (old,) = store.due_publications(9)
    admit(store, query(1, timeout_ms=20_000))
    assert store.counts().pending == 1 and store.result(query(1).id) is None
    (lease,) = store.claim("w", LEASE_S, 9)
    assert (lease.query.timeout_ms, lease.attempts, lease.token) == (20_000, 1, 2)
    store.complete([(lease, sat(lease))])
    store.published([old])  # what was written of the old result is not this one
    (new,) = store.due_publications(9)
    assert (new.result.answer.status, new.id > old.id) == (Status.SAT, True)
    assert store.counters()["reopened"] == 1
    assert Store.fsck(store.directory) == []


@pytest.mark.parametrize("limit", [1, 5])
def test_no_larger_limit_opens_nothing(store: Store, limit: int) -> None:
    end(store, TIMEOUT, query(1, timeout_ms=5))
    admit(store, query(1, timeout_ms=limit))
    assert store.counts().unknown == 1


@pytest.mark.parametrize("answer", [UNSAT, DISAGREEMENT, NO_LIMIT, ERROR], ids=lambda a: a.reason or a.status)
def test_what_time_cannot_change_stays(store: Store, answer: Answer) -> None:
    end(store, answer, query(1, timeout_ms=1))
    admit(store, query(1, timeout_ms=20_000))
    assert store.counts().open == 0


def test_the_limit_that_counts_is_the_one_it_had(store: Store) -> None:
    """The service that gave up was told to give every query 1 ms; so is, or is not, the one that admits."""
    end(store, replace(TIMEOUT, limit_ms=1), query(1, timeout_ms=10_000))
    admit(store, query(1, timeout_ms=10_000), limit_ms=1)
    assert store.counts().unknown == 1
    admit(store, query(1, timeout_ms=10_000))
    assert store.counts().pending == 1


def test_a_limit_that_grows_while_a_query_is_solved_counts_when_it_ends(store: Store) -> None:
    store.ingest([query(1, timeout_ms=1)])
    (lease,) = store.claim("w", LEASE_S, 9)
    admit(store, query(1, timeout_ms=20_000))
    assert store.complete([(lease, TIMEOUT)]) == [True]
    assert (store.counts().pending, store.counts().unknown) == (1, 0)
    (lease,) = store.claim("w", LEASE_S, 9)
    assert (lease.query.timeout_ms, lease.attempts) == (20_000, 1)
    assert store.complete([(lease, TIMEOUT)]) == [True]
    assert store.counts().unknown == 1


def test_a_query_that_is_open_again_waits_for_its_form_like_any_other(store: Store) -> None:
    end(store, TIMEOUT, query(1, timeout_ms=1))
    store.ingest([query(1, name="y")])
    admit(store, query(1, timeout_ms=20_000))
    assert (store.counts().pending, store.counts().waiting) == (1, 1)
    (lease,) = store.claim("w", LEASE_S, 9)
    store.complete([(lease, UNSAT)])
    assert store.counts().unsat == 2
    assert Store.fsck(store.directory) == []


@pytest.mark.parametrize("again_first", [False, True])
def test_a_query_that_opens_again_beside_a_new_one_of_its_form_lets_one_lead(
    store: Store, again_first: bool
) -> None:
    end(store, TIMEOUT, query(1, timeout_ms=1))
    again, new = query(1, timeout_ms=20_000), query(1, name="y")
    store.ingest([query(2), again, new] if again_first else [query(2), new, again])
    assert (store.counts().pending, store.counts().waiting) == (2, 1)
    assert Store.fsck(store.directory) == []


def test_a_query_that_opens_again_is_seen_by_those_of_its_form_that_follow(store: Store) -> None:
    end(store, TIMEOUT, query(1, timeout_ms=1))
    end(store, TIMEOUT, query(1, name="y", timeout_ms=1))
    store.ingest([query(1, name="z"), query(1, timeout_ms=20_000), query(1, name="y", timeout_ms=20_000)])
    store.ingest([query(1, name="a"), query(1, name="b")])
    assert (store.counts().pending, store.counts().waiting) == (1, 4)
    assert Store.fsck(store.directory) == []
