"""A reader that does not end is noticed: in the log, by status and in the metrics."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from smtspool.service import Campaign, journal, snapshot
from smtspool.service.journal import JournalWatch
from smtspool.store import Store
from tests.store.support import query

LONG_BYTES = 200_000
READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM queries").fetchall()
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(journal, "LONG_JOURNAL_BYTES", LONG_BYTES)
    campaign = Campaign.create(tmp_path / "campaign")
    with Store.open(campaign.store) as opened:
        yield opened


@contextmanager
def reader(store: Store) -> Iterator[int]:
    """A process that reads and does not end; its id."""
    command = [sys.executable, "-c", READER, str(store.directory / "index.sqlite3")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate()


def write(store: Store, first: int) -> None:
    store.ingest([query(first + more, witness=bytes(50_000)) for more in range(5)])


def test_a_reader_that_does_not_end_is_told_and_its_end_too(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watch = JournalWatch()
    campaign = Campaign.open(store.directory.parent)
    with reader(store) as process:
        for number in range(3):
            write(store, 10 * number)
            watch.look(store)
        (warning,) = (r for r in caplog.records if r.levelno == logging.WARNING)
        assert f"(process {process})" in warning.message
        now = snapshot(campaign, store)
        assert now.journal is not None and now.journal.stuck_since is not None
        assert now.journal.bytes == store.journal_bytes() > LONG_BYTES
        since = now.journal.stuck_since
        while store.journal_bytes() < 3 * now.journal.bytes:
            write(store, store.counts().total + 100)
        watch.look(store)
        assert len([r for r in caplog.records if r.levelno == logging.WARNING]) == 2
        assert journal.journal(store).stuck_since == since  # since it began
    watch.look(store)
    assert journal.journal(store).stuck_since is None
    assert "written back again" in caplog.text


def test_a_long_journal_that_is_written_back_is_no_trouble(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    watch = JournalWatch()
    for number in range(4):
        write(store, 10 * number)
        watch.look(store)
    assert store.journal_bytes() > LONG_BYTES
    assert journal.journal(store).stuck_since is None
    assert caplog.text == ""
