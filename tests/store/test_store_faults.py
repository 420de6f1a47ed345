"""What the machine does to a store: a clear error, nothing lost, and on it goes."""

from __future__ import annotations

import os
import resource
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from smtspool.errors import ClosedError, ConfigError, InfrastructureError, LastingError, MisuseError
from smtspool.query import Query, Status
from smtspool.store import Fault, Order, Patience, Store, database, leases
from smtspool.store.database import Database
from smtspool.store.queue import UNREAD_SECONDS
from tests.clock import Clock
from tests.store.support import LEASE_S, TIMEOUT, UNSAT, in_child, query

INDEX = "index.sqlite3"
DEADLINE_S = 30


@contextmanager
def raw(directory: Path) -> Iterator[sqlite3.Connection]:
    """A connection that knows nothing of the store's rules, in autocommit."""
    with closing(sqlite3.connect(directory / INDEX, isolation_level=None)) as connection:
        yield connection


def test_a_full_disk_loses_nothing(store: Store) -> None:
    store.ingest([query(1)])
    connection = store._db.connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(InfrastructureError, match="disk is full") as caught:
        store.ingest([query(n) for n in range(2, 2000)])
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    assert store.counts().total == 1
    connection.execute("PRAGMA max_page_count = 1000000")
    assert store.ingest([query(1), query(2)]) == [False, True]


def test_a_file_size_limit_loses_nothing(directory: Path) -> None:
    with Store.open(directory, create=True) as store:
        store.ingest([query(1)])
    assert in_child(lambda: _ingest_under_a_file_size_limit(directory)) == 0
    with Store.open(directory) as store:
        assert store.ingest([query(1), query(2)]) == [False, True]
    assert Store.fsck(directory) == []


def _ingest_under_a_file_size_limit(directory: Path) -> int:
    with Store.open(directory) as store:
        limit = (directory / INDEX).stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with pytest.raises(InfrastructureError, match="disk"):
            store.ingest([query(n) for n in range(2, 2000)])
        return 0 if store.counts().total == 1 else 2


@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_that_was_moved_away_is_not_written(directory: Path, replaced: bool) -> None:
    with Store.open(directory, create=True) as store:
        store.ingest([query(1)])
        directory.rename(directory.with_name("elsewhere"))
        if replaced:
            Store.open(directory, create=True).close()
        with pytest.raises(InfrastructureError, match="moved away"):
            store.ingest([query(2)])
        if replaced:
            directory.rename(directory.with_name("other"))
        directory.with_name("elsewhere").rename(directory)
        assert store.ingest([query(1), query(2)]) == [False, True]


def test_a_read_only_store_is_reported() -> None:
    with tempfile.TemporaryDirectory() as name:  # not below tmp_path, which only its owner may enter
        directory = Path(name)
        with Store.open(directory, create=True) as store:
            store.ingest([query(1)])
        (directory / INDEX).chmod(0o444)
        directory.chmod(0o555)
        code = in_child(lambda: _write_without_permission(directory))
        directory.chmod(0o755)
        assert code == 0


def _write_without_permission(directory: Path) -> int:
    if os.geteuid() == 0:
        os.setuid(65534)
    with pytest.raises(LastingError, match=r"may not write .* belongs to"), Store.open(directory) as store:
        store.ingest([query(2)])
    return 0


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InfrastructureError, match="file"):
        Store.open(tmp_path / "file" / "store", create=True)


def test_a_locked_store_is_reported_and_works_afterwards(directory: Path) -> None:
    with Store.open(directory, create=True, busy_timeout_s=0.02) as store, raw(directory) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InfrastructureError, match="locked"):
            store.ingest([query(1)])
        assert store.counts().total == 0  # readers are not kept waiting
        other.execute("ROLLBACK")
        assert store.ingest([query(1)]) == [True]


def test_damaged_pages_are_reported(directory: Path) -> None:
    with Store.open(directory, create=True) as store:
        store.ingest([query(n) for n in range(2000)])
    with (directory / INDEX).open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    with pytest.raises(InfrastructureError, match="damaged"), Store.open(directory) as store:
        store.claim("w", LEASE_S, 1000)
    assert {finding.fault for finding in Store.fsck(directory)} == {Fault.DATABASE}


def test_a_file_that_is_no_database_is_reported(directory: Path) -> None:
    directory.mkdir()
    (directory / INDEX).write_bytes(b"not a database " * 1000)
    with pytest.raises(InfrastructureError, match="not a database"):
        Store.open(directory)


def test_another_programs_database_is_refused(directory: Path) -> None:
    directory.mkdir()
    with raw(directory) as other:
        other.execute("CREATE TABLE theirs (x)")
    with pytest.raises(ConfigError, match="another program"):
        Store.open(directory)


def test_a_missing_store_is_not_created_by_accident(directory: Path) -> None:
    with pytest.raises(MisuseError, match="holds no store"):
        Store.open(directory)
    assert not directory.exists()


def test_an_emptied_store_is_not_taken_for_a_new_one(directory: Path) -> None:
    Store.open(directory, create=True).close()
    (directory / INDEX).write_bytes(b"")
    with pytest.raises(MisuseError, match="holds no store"):
        Store.open(directory)
    assert (directory / INDEX).stat().st_size == 0
    Store.open(directory, create=True).close()
    assert Store.fsck(directory) == []


def test_a_newer_store_is_refused_and_left_alone(directory: Path) -> None:
    Store.open(directory, create=True).close()
    with raw(directory) as other:
        other.execute("PRAGMA user_version = 99")
    before = (directory / INDEX).read_bytes()
    with pytest.raises(ConfigError, match="version 99"):
        Store.open(directory)
    with pytest.raises(ConfigError, match="version 99"):
        Store.fsck(directory)
    assert (directory / INDEX).read_bytes() == before


def test_an_older_store_is_migrated(directory: Path) -> None:
    with Store.open(directory, create=True) as store:
        store.ingest([query(1)])
    newer = [*database.migrations(), "CREATE TABLE later (x);\nINSERT INTO later\nVALUES (1);"]
    with closing(Database(directory, clock=lambda: 0.0, scripts=newer)) as migrated:
        assert migrated.connection.execute("PRAGMA user_version").fetchone() == (len(newer),)
        assert migrated.connection.execute("SELECT x FROM later").fetchone() == (1,)
        assert migrated.connection.execute("SELECT count(*) FROM queries").fetchone() == (1,)


def test_a_migration_happens_whole_or_not_at_all(directory: Path) -> None:
    Store.open(directory, create=True).close()
    broken = [*database.migrations(), "CREATE TABLE later (x);\nINSERT INTO nowhere VALUES (1);"]
    with pytest.raises(sqlite3.OperationalError):
        Database(directory, clock=lambda: 0.0, scripts=broken)
    with Store.open(directory) as store:
        assert store.ingest([query(1)]) == [True]


def test_many_may_create_the_same_store_at_once(directory: Path) -> None:
    start = threading.Barrier(8)

    def create(number: int) -> list[bool]:
        start.wait(DEADLINE_S)
        with Store.open(directory, create=True) as store:
            return store.ingest([query(number)])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(create, range(8), timeout=DEADLINE_S)) == [[True]] * 8
    assert Store.fsck(directory) == []


def test_a_store_does_not_cross_a_fork(store: Store) -> None:
    def use_and_close() -> int:
        with pytest.raises(MisuseError, match="fork"):
            store.counts()
        store.close()
        return 0

    def open_another() -> int:
        with pytest.raises(MisuseError, match="fork"):
            Store.open(store.directory)
        return 0

    assert in_child(use_and_close) == 0
    assert in_child(open_another) == 0
    assert store.ingest([query(1)]) == [True]


def test_a_store_belongs_to_its_thread(store: Store) -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(MisuseError, match="thread"):
        pool.submit(store.counts).result(DEADLINE_S)


def test_a_closed_store_says_so(directory: Path) -> None:
    store = Store.open(directory, create=True)
    store.close()
    store.close()
    with pytest.raises(ClosedError):
        store.counts()


def test_an_id_is_hexadecimal(store: Store) -> None:
    with pytest.raises(MisuseError, match="id of a query"):
        store.result("no such thing")


def test_one_rotten_row_is_parked_and_the_rest_flows(directory: Path) -> None:
    with Store.open(directory, create=True) as store:
        store.ingest([query(n) for n in range(3)])
        with raw(directory) as other:
            other.execute("UPDATE texts SET body = substr(body, 1, length(body) - 1) WHERE query = 2")
        leases = store.claim("w", LEASE_S, 3)
        assert sorted(lease.query.id for lease in leases) == sorted([query(0).id, query(2).id])
        result = store.result(query(1).id)
        assert result is not None and result.answer.status is Status.ERROR
        assert result.answer.reason is not None and "damaged" in result.answer.reason
        assert store.counters()["damaged"] == 1
        store.complete([(lease, UNSAT) for lease in leases])
        assert store.counts().open == 0
    assert [(finding.fault, finding.subject) for finding in Store.fsck(directory)] == [
        (Fault.TEXT, query(1).id)
    ]


def test_a_rotten_answer_can_be_asked_for_again(directory: Path) -> None:
    with Store.open(directory, create=True) as store:
        store.ingest([query(1), query(2)])
        first, second = store.claim("w", LEASE_S, 2)
        store.complete([(first, TIMEOUT), (second, UNSAT)])
        with raw(directory) as other:
            other.execute("UPDATE results SET body = x'7b7d' WHERE status = 'unknown'")
        assert store.undecided() == [first.query.id]
        assert store.retry(first.query.id)
        assert store.undecided() == []
        store.complete([(lease, UNSAT) for lease in store.claim("w", LEASE_S, 1)])
    assert Store.fsck(directory) == []


def test_a_rotten_proof_is_not_reused(directory: Path) -> None:
    with Store.open(directory, create=True) as store:
        store.ingest([query(7, name="a")])
        store.complete([(lease, UNSAT) for lease in store.claim("w", LEASE_S, 1)])
        with raw(directory) as other:
            other.execute("UPDATE results SET body = x'7b7d'")
        store.ingest([query(7, name="b")])
        (lease,) = store.claim("w", LEASE_S, 1)
        assert lease.query == query(7, name="b") and lease.reuse is None


def test_leases_whose_texts_cannot_be_read_expire_soon(store: Store, directory: Path, clock: Clock) -> None:
    store.ingest([query(1), query(2)])
    with raw(directory) as other:
        other.execute("ALTER TABLE texts RENAME TO gone")
        with pytest.raises(sqlite3.OperationalError, match="texts"):
            store.claim("w", LEASE_S, 2)
        other.execute("ALTER TABLE gone RENAME TO texts")
    assert store.claim("w", LEASE_S, 2) == []
    clock.advance(UNREAD_SECONDS)
    assert [lease.attempts for lease in store.claim("w", LEASE_S, 2)] == [2, 2]


def test_a_query_that_can_never_be_read_holds_up_nobody_and_is_given_up(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = leases.query_of

    def too_large(number: int, columns: Any) -> Query:
        if number == 1:
            raise MemoryError
        return read(number, columns)

    monkeypatch.setattr(leases, "query_of", too_large)
    store.ingest([query(number) for number in range(1, 5)])
    answered, refused = 0, 0
    for _ in range(100):
        try:
            taken = store.claim("w", LEASE_S, 1, Order.FIFO)
        except MemoryError:
            refused += 1
            continue
        answered += sum(store.complete([(lease, UNSAT) for lease in taken]))
        if answered == 3:
            clock.advance(UNREAD_SECONDS)
    assert (answered, refused) == (3, Patience().attempts)
    assert store.counts().error == 1


def test_a_read_that_fails_is_told_even_when_the_leases_cannot_be_given_back(
    directory: Path, clock: Clock
) -> None:
    with Store.open(directory, create=True, clock=clock) as store:
        store.ingest([query(1)])
        with raw(directory) as other:
            other.execute("ALTER TABLE texts RENAME TO gone")
            other.execute(
                "CREATE TRIGGER no_way_back BEFORE UPDATE OF deadline ON queries "
                "WHEN NEW.deadline < OLD.deadline BEGIN SELECT RAISE(ABORT, 'no way back'); END"
            )
            with pytest.raises(sqlite3.OperationalError, match="texts"):
                store.claim("w", LEASE_S, 1)
            other.execute("DROP TRIGGER no_way_back")
            other.execute("ALTER TABLE gone RENAME TO texts")
        assert store.counts().leased == 1
        clock.advance(LEASE_S)
        assert len(store.claim("w", LEASE_S, 1)) == 1
