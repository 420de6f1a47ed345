"""A store that version 1 wrote is read on: each query has the one submission that was known."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from smtspool.errors import InfrastructureError
from smtspool.query import Answer, Query, QueryFile, file_mark
from smtspool.store import Patience, Store, database
from smtspool.store.database import Database
from smtspool.store.owners import Owner
from smtspool.store.presence import OWNERS_NAME, Presence
from smtspool.store.rows import answer_body, digest_of, text_body
from tests.store.support import LEASE_S, TIMEOUT, UNSAT, query


def version_1(directory: Path, *entries: tuple[Query, Answer | None], damaged: bool = False) -> None:
    """What version 1 wrote when it had admitted and answered these at time 500."""
    with (
        closing(Database(directory, clock=lambda: 0.0, scripts=database.migrations()[:1])) as old,
        old.write(),
    ):
        connection = old.connection
        for number, (asked, answer) in enumerate(entries, 1):
            connection.execute(
                "INSERT INTO forms (number, digest, leader) VALUES (?, ?, ?)",
                (number, bytes.fromhex(asked.form.digest), None if answer else number),
            )
            connection.execute(
                "INSERT INTO queries (number, id, form, prefix, depth, priority, timeout_ms, created, state) "
                "VALUES (?, ?, ?, 0, 0, 0.0, ?, 500.0, ?)",
                (number, bytes.fromhex(asked.id), number, asked.timeout_ms, "done" if answer else "pending"),
            )
            body = text_body(asked)
            connection.execute("INSERT INTO texts VALUES (?, ?)", (number, body[:-9] if damaged else body))
            if answer is not None:
                kept = answer_body(answer)
                connection.execute(
                    "INSERT INTO results (number, query, status, digest, body, completed) "
                    "VALUES (?1, ?1, ?2, ?3, ?4, 501.0)",
                    (number, answer.status, digest_of(kept), kept),
                )
                connection.execute("INSERT INTO publications (result, due) VALUES (?, 0.0)", (number,))


def test_each_query_has_the_submission_that_was_known(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    told = replace(query(1), metadata={"who": "m\u00fcller", "site": [1, 2.5, None]})
    version_1(directory, (told, UNSAT), (query(2), None))
    with Store.open(directory) as store:
        (only,) = store.submissions(told.id).listed
        assert (only.file, only.number, only.submitted) == (None, None, 500.0)
        assert only.metadata == told.metadata
        (only,) = store.submissions(query(2).id).listed
        assert only.metadata == {}
        (due,) = store.due_publications(9)
        assert (due.remarks.metadata, due.submissions.total) == (told.metadata, 1)
        store.admit([QueryFile("a.smt2", file_mark("a.smt2", 1, 0), 1, 0.0, (query(2),))])
        assert [one.file for one in store.submissions(query(2).id).listed] == [None, "a.smt2"]
    assert Store.fsck(directory) == []


def test_a_text_that_is_damaged_does_not_keep_a_store_from_being_migrated(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    version_1(directory, (replace(query(1), metadata={"who": 1}), None), damaged=True)
    with Store.open(directory) as store:
        assert store.submissions(query(1).id).listed[0].metadata == {}


def test_a_timeout_of_version_1_is_opened_again_by_a_larger_limit(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    version_1(directory, (query(1, timeout_ms=5), TIMEOUT), (query(2, timeout_ms=5), UNSAT))
    with Store.open(directory) as store:
        store.ingest([query(1, timeout_ms=5), query(2, timeout_ms=9)])
        assert store.claim("w", LEASE_S, 9) == []
        store.ingest([query(1, timeout_ms=6)])
        assert [lease.query.timeout_ms for lease in store.claim("w", LEASE_S, 9)] == [6]


def test_a_store_that_a_service_of_its_version_uses_is_not_migrated(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    (directory / OWNERS_NAME).mkdir(exist_ok=True)
    version_1(directory, (query(1), None))
    older = database.migrations()[:1]
    with closing(Database(directory, clock=lambda: 0.0, scripts=older)) as old:
        with (
            Owner(old, Patience()),
            pytest.raises(InfrastructureError, match=rf"in use by an older smtspool, pid {os.getpid()} on"),
        ):
            Store.open(directory)
        assert old.connection.execute("PRAGMA user_version").fetchone() == (1,)
    with Store.open(directory) as store:
        assert store.counts().pending == 1


def test_a_service_of_the_older_version_that_died_keeps_nobody(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    (directory / OWNERS_NAME).mkdir(exist_ok=True)
    version_1(directory, (query(1), None))
    older = database.migrations()[:1]
    presence = Presence(directory)
    with closing(Database(directory, clock=lambda: 0.0, scripts=older)) as old:
        Owner(old, Patience(), presence)
        presence.close()  # registered, so the file stays
    with Store.open(directory) as store:
        assert store.reap() == 0
    assert list((directory / OWNERS_NAME).iterdir()) == []
