"""fsck finds every fault that is planted, and changes nothing."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from smtspool.errors import MisuseError
from smtspool.store import Fault, Finding, Store, fsck
from tests.store.support import LEASE_S, TIMEOUT, UNSAT, query, sat


@pytest.fixture
def sound(directory: Path) -> Path:
    """A closed store with queries in every state: numbers 1 to 9, in this order."""
    with Store.open(directory, create=True) as store:
        store.ingest([query(1, path=(9, 8), witness=b"w"), query(2), query(3)])
        unsat, satisfied, unknown = store.claim("w", 1e5, 3)
        store.complete([(unsat, UNSAT), (satisfied, sat(satisfied)), (unknown, TIMEOUT)])
        store.ingest([query(4), query(5, path=(9,)), query(6, name="a"), query(6, name="b")])
        store.ingest([query(1, name="c", path=(9, 8)), query(2, name="d")])
        assert len(store.claim("w", LEASE_S, 1)) == 1
    assert Store.fsck(directory) == []
    return directory


PLANTED = {
    "a text that changed": ("UPDATE texts SET body = x'00' WHERE query = 4", Fault.TEXT),
    "a text that is gone": ("DELETE FROM texts WHERE query = 4", Fault.TEXT),
    "the text of another query": (
        "UPDATE texts SET body = (SELECT body FROM texts WHERE query = 5) WHERE query = 4",
        Fault.TEXT,
    ),
    "a witness that changed": ("UPDATE witnesses SET body = x'00'", Fault.WITNESS),
    "another prefix": ("UPDATE queries SET prefix = 0 WHERE number = 1", Fault.PREFIX),
    "another depth": ("UPDATE queries SET depth = 7 WHERE number = 4", Fault.PREFIX),
    "a broken chain": ("UPDATE prefixes SET parent = 0 WHERE depth = 2", Fault.PREFIX),
    "another form": ("UPDATE queries SET form = 1 WHERE number = 4", Fault.FORM),
    "a prefix that is not there": ("UPDATE queries SET prefix = 77 WHERE number = 4", Fault.REFERENCE),
    "a result that changed": ("UPDATE results SET body = x'00' WHERE query = 1", Fault.RESULT),
    "a status that changed": ("UPDATE results SET status = 'unknown' WHERE query = 1", Fault.RESULT),
    "a result that is gone": ("DELETE FROM results WHERE query = 3", Fault.RESULT),
    "an answered query that is open": ("UPDATE queries SET state = 'pending' WHERE number = 3", Fault.RESULT),
    "a publication that is gone": ("DELETE FROM publications WHERE result = 1", Fault.OUTBOX),
    "a stranded query": ("UPDATE forms SET leader = NULL WHERE leader = 6", Fault.FORM),
    "a leader of another form": ("UPDATE forms SET leader = 4 WHERE leader = 6", Fault.FORM),
    "two leaders": ("UPDATE queries SET state = 'pending' WHERE number = 7", Fault.FORM),
    "an answer that its source lacks": ("UPDATE forms SET status = 'sat' WHERE source = 1", Fault.FORM),
    "a lease that nobody was given": ("UPDATE queries SET token = 0 WHERE state = 'leased'", Fault.LEASE),
    "a lease of an unregistered owner": (
        "UPDATE queries SET owner = 'h:b:1:' || lower(hex(zeroblob(16))) WHERE state = 'leased'",
        Fault.LEASE,
    ),
    "an owner without lock": ("INSERT INTO owners VALUES ('h:b:1:t', 'h', 'b', 1, 't', 0.0)", Fault.OWNER),
    "a query counted twice": (
        "UPDATE counters SET value = value + 1 WHERE name = 'queries.done'",
        Fault.COUNTER,
    ),
    "a counter that is gone": ("DELETE FROM counters WHERE name = 'results.sat'", Fault.COUNTER),
    "a counter of nothing that is gone": (
        "DELETE FROM counters WHERE name = 'publications.dead'",
        Fault.COUNTER,
    ),
    "a digest that is not in its tree": ("UPDATE trees SET merged = 3 WHERE name = 'queries'", Fault.TREE),
    "a query that is there twice": (
        "UPDATE queries SET id = (SELECT id FROM queries WHERE number = 4) WHERE number = 5",
        Fault.TREE,
    ),
    "an index that lost a row": (
        "UPDATE sqlite_schema SET sql = replace(sql, '(number) ', '(depth) ')",
        Fault.DATABASE,
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_each_planted_fault_is_found(sound: Path, fault: str) -> None:
    statement, expected = PLANTED[fault]
    with closing(sqlite3.connect(sound / "index.sqlite3", isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement)
    found = {finding.fault for finding in Store.fsck(sound)}
    assert expected in found


def test_a_damaged_page_is_found(sound: Path) -> None:
    with (sound / "index.sqlite3").open("r+b") as file:
        file.seek(8 * 4096)
        file.write(b"\xff" * 4096)
    assert Fault.DATABASE in {finding.fault for finding in Store.fsck(sound)}


def test_a_store_that_cannot_be_opened_is_named_once_with_what_to_do(sound: Path) -> None:
    path = sound / "index.sqlite3"
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE results", b"CREATE-TABLE results"))
    [finding] = Store.fsck(sound)
    assert (finding.fault, finding.subject) == (Fault.DATABASE, str(path))
    assert finding.message.startswith("the store is damaged: run `smtspool salvage` (")
    assert str(path) not in finding.message


def test_fsck_changes_nothing(sound: Path) -> None:
    before = contents(sound)
    Store.fsck(sound)
    assert contents(sound) == before


def test_fsck_of_a_store_in_use_sees_what_is_committed(sound: Path) -> None:
    with Store.open(sound) as store, store.register() as owner:
        store.ingest([query(n) for n in range(20, 40)])
        store.claim(owner.name, LEASE_S, 5)
        before = contents(sound)
        assert Store.fsck(sound) == []
        assert contents(sound) == before
        assert store.ingest([query(50)]) == [True]


def test_an_owner_that_ends_meanwhile_is_no_finding(sound: Path) -> None:
    with (
        Store.open(sound) as store,
        store.register() as owner,
        closing(fsck.connect_view(sound / "index.sqlite3")[0]) as connection,
    ):
        findings = fsck._findings(connection, sound)
        assert connection.execute("SELECT count(*) FROM owners").fetchone() == (1,)
        owner.close()
        assert list(findings) == []


def test_there_must_be_a_store(directory: Path) -> None:
    with pytest.raises(MisuseError, match=r"holds no store: .*smtspool salvage"):
        Store.fsck(directory)


def contents(directory: Path) -> dict[str, str]:
    """Digest of every file, but for SQLite's index of the journal, which it makes anew at will."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file() and not path.name.endswith("-shm")
    }


def test_a_service_that_comes_and_goes_meanwhile_is_no_damage(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(directory, create=True) as store:  # larger than what a connection remembers
        store.ingest([query(number, witness=bytes(20_000)) for number in range(100)])
    texts, sessions = fsck._queries, []

    def after_a_session(connection: sqlite3.Connection, *more: Any) -> Iterator[Finding]:
        if not sessions:
            sessions.append("of a service")
            with Store.open(directory) as store:
                store.ingest([query(number, witness=bytes(20_000)) for number in range(100, 200)])
        return texts(connection, *more)

    monkeypatch.setattr(fsck, "_queries", after_a_session)
    assert Store.fsck(directory) == []
    assert sessions


def test_a_defect_of_ours_is_not_called_damage(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def defective(*arguments: object) -> Iterator[Finding]:
        raise TypeError("a defect")

    monkeypatch.setattr(fsck, "_counters", defective)
    with pytest.raises(TypeError, match="a defect"):
        Store.fsck(sound)
