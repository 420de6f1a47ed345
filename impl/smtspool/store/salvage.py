"""Saves what can be read of a damaged store, row by row, into another one.

The damaged store is only read. A range of rows that cannot be read is halved until the damaged rows are
alone; those are skipped. A row is saved only if it matches the digest it was stored with.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from smtspool.errors import InfrastructureError, MisuseError
from smtspool.query import Answer, Query, Witness, decode

from .answers import check_answer
from .database import INDEX_NAME, Database
from .ingest import ingest
from .journal import journal_bytes
from .queue import finish
from .rows import read_answer, read_query, read_witness
from .submissions import COLUMNS, INSERT_SUBMISSION, submission_of
from .views import connect_view

__all__ = ["Salvaged", "salvage"]

P = ParamSpec("P")
T = TypeVar("T")

CHUNK = 256
LONGEST_TIMEOUT_MS = 3_600_000
# Errors that reading the columns of a damaged row may raise; such a row is skipped.
_DAMAGED = (InfrastructureError, MisuseError, ValueError, TypeError, KeyError)
# A query takes at least so many bytes of the file; that limits their number when no counter can be read.
LEAST_ROW_BYTES = 64
# A query that is asked again gets a further result number; more often than so, on average, is not expected.
RETRIES = 100


@dataclass(slots=True)
class Salvaged:
    """What was saved and what is lost."""

    queries: int = 0
    answers: int = 0
    # Ids of queries whose row can be read and whose text cannot.
    lost: set[str] = field(default_factory=set)
    unreadable: int = 0  # queries of which nothing can be read
    damage: str | None = None  # why nothing at all could be read


def salvage(directory: Path, db: Database) -> Salvaged:
    """Save queries, witnesses, submissions and answers of the store in ``directory`` into an empty one."""
    saved = Salvaged()
    path = directory / INDEX_NAME
    try:
        connection, _ = connect_view(path, damaged=True)
    except (sqlite3.Error, UnicodeDecodeError, InfrastructureError) as error:
        saved.damage = str(error)
        return saved
    with closing(connection):
        # Every range is read in its own transaction, so that the journal of a running service does not grow.
        connection.text_factory = partial(str, encoding="utf-8", errors="backslashreplace")
        highest = _highest(connection, "SELECT max(number) FROM queries", "SELECT max(query) FROM texts")
        # A damaged counter may have any value.
        most = (path.stat().st_size + journal_bytes(path)) // LEAST_ROW_BYTES
        highest = most if highest is None else min(highest, most)
        ids: dict[int, str] = {}
        for low in range(1, highest + 1, CHUNK):
            ids |= _save_queries(connection, low, min(low + CHUNK - 1, highest), db, saved)
        last = _highest(connection, "SELECT seq FROM sqlite_sequence", "SELECT max(number) FROM results")
        for low in range(1, min(most if last is None else last, RETRIES * most) + 1, CHUNK):
            saved.answers += _save_answers(_rows(connection, _RESULTS, low, low + CHUNK - 1), ids, db)
    return saved


_QUERIES = "SELECT number, id, priority, timeout_ms FROM queries WHERE number BETWEEN ? AND ?"
_TEXTS = "SELECT query, body FROM texts WHERE query BETWEEN ? AND ?"
_WITNESSES = "SELECT query, digest, body FROM witnesses WHERE query BETWEEN ? AND ? ORDER BY query, position"
_SUBMISSIONS = f"SELECT query, mark, {COLUMNS} FROM submissions s WHERE query BETWEEN ? AND ?"
_RESULTS = "SELECT query, digest, body, completed FROM results WHERE number BETWEEN ? AND ?"


def _highest(connection: sqlite3.Connection, *statements: str) -> int | None:
    """The highest number that a statement gives, 0 if all find no row, None if none can be read."""
    found = []
    for statement in statements:
        try:
            (number,) = connection.execute(statement).fetchone() or (None,)
        except sqlite3.Error:
            continue
        if number is None or isinstance(number, int):
            found.append(number or 0)
    return max(found) if any(found) or len(found) == len(statements) else None


def _rows(connection: sqlite3.Connection, select: str, low: int, high: int) -> Iterator[tuple[Any, ...]]:
    """The rows whose numbers are in the range, without those that cannot be read."""
    try:
        yield from connection.execute(select, (low, high)).fetchall()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:
            return  # the table cannot be found because its line of the schema is damaged
        if low < high:
            middle = (low + high) // 2
            yield from _rows(connection, select, low, middle)
            yield from _rows(connection, select, middle + 1, high)


def _save_queries(
    connection: sqlite3.Connection, low: int, high: int, db: Database, saved: Salvaged
) -> dict[int, str]:
    """Save the queries with these numbers; number to id of those that were."""
    known = {number: more for number, *more in _rows(connection, _QUERIES, low, high)}
    witnesses: dict[int, list[Witness | None]] = defaultdict(list)
    for number, digest, body in _rows(connection, _WITNESSES, low, high):
        witness = _sound(read_witness, body, digest)
        if witness is not None:
            witnesses[number].append(witness)
    found: dict[int, Query] = {}
    for number, body in _rows(connection, _TEXTS, low, high):
        query = _sound(decode, body)  # compares it with its own digest
        identity, priority, timeout_ms = known.get(number, (None, None, None))
        if query is not None and identity in (None, bytes.fromhex(query.id)):
            found[number] = _as_it_became(query, priority, timeout_ms)
    for number, (identity, *_) in known.items():
        if number not in found and isinstance(identity, bytes):
            saved.lost.add(identity.hex())
    saved.unreadable += sum(number not in known and number not in found for number in range(low, high + 1))
    asked = [
        replace(query, witness=witness)
        for number, query in found.items()
        for witness in witnesses.get(number) or [None]
    ]
    saved.queries += sum(ingest(db, asked))
    ids = {number: query.id for number, query in found.items()}
    _save_submissions(_rows(connection, _SUBMISSIONS, low, high), ids, db)
    return ids


def _as_it_became(query: Query, priority: object, timeout_ms: object) -> Query:
    """``query`` with the priority and the limit of its row, if these are valid."""
    if isinstance(priority, float) and math.isfinite(priority):
        query = replace(query, priority=max(query.priority, priority))
    if isinstance(timeout_ms, int) and query.timeout_ms < timeout_ms <= LONGEST_TIMEOUT_MS:
        query = replace(query, timeout_ms=timeout_ms)
    return query


def _save_submissions(rows: Iterable[tuple[Any, ...]], ids: Mapping[int, str], db: Database) -> None:
    with db.write():
        db.queries.refresh()
        for old, mark, *columns in rows:
            number = db.queries.find(bytes.fromhex(ids[old])) if old in ids else None
            submission = _sound(submission_of, columns)
            if number is None or submission is None or not isinstance(mark, bytes):
                continue
            position, file, metadata, submitted, digest = columns
            db.connection.execute(
                INSERT_SUBMISSION, (number, mark, position, file, metadata, submitted, digest)
            )
            db.connection.execute(
                "UPDATE queries SET submissions = (SELECT count(*) FROM submissions WHERE query = ?1) "
                "WHERE number = ?1",
                (number,),
            )


def _save_answers(rows: Iterable[tuple[Any, ...]], ids: Mapping[int, str], db: Database) -> int:
    """Commit the answers of saved queries with their original times; returns how many."""
    count = 0
    with db.write() as now:
        db.queries.refresh()
        for old, digest, body, completed in rows:
            number = db.queries.find(bytes.fromhex(ids[old])) if old in ids else None
            if number is None or _answered(db, number):
                continue
            answer = _sound(_answer_of, read_query(db, number), body, digest)
            if answer is not None:
                when = completed if isinstance(completed, float) and 0 < completed <= now else now
                finish(db, when, number, answer)
                count += 1
    return count


def _answer_of(query: Query, body: bytes, digest: bytes) -> Answer:
    answer = read_answer(body, digest)
    check_answer(query, answer)
    return answer


def _sound(read: Callable[P, T], *columns: P.args, **named: P.kwargs) -> T | None:
    """The result of ``read`` on the columns of a row; None if they are damaged."""
    try:
        return read(*columns, **named)
    except _DAMAGED:
        return None


def _answered(db: Database, number: int) -> bool:
    select = "SELECT 1 FROM results WHERE query = ?"
    return db.connection.execute(select, (number,)).fetchone() is not None
