"""Admission into the store: once, durable, all or none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from smtspool.query import Witness
from smtspool.store import Store, digests, ingest
from tests.store.support import LEASE_S, UNSAT, query


def test_a_query_is_created_once(store: Store) -> None:
    assert store.ingest([query(1), query(2)]) == [True, True]
    assert store.ingest([query(2), query(3)]) == [False, True]
    assert store.counts().total == 3


def test_a_query_twice_in_one_batch_is_created_once(store: Store) -> None:
    assert store.ingest([query(1), query(1), query(2), query(1, priority=7.0)]) == [True, False, True, False]
    stored = store.query(query(1).id)
    assert stored is not None and stored.priority == 7.0


def test_nothing_is_stored_for_an_empty_batch(store: Store) -> None:
    assert store.ingest([]) == []


def test_a_stored_query_comes_back_as_it_was(store: Store) -> None:
    original = query(1, path=(9, 8), witness=b"abc", priority=2.5, timeout_ms=1234)
    store.ingest([original])
    assert store.query(original.id) == original
    assert store.query(query(2).id) is None


def test_replay_keeps_the_larger_timeout_and_priority(store: Store) -> None:
    store.ingest([query(1, timeout_ms=5000, priority=1.0)])
    store.ingest([query(1, timeout_ms=1000, priority=3.0)])
    store.ingest([query(1, timeout_ms=8000, priority=2.0)])
    stored = store.query(query(1).id)
    assert stored is not None
    assert (stored.timeout_ms, stored.priority) == (8000, 3.0)


def test_replay_adds_a_new_witness_once(store: Store) -> None:
    store.ingest([query(1, witness=b"first")])
    store.ingest([query(1, witness=b"second"), query(1, witness=b"first"), query(1)])
    assert [witness.input for witness in store.witnesses(query(1).id)] == [b"first", b"second"]


def test_the_same_input_with_other_symbols_is_another_witness(store: Store) -> None:
    store.ingest([query(1, witness=b"input")])
    store.ingest([replace(query(1), witness=Witness(b"input", (("unused", 3),)))])
    assert len(store.witnesses(query(1).id)) == 2


def test_the_witnesses_of_a_query_are_bounded(store: Store) -> None:
    store.ingest([query(1, witness=bytes([n])) for n in range(ingest.MAX_WITNESSES + 5)])
    assert len(store.witnesses(query(1).id)) == ingest.MAX_WITNESSES
    assert store.counters()["witnesses.dropped"] == 5


def test_further_witnesses_are_bounded_in_bytes_and_the_first_is_not(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "MAX_WITNESS_BYTES", 1000)
    store.ingest([query(1, witness=bytes(1000)), query(1, witness=b"a"), query(2, witness=b"a")])
    store.ingest([query(2, witness=bytes(400)), query(2, witness=bytes(100)), query(2, witness=b"b")])
    assert [witness.input for witness in store.witnesses(query(1).id)] == [bytes(1000)]
    assert [witness.input for witness in store.witnesses(query(2).id)] == [b"a", bytes(400), b"b"]
    assert store.counters()["witnesses.dropped"] == 2


def test_replay_of_an_answered_query_changes_no_answer(store: Store) -> None:
    store.ingest([query(1)])
    store.complete([(lease, UNSAT) for lease in store.claim("w", LEASE_S, 1)])
    before = store.result(query(1).id)
    assert store.ingest([query(1)]) == [False]
    assert store.result(query(1).id) == before
    assert store.claim("w", LEASE_S, 1) == []


def test_a_batch_that_fails_stores_nothing(store: Store) -> None:
    unstorable = replace(query(2), timeout_ms=1 << 70)
    with pytest.raises(OverflowError):
        store.ingest([query(1), unstorable])
    assert store.counts().total == 0
    assert store.ingest([query(1)]) == [True]


def test_what_is_committed_is_there_after_reopening(directory: Path) -> None:
    with Store.open(directory, create=True) as store:
        store.ingest([query(1)])
    with Store.open(directory) as store:
        assert store.counts().pending == 1
        assert store.query(query(1).id) == query(1)


def test_old_and_new_digests_are_found_by_every_connection(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "TAIL_ROWS", 10)
    batches = [[query(n * 7 + k, path=(n, k)) for k in range(7)] for n in range(12)]
    with Store.open(directory, create=True) as one, Store.open(directory) as other:
        for number, batch in enumerate(batches):
            writer = (one, other)[number % 2]
            assert writer.ingest(batch) == [True] * len(batch)
        for reader in (one, other):
            for batch in batches:
                assert reader.ingest(batch) == [False] * len(batch)
                assert all(reader.query(each.id) is not None for each in batch)
        assert one.counts().total == 84
    assert Store.fsck(directory) == []
