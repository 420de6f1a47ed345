"""Verification of a whole store, changing nothing.

Every text is read and checked against its digest, every row against the rows it refers to, every counter
against what it counts. Checks over many rows are one transaction each, and tables are read in pieces, each in
its own transaction. So a running service does not disturb the checks, and they do not hold its journal for
long. If a service starts while a store is read that no process had open, the store is read again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from smtspool.errors import InfrastructureError, MisuseError
from smtspool.query import Query

from .answers import check_answer
from .contradictions import CONTRADICTIONS, Fault
from .database import INDEX_NAME, MIGRATIONS, check_version, described, migrate, migrations, no_store
from .digests import DIGEST_COLUMNS
from .frames import unread_commits
from .presence import OWNERS_NAME
from .rows import Damaged, decoded, digest_of, read_answer
from .submissions import COLUMNS, submission_of
from .views import Unused, connect_view, journal_of, unused

__all__ = ["Fault", "Finding", "check_store"]


# Columns of which only the type is checked: times, orders of work, counts of tries, messages. No answer
# depends on them. The same holds for telemetry and for what the service learnt about engines.
NOT_COVERED = frozenset(
    {
        *("queries.priority", "queries.timeout_ms", "queries.created", "queries.token", "queries.attempts"),
        *("queries.deaths", "queries.failure", "results.completed", "results.limit_ms", "knowledge.value"),
        *("publications.due", "publications.failures", "publications.failure"),
        *("submissions.mark", "submissions.submitted"),
    }
)

# Queries that are read in one view.
CHUNK = 256

# The errors of SQLite that mean a damaged file or disk.
_DAMAGE = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_ERROR}
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong in a store."""

    fault: Fault
    subject: str  # id of the query, or name of the row
    message: str


def check_store(directory: Path) -> list[Finding]:
    """Everything that is wrong with the store in ``directory``; empty when all is well.

    Raises MisuseError if there is none, ConfigError if another version of smtspool wrote it, and
    InfrastructureError if it cannot be read, damaged or not.
    """
    path = directory / INDEX_NAME
    if not path.is_file():
        raise no_store(directory)
    while True:
        findings, state = _checked(path, directory)
        if state is None or state == unused(path):
            return findings


def _checked(path: Path, directory: Path) -> tuple[list[Finding], Unused | None]:
    """The findings, and the state of the file if it was read without locks."""
    state = None
    found: list[Finding] = []
    try:
        with described(path, writes=False):
            connection, state = connect_view(path)
            with closing(connection):
                # Damaged text is to be reported, not to end the report.
                connection.text_factory = partial(str, encoding="utf-8", errors="backslashreplace")
                found.extend(_journal(path))
                for finding in _findings(connection, directory):
                    found.append(finding)  # one by one, so that findings before an error are kept
    except (InfrastructureError, sqlite3.Error) as error:
        cause = error.__cause__ or error
        if getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF not in _DAMAGE:
            raise  # this user may not read the store, which is no finding
        message = f"the store is damaged: run `smtspool salvage` ({cause})"
        found.append(Finding(Fault.DATABASE, str(path), message))
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        if not any(finding.fault is Fault.DATABASE for finding in found):
            raise  # SQLite checks the type of every value, so this is a defect of smtspool
        found.append(Finding(Fault.DATABASE, str(path), f"a value that cannot be read: {error}"))
    return found, state


def _findings(connection: sqlite3.Connection, directory: Path) -> Iterator[Finding]:
    check_version(connection, directory / INDEX_NAME, len(MIGRATIONS))
    connection.execute("BEGIN")
    yield from _schema(connection)
    for (message,) in connection.execute("PRAGMA integrity_check"):
        if message != "ok":
            yield Finding(Fault.DATABASE, INDEX_NAME, message)
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield Finding(Fault.REFERENCE, f"{table} {row}", f"speaks of a row of {parent} that is not there")
    for fault, message, statement in CONTRADICTIONS:
        for (subject,) in connection.execute(statement):
            yield Finding(fault, str(subject), message)
    yield from _trees(connection)
    yield from _counters(connection)
    yield from _owners(connection, directory)
    chains = {0: b""}
    high = -1
    while (low := _first_after(connection, high)) is not None:
        high = low + CHUNK - 1
        yield from _queries(connection, chains, low, high)
        yield from _witnesses(connection, low, high)
        yield from _submissions(connection, low, high)


def _first_after(connection: sqlite3.Connection, number: int) -> int | None:
    """The lowest number of a query above this one; a damaged one may be very high."""
    (first,) = connection.execute("SELECT min(number) FROM queries WHERE number > ?", (number,)).fetchone()
    return None if first is None else int(first)


def _journal(path: Path) -> Iterator[Finding]:
    """A finding if SQLite does not read all of the journal; none if the journal is being written."""
    journal = journal_of(path)
    try:
        before = journal.stat()
        unread = unread_commits(journal)
        after = journal.stat()
    except FileNotFoundError:
        return
    if unread and (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
        yield Finding(
            Fault.DATABASE,
            journal.name,
            f"is damaged: {unread} transactions at its end are not read. After a power cut nobody was told "
            "that they were stored; else submit the newest files of accepted/ again",
        )


def _schema(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Tables, indexes and triggers are those that this version makes."""
    select = "SELECT name, type, tbl_name, replace(sql, '\"', '') FROM sqlite_schema"
    with closing(_new_store()) as sound:
        expected = set(sound.execute(select))
    for name, *_ in sorted(expected ^ set(connection.execute(select)), key=repr):
        yield Finding(Fault.DATABASE, str(name), "is not as this version makes it")


def _new_store() -> sqlite3.Connection:
    """A store as this version makes it, in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection, Path(":memory:"), migrations())
    return connection


def _queries(
    connection: sqlite3.Connection, chains: dict[int, bytes], low: int, high: int
) -> Iterator[Finding]:
    """Each query with its text, its prefix chain, its form and its result."""
    rows = connection.execute(
        "SELECT q.number, q.id, q.prefix, q.depth, q.state, f.digest, t.body, r.status, r.digest, r.body "
        "FROM queries q LEFT JOIN forms f ON f.number = q.form LEFT JOIN texts t ON t.query = q.number "
        "LEFT JOIN results r ON r.query = q.number WHERE q.number BETWEEN ? AND ?",
        (low, high),
    )
    for _, identity, prefix, depth, state, form, body, status, answer_digest, answer in rows:
        subject = identity.hex()
        if (state == "done") != (answer is not None):
            message = "done without a result" if answer is None else f"has a result and is {state}"
            yield Finding(Fault.RESULT, subject, message)
        if body is None:
            yield Finding(Fault.TEXT, subject, "its text is missing")
            continue
        try:
            query = decoded(body, identity)
        except Damaged as error:
            yield Finding(Fault.TEXT, subject, str(error))
            continue
        if form is not None and bytes.fromhex(query.form.digest) != form:
            yield Finding(Fault.FORM, subject, "its row names another form than its text has")
        yield from _prefix(connection, chains, subject, query, prefix, depth)
        if answer is not None:
            yield from _result(subject, query, status, answer_digest, answer)


def _prefix(
    connection: sqlite3.Connection,
    sound: dict[int, bytes],
    subject: str,
    query: Query,
    prefix: int,
    depth: int,
) -> Iterator[Finding]:
    """Its chain of prefix rows, compared with its text down to a row that was found ``sound`` before."""
    keys = [b"", *(bytes.fromhex(level.key) for level in query.levels[:-1])]
    if depth != len(keys) - 1:
        yield Finding(Fault.PREFIX, subject, f"its row says depth {depth}, its text {len(keys) - 1}")
    chain = {}
    while prefix not in sound and len(keys) > 1:
        found = connection.execute(
            "SELECT digest, depth, parent FROM prefixes WHERE number = ?", (prefix,)
        ).fetchone()
        if found is None or found[:2] != (keys[-1], len(keys) - 1):
            break
        chain[prefix] = keys.pop()
        prefix = found[2]
    if sound.get(prefix) != keys[-1]:
        yield Finding(Fault.PREFIX, subject, "its row names another prefix than its text has")
    else:
        sound.update(chain)


def _result(subject: str, query: Query, status: str, digest: bytes, body: bytes) -> Iterator[Finding]:
    try:
        answer = read_answer(body, digest)
        if answer.status.value != status:
            yield Finding(Fault.RESULT, subject, f"its row says {status}, its answer {answer.status}")
        check_answer(query, answer)
    except (Damaged, MisuseError) as error:
        yield Finding(Fault.RESULT, subject, str(error))


def _witnesses(connection: sqlite3.Connection, low: int, high: int) -> Iterator[Finding]:
    rows = connection.execute(
        "SELECT q.id, w.position, w.digest, w.body FROM witnesses w JOIN queries q ON q.number = w.query "
        "WHERE w.query BETWEEN ? AND ?",
        (low, high),
    )
    for identity, position, digest, body in rows:
        if digest_of(body) != digest:
            yield Finding(Fault.WITNESS, identity.hex(), f"witness {position} does not match its digest")


def _submissions(connection: sqlite3.Connection, low: int, high: int) -> Iterator[Finding]:
    rows = connection.execute(
        f"SELECT q.id, {COLUMNS} FROM submissions s JOIN queries q ON q.number = s.query "
        "WHERE s.query BETWEEN ? AND ?",
        (low, high),
    )
    for identity, *columns in rows:
        try:
            submission_of(columns)
        except Damaged as error:
            yield Finding(Fault.SUBMISSION, identity.hex(), str(error))


def _trees(connection: sqlite3.Connection) -> Iterator[Finding]:
    for table, column in DIGEST_COLUMNS.items():
        for number, digest in connection.execute(
            f"SELECT number, {column} FROM {table} r JOIN trees ON name = '{table}' "
            f"WHERE number BETWEEN 1 AND merged AND NOT EXISTS (SELECT 1 FROM {table}_tree t "
            f"WHERE t.key = substr(r.{column}, 1, 8) AND t.number = r.number)"
        ):
            yield Finding(Fault.TREE, digest.hex(), f"row {number} of {table} is not in its tree")
        for merged, held in connection.execute(
            f"SELECT merged, (SELECT count(*) FROM {table}_tree) FROM trees WHERE name = '{table}'"
        ):
            if merged != held:
                yield Finding(Fault.TREE, table, f"its tree holds {held} rows, not {merged}")
        for (digest,) in connection.execute(f"SELECT {column} FROM {table} GROUP BY 1 HAVING count(*) > 1"):
            yield Finding(Fault.TREE, digest.hex(), f"has several rows in {table}")


def _counters(connection: sqlite3.Connection) -> Iterator[Finding]:
    kept = dict(connection.execute("SELECT name, value FROM counters"))
    with closing(_new_store()) as sound:
        names = sorted({*kept, *(name for (name,) in sound.execute("SELECT name FROM counters"))})
    counted = {name: 0 for name in names if name.split(".")[0] in ("queries", "results", "publications")}
    for table, column in (("queries", "state"), ("results", "status"), ("publications", "state")):
        for value, number in connection.execute(f"SELECT {column}, count(*) FROM {table} GROUP BY 1"):
            counted[f"{table}.{value}"] = number
    for name, number in counted.items():
        if kept.get(name) != number:
            yield Finding(Fault.COUNTER, name, f"says {kept.get(name)}, there are {number}")


def _owners(connection: sqlite3.Connection, directory: Path) -> Iterator[Finding]:
    """Owners without their lock file. Ends the transaction, since files are not part of its view."""
    suspects = [
        name
        for name, token in connection.execute("SELECT name, token FROM owners").fetchall()
        if not (directory / OWNERS_NAME / f"{token}.lock").is_file()
    ]
    connection.execute("ROLLBACK")
    # An owner that ends removes its row before its file. So if it ended meanwhile, its row is gone by now.
    registered = {name for (name,) in connection.execute("SELECT name FROM owners")}
    for name in suspects:
        if name in registered:
            yield Finding(Fault.OWNER, name, "is registered without a lock file; `smtspool serve` removes it")
