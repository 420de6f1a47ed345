"""The outbox: every result is published at last, or visibly given up."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from smtspool.store import Backoff, Publication, Store, outbox
from tests.clock import Clock
from tests.store.support import LEASE_S, TIMEOUT, UNSAT, query, sat

BACKOFF = Backoff(base_s=1.0, max_s=5.0, failures=5)


def answered(store: Store, *numbers: int) -> None:
    store.ingest([query(n, witness=b"seed") for n in numbers])
    store.complete([(lease, sat(lease)) for lease in store.claim("w", LEASE_S, len(numbers))])


def due(store: Store) -> list[Publication]:
    return store.due_publications(1000)


def test_a_result_is_due_with_all_that_its_files_need(store: Store) -> None:
    answered(store, 7)
    (publication,) = due(store)
    assert publication.remarks.metadata == query(7).metadata
    assert [witness.input for witness in publication.witnesses] == [b"seed"]
    assert publication.result == store.result(query(7).id)


def test_what_is_published_is_not_due_again(store: Store) -> None:
    answered(store, *range(70))
    first = store.due_publications(64)
    store.published(first)
    assert len(due(store)) == 6
    assert store.counts().publications_published == 64


def test_a_further_witness_makes_a_published_model_due_again(store: Store) -> None:
    answered(store, 7)
    store.published(due(store))
    store.ingest([query(7, witness=b"other"), query(7, witness=b"other")])
    (again,) = due(store)
    assert [witness.input for witness in again.witnesses] == [b"seed", b"other"]
    store.published([again])
    store.ingest([query(7), query(7, witness=b"seed")])
    assert due(store) == []


def test_a_witness_that_comes_while_the_files_are_written_is_written_too(store: Store) -> None:
    answered(store, 7)
    written = due(store)
    store.ingest([query(7, witness=b"other")])
    store.published(written)
    (again,) = due(store)
    assert again.id == written[0].id and len(again.witnesses) == 2
    store.published([again])
    assert store.counts().publications_published == 1


def test_new_inputs_are_counted_once_however_often_they_are_written(store: Store, clock: Clock) -> None:
    answered(store, 7)
    (first,) = due(store)
    store.published([first], {first.id: 1})
    store.republish()
    clock.advance(5.0)
    (again,) = due(store)
    store.published([again], {again.id: 1})
    found = store.counters()
    assert (found["inputs.found"], found["inputs.latest"]) == (1, clock() - 5.0)
    store.ingest([query(7, witness=b"other")])
    (again,) = due(store)
    store.published([again], {again.id: 2})
    found = store.counters()
    assert (found["inputs.found"], found["inputs.latest"]) == (2, clock())


def test_a_further_witness_of_a_proof_gives_no_input_and_changes_nothing(store: Store) -> None:
    store.ingest([query(7)])
    store.complete([(store.claim("w", LEASE_S, 1)[0], UNSAT)])
    store.published(due(store))
    store.ingest([query(7, witness=b"seed")])
    assert due(store) == []


def test_a_further_witness_neither_hurries_a_failed_publication_nor_revives_it(
    directory: Path, clock: Clock
) -> None:
    with Store.open(directory, create=True, clock=clock, backoff=Backoff(failures=2)) as store:
        answered(store, 7)
        (publication,) = due(store)
        store.publication_failed(publication.id, "no space left")
        store.ingest([query(7, witness=b"other")])
        assert due(store) == []
        store.publication_failed(publication.id, "no space left")
        store.ingest([query(7, witness=b"third")])
        assert due(store) == [] and store.counts().publications_dead == 1


def test_what_is_to_be_published_again_meanwhile_is_not_acknowledged(store: Store, clock: Clock) -> None:
    answered(store, 7)
    written = due(store)
    clock.advance(1)
    store.republish()
    store.published(written)
    assert len(due(store)) == 1


def test_a_pass_holds_only_so_many_bytes_and_at_least_one_result(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.ingest([query(n, witness=bytes(10_000)) for n in range(3)])
    store.complete([(lease, sat(lease)) for lease in store.claim("w", LEASE_S, 3)])
    monkeypatch.setattr(outbox, "PASS_BYTES", 50_000)
    first = due(store)
    assert [one.result.query_id for one in first] == [query(0).id, query(1).id]
    store.published(first)
    monkeypatch.setattr(outbox, "PASS_BYTES", 1)
    assert [one.result.query_id for one in due(store)] == [query(2).id]


def test_failures_are_tried_again_with_growing_delays_and_then_given_up(
    directory: Path, clock: Clock
) -> None:
    with Store.open(directory, create=True, clock=clock, backoff=BACKOFF) as store:
        answered(store, 7)
        delays = []
        while publications := due(store):
            store.publication_failed(publications[0].id, "no space left")
            before = clock.seconds
            while not due(store) and clock.seconds < before + 100:
                clock.advance(0.5)
            delays.append(clock.seconds - before)
        assert delays == [1.0, 2.0, 4.0, 5.0, 100.0]
        assert store.counts().publications_dead == 1
        assert store.revive_publications() == 1
        (again,) = due(store)
        assert again.failures == 0


def test_a_clock_that_steps_back_holds_up_nothing(directory: Path, clock: Clock) -> None:
    with Store.open(directory, create=True, clock=clock, backoff=BACKOFF) as store:
        answered(store, 7, 8)
        clock.advance(-1)
        fresh, failed = due(store)
        store.publication_failed(failed.id, "no space left")
        assert due(store) == [fresh], "its delay is not over"
        clock.advance(-3600)
        assert {one.id for one in due(store)} == {fresh.id, failed.id}


def test_everything_can_be_published_again(store: Store) -> None:
    answered(store, 1, 2, 3)
    store.published(due(store))
    assert due(store) == []
    assert store.republish() == 3
    assert len(due(store)) == 3


def test_an_outdated_publication_cannot_acknowledge_the_new_result(store: Store) -> None:
    store.ingest([query(7)])
    store.complete([(store.claim("w", LEASE_S, 1)[0], TIMEOUT)])
    (outdated,) = due(store)
    store.retry(query(7).id)
    store.complete([(store.claim("w", LEASE_S, 1)[0], UNSAT)])
    store.published([outdated])
    store.publication_failed(outdated.id, "too late")
    (current,) = due(store)
    assert current.id > outdated.id
    assert current.failures == 0


def test_a_damaged_row_becomes_a_dead_letter_and_the_rest_flows(directory: Path, clock: Clock) -> None:
    with Store.open(directory, create=True, clock=clock) as store:
        answered(store, 1, 2, 3)
        with sqlite3.connect(directory / "index.sqlite3", isolation_level=None) as other:
            other.execute("UPDATE results SET body = x'00' WHERE query = 2")
        other.close()
        assert [publication.result.query_id for publication in due(store)] == [
            query(1).id,
            query(3).id,
        ]
        assert store.counts().publications_dead == 1
