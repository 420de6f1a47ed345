"""Who asked what: recorded once for each check-sat of each file, listed with the result, counted with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from smtspool.errors import InfrastructureError
from smtspool.query import Query, QueryFile, file_mark
from smtspool.store import Fault, Store, submissions
from tests.store.support import LEASE_S, UNSAT, query

NONE: Mapping[str, object] = {}


def file(
    name: str, *queries: Query, inode: int = 1, since: float = 0.0, metadata: Mapping[str, object] = NONE
) -> QueryFile:
    """A file of these queries, each with ``metadata``."""
    asked = tuple(replace(one, metadata=metadata) for one in queries)
    return QueryFile(name, file_mark(name, inode, int(since * 1e9)), 100, since, asked)


def names(store: Store, asked: Query) -> list[tuple[str | None, int | None]]:
    return [(one.file, one.number) for one in store.submissions(asked.id).listed]


def answer_all(store: Store) -> None:
    store.complete([(lease, UNSAT) for lease in store.claim("w", LEASE_S, 100)])


def test_every_submitter_of_a_query_is_recorded_with_its_own_metadata(store: Store) -> None:
    assert store.admit([file("a.smt2", query(1), metadata={"who": 1})]) == [True]
    assert store.admit([file("b.smt2", query(1), metadata={"who": 2})]) == [False]
    found = store.submissions(query(1).id)
    assert found.total == 2
    assert [(one.file, one.number, one.metadata, one.submitted) for one in found.listed] == [
        ("a.smt2", 1, {"who": 1}, 1000.0),
        ("b.smt2", 1, {"who": 2}, 1000.0),
    ]


def test_each_check_sat_of_a_script_is_a_submission_of_its_own(store: Store) -> None:
    assert store.admit([file("a.smt2", query(1), query(2), query(1))]) == [True, True, False]
    assert names(store, query(1)) == [("a.smt2", 1), ("a.smt2", 3)]
    assert names(store, query(2)) == [("a.smt2", 2)]


def test_a_file_that_is_admitted_again_is_neither_recorded_nor_counted_again(store: Store) -> None:
    batch = [file("a.smt2", query(1), query(2)), file("b.smt2", query(1))]
    store.admit(batch)
    before = store.counters()
    store.admit(batch)
    assert store.counters() == before
    assert names(store, query(1)) == [("a.smt2", 1), ("b.smt2", 1)]


@pytest.mark.parametrize(
    "other",
    [file("c.smt2", query(1)), file("a.smt2", query(1), inode=2), file("a.smt2", query(1), since=5.0)],
    ids=["name", "inode", "time"],
)
def test_another_file_is_another_submission(store: Store, other: QueryFile) -> None:
    store.admit([file("a.smt2", query(1)), other])
    assert store.submissions(query(1).id).total == 2


def test_what_is_counted_of_files_is_committed_with_them(store: Store) -> None:
    store.admit([file("a.smt2", query(1), query(2), since=990.0), file("b.smt2", query(1), since=999.5)])
    counters = store.counters()
    assert (counters["admission.accepted"], counters["admission.bytes"]) == (2, 200)
    assert (counters["admission.latency_count"], counters["admission.latency_seconds"]) == (2, 10.5)
    with pytest.raises(OverflowError):
        store.admit([file("c.smt2", query(3)), file("d.smt2", replace(query(4), timeout_ms=1 << 70))])
    assert store.counters() == counters


def test_a_result_that_is_published_is_due_again_for_a_further_submitter(store: Store) -> None:
    store.admit([file("a.smt2", query(1))])
    answer_all(store)
    (first,) = store.due_publications(9)
    assert [one.file for one in first.submissions.listed] == ["a.smt2"]
    store.admit([file("b.smt2", query(1), since=1.0)])  # meanwhile
    store.published([first])
    (again,) = store.due_publications(9)
    store.published([again])
    assert store.due_publications(9) == []
    store.admit([file("c.smt2", query(1), since=2.0)])
    store.admit([file("c.smt2", query(1), since=2.0)])
    (again,) = store.due_publications(9)
    assert [one.file for one in again.submissions.listed] == ["a.smt2", "b.smt2", "c.smt2"]
    store.published([again])
    store.admit([file("c.smt2", query(1), since=2.0)])
    assert store.due_publications(9) == []


def test_of_very_many_submissions_the_oldest_and_the_newest_are_listed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submissions, "LISTED", 3)
    for count, listed in ((3, [0, 1, 2]), (5, [0, 1, 2, 3, 4]), (9, [0, 1, 2, 6, 7, 8])):
        store.admit([file(f"{n}.smt2", query(1), since=float(n)) for n in range(count)])
        found = store.submissions(query(1).id)
        assert (found.total, [one.file for one in found.listed]) == (count, [f"{n}.smt2" for n in listed])


def test_large_metadata_is_listed_while_it_fits(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions, "LISTED_METADATA", 250)
    large = {"m": "x" * 100}
    store.admit([file(f"{n}.smt2", query(1), since=float(n), metadata=large) for n in range(9)])
    found = store.submissions(query(1).id)
    assert (found.total, [one.file for one in found.listed]) == (9, [f"{n}.smt2" for n in (0, 1, 7, 8)])


def test_a_name_that_is_no_utf8_is_recorded(store: Store) -> None:
    store.admit([file("a\udcff.smt2", query(1))])
    assert names(store, query(1)) == [("a\\udcff.smt2", 1)]


@pytest.mark.parametrize("time", [-1.0, 1e12])
def test_any_time_of_a_file_can_be_recorded(store: Store, time: float) -> None:
    store.admit([file("a.smt2", query(1), since=time, inode=(1 << 64) - 1)])
    assert store.submissions(query(1).id).total == 1


def test_a_query_that_came_from_no_file_has_no_submission(store: Store) -> None:
    store.ingest([query(1)])
    assert store.submissions(query(1).id).total == store.submissions(query(2).id).total == 0
    store.admit([file("a.smt2", query(1))])
    assert names(store, query(1)) == [("a.smt2", 1)]


def test_a_damaged_submission_is_found_and_not_handed_out(directory: Path) -> None:
    with Store.open(directory, create=True) as store:
        store.admit([file("a.smt2", query(1), metadata={"who": 1})])
        store._db.connection.execute("""UPDATE submissions SET metadata = '{"who":2}'""")
        with pytest.raises(InfrastructureError, match="does not match its digest"):
            store.submissions(query(1).id)
        assert [finding.fault for finding in Store.fsck(directory)] == [Fault.SUBMISSION]
        store._db.connection.execute("DELETE FROM submissions")
        (finding,) = Store.fsck(directory)
        assert (finding.fault, finding.subject) == (Fault.SUBMISSION, query(1).id)


def test_files_of_all_kinds_in_one_batch(store: Store) -> None:
    batch = [file(f"{n}", *(query(k, path=(k,)) for k in range(n % 4))) for n in range(20)]
    created = store.admit(batch)
    assert created.count(True) == 3 and len(created) == sum(len(one.queries) for one in batch)
    assert Store.fsck(store.directory) == []
