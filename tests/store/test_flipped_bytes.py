"""Bytes flipped anywhere in a store: fsck reports it, or nothing that matters has changed."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from smtspool.errors import ConfigError
from smtspool.store import Store, fsck
from tests.store.support import LEASE_S, TIMEOUT, UNSAT, query, sat

INDEX = "index.sqlite3"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store with rows in every table, and pages on the free list."""
    directory = tmp_path_factory.mktemp("flips") / "store"
    with Store.open(directory, create=True) as store:
        store.ingest([query(n, path=(9, 8, n % 4 + 1), witness=bytes([n]) * 40) for n in range(12)])
        store.ingest([query(n, name="y", path=(9, 8)) for n in range(8, 12)])
        leases = store.claim("w", LEASE_S, 6)
        store.complete([(lease, sat(lease) if lease.number % 2 else UNSAT) for lease in leases[:4]])
        store.complete([(leases[4], TIMEOUT)])
        store.published(store.due_publications(2))
        store.put("learnt", {"z3": [1.5, 2.5]})
        connection = store._db.connection
        connection.execute("CREATE TABLE gone (x)")
        connection.execute("INSERT INTO gone VALUES (randomblob(20000))")
        connection.execute("DROP TABLE gone")
    assert Store.fsck(directory) == []
    return directory


def contents(directory: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every table but for the columns that fsck cannot vouch for."""
    with closing(sqlite3.connect(f"file:{directory / INDEX}?mode=ro&immutable=1", uri=True)) as connection:
        connection.text_factory = bytes
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'sqlite_sequence'"
        ).fetchall()
        found = {}
        for name in sorted(table.decode() for (table,) in tables):
            columns = [row[1].decode() for row in connection.execute(f"PRAGMA table_info({name})")]
            vouched = ", ".join(one for one in columns if f"{name}.{one}" not in fsck.NOT_COVERED)
            rows = connection.execute(f"SELECT {vouched or 'NULL'} FROM {name}").fetchall()
            found[name] = sorted(rows, key=repr)
        telemetry = dict(connection.execute("SELECT name, value FROM counters"))
        found["counters"] = [
            (name, value)
            for name, value in sorted(telemetry.items())
            if name.split(b".")[0] in (b"queries", b"results", b"publications")
        ]
        return found


def flip(path: Path, choice: random.Random) -> str:
    offset = choice.randrange(path.stat().st_size)
    with path.open("r+b") as file:
        file.seek(offset)
        (before,) = file.read(1)
        after = before ^ choice.randrange(1, 256)
        file.seek(offset)
        file.write(bytes([after]))
    return f"byte {offset}: {before:#x} became {after:#x}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_flipped_byte_is_reported_or_changes_nothing(original: Path, tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    choice = random.Random(seed)
    expected = contents(original)
    clean = 0
    directory = tmp_path / "store"
    shutil.copytree(original, directory)
    intact = (directory / INDEX).read_bytes()
    for _ in range(100):
        (directory / INDEX).write_bytes(intact)
        what = flip(directory / INDEX, choice)
        try:
            findings = Store.fsck(directory)
        except ConfigError:
            continue  # a header that says another program or version
        if not findings:
            clean += 1
            assert contents(directory) == expected, what
    assert clean < 100


def test_a_query_with_a_senseless_number_is_reported_and_left_behind(original: Path, tmp_path: Path) -> None:
    directory = tmp_path / "store"
    shutil.copytree(original, directory)
    with closing(sqlite3.connect(directory / INDEX, isolation_level=None)) as connection:
        connection.execute("UPDATE queries SET number = 1 << 60 WHERE number = 12")
        connection.execute("UPDATE sqlite_sequence SET seq = 1 << 60")
    assert Store.fsck(directory)
    with Store.open(tmp_path / "new", create=True) as store:
        assert store.salvage(directory).queries >= 15


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_byte_of_a_journal_is_reported_or_changes_nothing(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    choice = random.Random(seed)
    killed = tmp_path / "killed"
    with Store.open(tmp_path / "store", create=True) as store:
        for number in range(6):
            store.ingest([query(number, path=(9, 8), witness=b"w")])
            store.complete([(lease, sat(lease)) for lease in store.claim("w", LEASE_S, 1)])
        shutil.copytree(tmp_path / "store", killed)
    (killed / f"{INDEX}-shm").unlink()
    assert Store.fsck(killed) == []
    journal = killed / f"{INDEX}-wal"
    intact = journal.read_bytes()
    expected = rows(killed)
    for _ in range(60):
        journal.write_bytes(intact)
        (killed / f"{INDEX}-shm").unlink(missing_ok=True)
        what = flip(journal, choice)
        try:
            findings = Store.fsck(killed)
        except ConfigError:
            continue  # what the journal would have made a store is none without it
        if not findings:
            assert rows(killed) == expected, what


def rows(directory: Path) -> list[list[tuple[object, ...]]]:
    with closing(sqlite3.connect(f"file:{directory / INDEX}?mode=ro", uri=True)) as connection:
        tables = ("queries", "texts", "results", "publications", "witnesses", "counters")
        return [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
