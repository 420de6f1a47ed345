"""Salvage saves what is sound of a damaged store, and never writes into that."""

from __future__ import annotations

import hashlib
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from smtspool.errors import InfrastructureError
from smtspool.query import QueryFile
from smtspool.store import Salvaged, Store
from tests.store.support import LEASE_S, TIMEOUT, UNSAT, query, sat

INDEX = "index.sqlite3"
QUERIES = 300
FILE = QueryFile("a.smt2", bytes(16), 100, 1000.0, (query(0, path=(9, 8)),))


@pytest.fixture
def damaged(directory: Path) -> Path:
    """A store, not damaged yet: a third is sat, a third unsat, one unknown, and the rest is open."""
    with Store.open(directory, create=True) as store:
        store.admit([FILE])
        store.ingest([query(n, path=(9, 8), witness=bytes([n % 256]) * 50) for n in range(QUERIES)])
        store.ingest([query(0, path=(9, 8), witness=b"another"), query(5, name="y", path=(9, 8))])
        leases = store.claim("w", LEASE_S, 201)
        answers = [sat(lease) if number % 2 else UNSAT for number, lease in enumerate(leases[1:])]
        store.complete([(leases[0], TIMEOUT), *zip(leases[1:], answers, strict=True)])
    return directory


def salvaged(damaged: Path, folder: Path) -> tuple[Salvaged, dict[str, str]]:
    """What was saved, and every answer in the new store, which is sound."""
    before = hashlib.sha256((damaged / INDEX).read_bytes()).digest()
    listing = sorted(damaged.iterdir())
    with Store.open(folder, create=True) as store:
        saved = store.salvage(damaged)
        answers = {result.query_id: result.answer.status.value for result in store.results()}
        assert store.counts().total == saved.queries
        assert saved.answers <= store.counts().done
    assert Store.fsck(folder) == []
    assert hashlib.sha256((damaged / INDEX).read_bytes()).digest() == before
    assert sorted(damaged.iterdir()) == listing
    return saved, answers


def answers_of(directory: Path) -> dict[str, str]:
    with Store.view(directory) as store:
        return {result.query_id: result.answer.status.value for result in store.results()}


def test_all_of_a_sound_store_is_saved(damaged: Path, tmp_path: Path) -> None:
    saved, answers = salvaged(damaged, tmp_path / "new")
    assert answers == answers_of(damaged)
    assert (saved.queries, saved.lost, saved.unreadable, saved.damage) == (QUERIES + 1, set(), 0, None)
    with Store.view(tmp_path / "new") as new, Store.view(damaged) as old:
        first = query(0, path=(9, 8)).id
        assert new.witnesses(first) == old.witnesses(first)
        assert len(new.witnesses(first)) == 2
        with new._db.read() as one, old._db.read() as other:
            listed = "SELECT number, file, submitted FROM submissions"
            assert one.execute(listed).fetchall() == other.execute(listed).fetchall() != []


def test_of_a_store_without_queries_nothing_is_missing(directory: Path, tmp_path: Path) -> None:
    Store.open(directory, create=True).close()
    assert salvaged(directory, tmp_path / "new") == (Salvaged(), {})


def test_damaged_rows_are_named_and_the_rest_is_saved(damaged: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(damaged / INDEX, isolation_level=None)) as raw:
        raw.execute("UPDATE texts SET body = x'00' WHERE query = 7")
        raw.execute("UPDATE results SET body = x'7b7d' WHERE number = 5")
        raw.execute("UPDATE queries SET timeout_ms = -1, priority = 9e999 WHERE number = 9")
        (lost,) = raw.execute("SELECT id FROM queries WHERE number = 7").fetchone()
        (unanswered,) = raw.execute(
            "SELECT id FROM queries WHERE number = (SELECT query FROM results WHERE number = 5)"
        ).fetchone()
    expected = answers_of_sound(damaged, {lost.hex(), unanswered.hex()})
    saved, answers = salvaged(damaged, tmp_path / "new")
    assert (saved.queries, saved.lost) == (QUERIES, {lost.hex()})
    assert answers == expected


def answers_of_sound(directory: Path, without: set[str]) -> dict[str, str]:
    with closing(sqlite3.connect(f"file:{directory / INDEX}?mode=ro&immutable=1", uri=True)) as raw:
        rows = raw.execute("SELECT q.id, r.status FROM results r JOIN queries q ON q.number = r.query")
        return {identity.hex(): status for identity, status in rows if identity.hex() not in without}


@pytest.mark.parametrize("seed", range(6))
def test_damaged_pages_cost_what_is_on_them(damaged: Path, tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    choice = random.Random(seed)
    sound = answers_of(damaged)
    pages = (damaged / INDEX).stat().st_size // 4096
    with (damaged / INDEX).open("r+b") as file:
        for page in choice.sample(range(1, pages), 4):
            file.seek(4096 * page)
            file.write(choice.randbytes(4096))
    assert Store.fsck(damaged)
    saved, answers = salvaged(damaged, tmp_path / "new")
    assert answers.items() <= sound.items()
    asked = {query(n, path=(9, 8)).id for n in range(QUERIES)} | {query(5, name="y", path=(9, 8)).id}
    assert saved.lost <= asked
    assert saved.damage or saved.queries + len(saved.lost) + saved.unreadable >= len(asked)


@pytest.mark.parametrize(("table", "queries", "answers"), [("results", QUERIES + 1, 0), ("texts", 0, 0)])
def test_a_damaged_line_of_the_schema_costs_its_table(
    damaged: Path, tmp_path: Path, table: str, queries: int, answers: int
) -> None:
    data = (damaged / INDEX).read_bytes()
    line = f"CREATE TABLE {table}".encode()
    assert line in data
    (damaged / INDEX).write_bytes(data.replace(line, line.replace(b" ", b"\xdf")))
    assert Store.fsck(damaged)
    saved, _ = salvaged(damaged, tmp_path / "new")
    assert (saved.damage, saved.queries, saved.answers, saved.unreadable) == (None, queries, answers, 0)
    assert len(saved.lost) == QUERIES + 1 - queries


def test_of_a_file_that_is_no_database_nothing_is_saved(damaged: Path, tmp_path: Path) -> None:
    (damaged / INDEX).write_bytes(b"nothing " * 1000)
    saved, answers = salvaged(damaged, tmp_path / "new")
    assert (saved.queries, answers) == (0, {})
    assert saved.damage is not None


def test_what_a_killed_service_left_in_the_journal_is_saved(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store", create=True) as store:
        store.ingest([query(number) for number in range(3000)])
        shutil.copytree(tmp_path / "store", tmp_path / "killed")
    assert (tmp_path / "killed" / INDEX).stat().st_size < 3000 * 64  # most of it is in the journal only
    with Store.open(tmp_path / "new", create=True) as new:
        assert new.salvage(tmp_path / "killed").queries == 3000


def test_a_full_disk_is_no_damage_of_what_is_saved(damaged: Path, tmp_path: Path) -> None:
    """Every refusal of the new store is told, none is taken for a damaged row."""
    told = 0
    for pages in range(40, 400, 20):
        with Store.open(tmp_path / str(pages), create=True) as new:
            new._db.connection.execute(f"PRAGMA max_page_count = {pages}")
            try:
                saved = new.salvage(damaged)
            except InfrastructureError as error:
                assert "disk is full" in str(error)
                told += 1
            else:
                assert (saved.queries, saved.answers) == (QUERIES + 1, 201)
    assert told
