"""Who only reads a store needs no right to write it, and leaves no trace."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from smtspool.errors import ConfigError, InfrastructureError, MisuseError
from smtspool.store import Finding, Store, Wanted, database, fsck
from tests.store.support import LEASE_S, UNSAT, in_child, query, start_child, wait_for

INDEX = "index.sqlite3"
QUERIES = 200
PENDING = 100  # of them


@pytest.fixture
def directory() -> Iterator[Path]:
    """A folder of ours that others may read and enter: nothing below pytest's own may be."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        directory = Path(name) / "store"
        with Store.open(directory, create=True) as store:
            store.ingest([query(number, path=(9, 8)) for number in range(QUERIES)])
            store.complete([(lease, UNSAT) for lease in store.claim("w", LEASE_S, QUERIES - PENDING)])
        yield directory
        directory.chmod(0o755)


def as_a_stranger(directory: Path, work: Callable[[], None]) -> None:
    """Do it where nothing in the folder may be written: as another user, or with the folder closed to us."""

    def stranger() -> int:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        work()
        return 0

    files = [directory, *directory.iterdir()]
    modes = [path.stat().st_mode for path in files]
    for path in files:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert in_child(stranger) == 0
    finally:
        for path, mode in zip(files, modes, strict=True):
            path.chmod(mode)


@contextmanager
def in_use(directory: Path, *, die: bool = False) -> Iterator[None]:
    """A process has the store open and has leased what is pending; with ``die`` it is killed at once."""
    command = [sys.executable, str(Path(__file__).with_name("owner_process.py")), str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().endswith(f" {PENDING}\n".encode())
            if die:
                process.kill()
                process.wait()
            yield
        finally:
            process.communicate()
    assert process.returncode == (-signal.SIGKILL if die else 0)


@contextmanager
def left_alone(directory: Path) -> Iterator[None]:
    yield


@contextmanager
def killed(directory: Path) -> Iterator[None]:
    with in_use(directory, die=True):
        yield


STATES = {"closed": (left_alone, 0), "in use": (in_use, PENDING), "left by the killed": (killed, PENDING)}


def contents(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("state", STATES)
def test_a_stranger_reads_all_of_it(directory: Path, state: str) -> None:
    made, leased = STATES[state]

    def read() -> None:
        with Store.view(directory) as store:
            assert (store.counts().total, store.counts().leased) == (QUERIES, leased)
            assert len(list(store.results())) == QUERIES - PENDING
            found = store.query(query(3, path=(9, 8)).id)
            assert found == query(3, path=(9, 8))
        assert Store.fsck(directory) == []

    with made(directory):
        before = contents(directory)
        as_a_stranger(directory, read)
        assert contents(directory) == before


def test_a_journal_that_cannot_be_read_where_it_lies_is_told(directory: Path) -> None:
    def read() -> None:
        with pytest.raises(InfrastructureError, match="copy the folder"):
            Store.view(directory)
        with pytest.raises(InfrastructureError, match="copy the folder"):
            Store.fsck(directory)

    with killed(directory):
        (directory / f"{INDEX}-shm").unlink()
        as_a_stranger(directory, read)
    with Store.view(directory) as store:  # its owner may make the index
        assert store.counts().leased == PENDING


def test_a_store_that_may_not_be_read_is_no_damaged_one(directory: Path) -> None:
    def read() -> None:
        (directory / INDEX).stat()
        with pytest.raises(InfrastructureError, match="may not read"):
            Store.fsck(directory)

    if os.geteuid() == 0:
        (directory / INDEX).chmod(0o600)
        assert in_child(lambda: os.setuid(65534) or read() or 0) == 0
    else:
        (directory / INDEX).chmod(0)
        read()


def test_a_view_leaves_no_trace(directory: Path) -> None:
    before = contents(directory)
    with Store.view(directory) as store:
        assert store.counts().total == QUERIES
        assert contents(directory) == before
    assert contents(directory) == before


def test_nothing_is_written_through_a_view(directory: Path) -> None:
    with Store.view(directory) as store:
        for write in (lambda: store.ingest([query(1)]), lambda: store.put("a", 1), store.republish):
            with pytest.raises(MisuseError, match="to be read"):
                write()


def test_a_view_follows_a_service_that_comes_and_goes(directory: Path) -> None:
    with Store.view(directory) as view:
        assert view.counts().leased == 0
        for _ in range(2):
            with in_use(directory):
                assert view.counts().leased == PENDING
            assert view.counts().leased == 0


def test_what_changes_while_it_is_read_without_locks_is_told(directory: Path) -> None:
    with Store.view(directory) as view:
        with (
            pytest.raises(InfrastructureError, match="came and went while it was read: try again"),
            view._db.read() as connection,
        ):
            connection.execute("SELECT count(*) FROM queries").fetchall()
            with in_use(directory):
                pass
        assert view.counts().total == QUERIES


def test_a_stranger_sees_whole_transactions_of_a_busy_service(directory: Path) -> None:
    ready, said = os.pipe()

    def work() -> int:
        with Store.open(directory) as store:
            store._db.connection.execute("PRAGMA wal_autocheckpoint = 10")
            number = QUERIES
            while True:
                store.ingest([query(number + more, path=(9, 8)) for more in range(10)])
                number += 10
                os.write(said, b".")

    def read() -> None:
        seen = []
        with Store.view(directory) as view:
            for _ in range(30):
                assert os.read(ready, 1) == b"."
                with view._db.read() as connection:
                    (total,) = connection.execute("SELECT count(*) FROM queries").fetchone()
                    (texts,) = connection.execute("SELECT count(*) FROM texts").fetchone()
                assert (texts, total % 10) == (total, 0)
                seen.append(total)
        assert seen == sorted(seen) and seen[-1] > seen[0]
        assert Store.fsck(directory) == []

    child = start_child(work)
    os.close(said)
    try:
        assert os.read(ready, 1) == b"."
        as_a_stranger(directory, read)
    finally:
        os.kill(child, signal.SIGKILL)
        wait_for(child)
        os.close(ready)


def test_an_older_store_is_left_to_its_services_and_explained(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = (*database.migrations(), "CREATE TABLE later (x);")
    before = contents(directory)
    with monkeypatch.context() as patched:
        patched.setattr(database, "migrations", lambda: newer)
        with pytest.raises(ConfigError, match="stop the services that use it, then `smtspool serve`"):
            Store.view(directory)
    assert contents(directory) == before


def test_no_reader_of_ours_keeps_the_journal_while_its_caller_thinks(directory: Path) -> None:
    with Store.view(directory) as view:
        iterators = (view.results(), view.listed(Wanted(open=True)), view.sat_publications())
        for rows in iterators:
            next(rows, None)
            assert not view._db.connection.in_transaction


def test_fsck_reads_rows_in_views_of_their_own(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsck, "CHUNK", 50)
    witnesses = fsck._witnesses
    seen = []

    def between(connection: sqlite3.Connection, low: int, high: int) -> Iterator[Finding]:
        seen.append((low, high))
        assert not connection.in_transaction
        return witnesses(connection, low, high)

    monkeypatch.setattr(fsck, "_witnesses", between)
    assert Store.fsck(directory) == []
    assert seen == [(1, 50), (51, 100), (101, 150), (151, 200)]
