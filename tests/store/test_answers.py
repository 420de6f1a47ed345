"""Which answers the store refuses to keep."""

from __future__ import annotations

from dataclasses import replace

import pytest

from smtspool.errors import MisuseError
from smtspool.query import Answer, Attempt, Status
from smtspool.store import Lease, Store, Wanted
from tests.store.support import LEASE_S, UNSAT, query, sat


@pytest.fixture
def lease(store: Store) -> Lease:
    store.ingest([query(7)])
    return store.claim("w", LEASE_S, 1)[0]


def refused(store: Store, lease: Lease, answer: Answer, match: str) -> None:
    with pytest.raises(MisuseError, match=match):
        store.complete([(lease, answer)])
    assert store.counts().leased == 1


def test_sat_needs_confirmation(store: Store, lease: Lease) -> None:
    refused(store, lease, replace(sat(lease), verified_by=None), "somebody else confirmed")


def test_an_engine_cannot_confirm_itself(store: Store, lease: Lease) -> None:
    refused(store, lease, replace(sat(lease), verified_by="bitwuzla"), "its own answer")
    refused(store, lease, replace(UNSAT, verified_by="bitwuzla"), "its own answer")


def test_sat_needs_a_model(store: Store, lease: Lease) -> None:
    refused(store, lease, replace(sat(lease), model=None), "carries a model")


def test_a_model_is_complete(store: Store, lease: Lease) -> None:
    refused(store, lease, replace(sat(lease), model={"x": "#x00000007"}), "unused has no value")


def test_a_proven_answer_names_its_engine(store: Store, lease: Lease) -> None:
    refused(store, lease, Answer(Status.UNSAT), "names the engine")


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.ERROR])
def test_no_answer_without_a_reason(store: Store, lease: Lease, status: Status) -> None:
    refused(store, lease, Answer(status), "carries a reason")


@pytest.mark.parametrize("status", [Status.SAT, Status.UNSAT, Status.ERROR])
def test_a_disagreement_is_unknown(store: Store, lease: Lease, status: Status) -> None:
    refused(store, lease, replace(sat(lease), status=status, disagreement=True), "engines disagreed")


def test_an_answer_comes_back_as_it_was_committed(store: Store, lease: Lease) -> None:
    attempts = (
        Attempt("a1", "bitwuzla", Status.SAT, generation=3, prefix_hit=2, verified=True, elapsed_ms=1.5),
        Attempt("a2", "z3", Status.UNKNOWN, reason="cancelled", cancelled=True, cancel_reason="lost-race"),
    )
    answer = replace(sat(lease), attempts=attempts, elapsed_ms=2.5)
    store.complete([(lease, answer)])
    result = store.result(lease.query.id)
    assert result is not None and result.answer == answer
    counters = store.counters()
    assert counters["wins.bitwuzla"] == 1
    assert counters["attempts.z3"] == counters["cancelled.z3"] == 1
    assert counters["answer_ms"] == 2.5


def test_results_are_listed_in_the_order_of_completion(store: Store, lease: Lease) -> None:
    store.ingest([query(n) for n in range(300)])
    leases = store.claim("w", LEASE_S, 400)
    store.complete([(each, UNSAT) for each in reversed(leases)])
    listed = list(store.results())
    for result in listed:
        for length in (1, 7, 20, 63, 64):
            start = result.query_id[:length]
            expected = [one for one in listed if one.query_id.startswith(start)]
            assert list(store.results(wanted=Wanted(prefix=start))) == expected
    for none in ("x", listed[0].query_id + "0"):
        assert not list(store.results(wanted=Wanted(prefix=none)))
    assert [result.query_id for result in listed] == [each.query.id for each in reversed(leases)]
    assert list(store.results(after=listed[-3].number)) == listed[-2:]
    store.complete([(lease, UNSAT)])
    assert [result.query_id for result in store.results(after=listed[-1].number)] == [lease.query.id]


def test_events_are_added_up_and_cannot_touch_the_counts_of_rows(store: Store, lease: Lease) -> None:
    store.bump({"races": 1, "seconds": 0.5})
    store.bump({"races": 2, "seconds": 0.25})
    assert (store.counters()["races"], store.counters()["seconds"]) == (3, 0.75)
    with pytest.raises(MisuseError, match="cannot be bumped"):
        store.bump({"queries.pending": 1})


def test_knowledge_is_kept(store: Store) -> None:
    assert store.get("hedging") is None
    store.put("hedging", {"order": ["bitwuzla", "z3"]})
    store.put("hedging", {"order": ["z3"], "delay_ms": 1.5})
    assert store.get("hedging") == {"order": ["z3"], "delay_ms": 1.5}
    with pytest.raises(ValueError, match="JSON"):
        store.put("hedging", float("nan"))
