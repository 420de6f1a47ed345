"""Digests against a dictionary: several connections, transactions that fail, and trees that grow."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from smtspool.store import digests
from smtspool.store.database import Database

CONNECTIONS = st.integers(0, 2)
# Few of them, and many with the same first eight bytes, which is all that a tree knows of them.
DIGESTS = st.tuples(st.sampled_from((b"A" * 8, b"B" * 8)), st.binary(min_size=1, max_size=1)).map(b"".join)
INSERT = "INSERT INTO prefixes (number, parent, digest, depth) VALUES (?, 0, ?, 1)"


class Refused(Exception):
    """Why a transaction does not commit."""


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.known: dict[bytes, int] = {}
        self.directory = Path(tempfile.mkdtemp())
        self.connections = [Database(self.directory, clock=lambda: 0.0) for _ in range(3)]

    @initialize(size=st.integers(1, 4))
    def merge_after(self, size: int) -> None:
        digests.TAIL_ROWS = size

    @rule(which=CONNECTIONS, batch=st.lists(DIGESTS, min_size=1, max_size=6, unique=True), kept=st.booleans())
    def write(self, which: int, batch: list[bytes], kept: bool) -> None:
        """One batch in the manner of ingest: refresh, merge, look up, insert what is new."""
        db = self.connections[which]
        with suppress(Refused), db.write():
            db.prefixes.refresh()
            db.prefixes.merge_if_long()
            assert [db.prefixes.find(each) for each in batch] == [self.known.get(each) for each in batch]
            fresh = [each for each in batch if each not in self.known]
            rows = list(enumerate(fresh, db.prefixes.last + 1))
            db.connection.executemany(INSERT, rows)
            if not kept:
                raise Refused
            self.known.update((digest, number) for number, digest in rows)

    @rule(which=CONNECTIONS, digest=DIGESTS)
    def look(self, which: int, digest: bytes) -> None:
        db = self.connections[which]
        with db.read():
            db.prefixes.refresh()
            assert db.prefixes.find(digest) == self.known.get(digest)
            assert db.prefixes.last == len(self.known)

    @rule(which=CONNECTIONS)
    def reopen(self, which: int) -> None:
        self.connections[which].close()
        self.connections[which] = Database(self.directory, clock=lambda: 0.0)

    @invariant()
    def the_tree_holds_exactly_the_rows_up_to_merged(self) -> None:
        with self.connections[0].read() as connection:
            (merged,) = connection.execute("SELECT merged FROM trees WHERE name = 'prefixes'").fetchone()
            tree = connection.execute("SELECT number, key FROM prefixes_tree").fetchall()
        assert sorted(tree) == sorted(
            (number, digest[:8]) for digest, number in self.known.items() if number <= merged
        )

    def teardown(self) -> None:
        for db in self.connections:
            db.close()
        shutil.rmtree(self.directory)


def test_digests_are_a_dictionary_that_all_connections_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "TAIL_ROWS", digests.TAIL_ROWS)  # what the machine sets is put back
    Machine.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
    Machine.TestCase().runTest()
