"""Admission: a batch of queries becomes durable in one transaction, each stored once.

The same transaction records their submissions (:mod:`.submissions`) and counts the files. Queries are encoded
and hashed before the write lock is taken. Rows are collected and inserted table by table.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from smtspool.query import Query, QueryFile, Status, spelled

from .database import Database
from .digests import Digests
from .forms import HURRY_LEADER, FormRow, FormState, form_row, place, reopen
from .outbox import due_again
from .rows import digest_of, text_body, witness_body
from .submissions import INSERT_SUBMISSION, submission_row
from .values import State

__all__ = ["MAX_WITNESSES", "admit", "ingest"]

# Witnesses kept of one query, since a fleet may send the same query with ever new inputs. All of them are in
# memory when the files of a query are written, so those after the first may take only so many stored bytes.
MAX_WITNESSES = 64
MAX_WITNESS_BYTES = 64 * 1024 * 1024

_INSERT_PREFIX = "INSERT INTO prefixes (number, parent, digest, depth) VALUES (?, ?, ?, ?)"
_INSERT_FORM = "INSERT INTO forms (number, digest, leader) VALUES (?, ?, ?)"
_INSERT_QUERY = (
    "INSERT INTO queries "
    "(number, id, form, prefix, depth, priority, timeout_ms, created, submissions, state) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_TEXT = "INSERT INTO texts (query, body) VALUES (?, ?)"
_INSERT_WITNESS = "INSERT INTO witnesses (query, position, digest, body) VALUES (?, ?, ?, ?)"
_APPOINT_LEADER = "UPDATE forms SET leader = ? WHERE number = ?"
# In the order in which they are executed: a row refers only to tables written before its own.
_STATEMENTS = (
    *(_INSERT_PREFIX, _INSERT_FORM, _INSERT_QUERY, _INSERT_TEXT, _INSERT_WITNESS, INSERT_SUBMISSION),
    *(_APPOINT_LEADER, HURRY_LEADER),
)

_Rows = dict[str, list[tuple[object, ...]]]


@dataclass(frozen=True, slots=True)
class _Prepared:
    query: Query
    identity: bytes
    body: bytes
    witness: tuple[bytes, bytes] | None  # digest, body
    origin: tuple[QueryFile, int] | None = None  # the number of its check-sat, from 1


def admit(db: Database, files: Sequence[QueryFile], limit_ms: int | None = None) -> list[bool]:
    """Store the queries of the files durably, all or none; see :meth:`Store.admit`."""
    prepared = [
        _prepare(query, (file, number)) for file in files for number, query in enumerate(file.queries, 1)
    ]
    return _store(db, prepared, limit_ms) if prepared else []


def ingest(db: Database, queries: Sequence[Query]) -> list[bool]:
    """Store queries that come from no file; see :meth:`Store.ingest`."""
    return _store(db, [_prepare(query) for query in queries], None) if queries else []


def _store(db: Database, prepared: Sequence[_Prepared], limit_ms: int | None) -> list[bool]:
    with db.write() as now:
        for digests in (db.queries, db.forms, db.prefixes):
            digests.refresh()
            digests.merge_if_long()
        batch = _Batch(db, now, limit_ms)
        created = [batch.add(entry) for entry in prepared]
        batch.insert()
        _count(db, now, batch.recorded.values())
    return created


def _count(db: Database, now: float, files: Collection[QueryFile]) -> None:
    """Count the files that were not recorded before."""
    if files:
        db.bump("admission.accepted", len(files))
        db.bump("admission.bytes", sum(file.size for file in files))
        db.bump("admission.latency_seconds", sum(max(0.0, now - file.since) for file in files))
        db.bump("admission.latency_count", len(files))


def _prepare(query: Query, origin: tuple[QueryFile, int] | None = None) -> _Prepared:
    witness = None
    if query.witness is not None:
        encoded = witness_body(query.witness)
        witness = digest_of(encoded), encoded
    return _Prepared(query, bytes.fromhex(query.id), text_body(query), witness, origin)


@dataclass(slots=True)
class _Batch:
    """The rows of one ingest, and what it already looked up."""

    db: Database
    now: float
    limit_ms: int | None  # what the service gives every query, whatever the query says
    numbers: dict[bytes, int] = field(default_factory=dict)  # id -> row, of queries not inserted yet
    inserted: dict[bytes, int] = field(default_factory=dict)  # and of those that are
    prefixes: dict[bytes, int] = field(default_factory=dict)
    forms: dict[bytes, FormRow] = field(default_factory=dict)
    rows: _Rows = field(default_factory=lambda: {statement: [] for statement in _STATEMENTS})
    recorded: dict[bytes, QueryFile] = field(default_factory=dict)  # mark -> file, of those not seen before
    # Queries whose form is answered unsat: they need no solving.
    answered: list[tuple[int, int]] = field(default_factory=list)
    last: dict[Digests, int] = field(default_factory=dict)  # highest row number in use

    def add(self, entry: _Prepared) -> bool:
        if entry.identity in self.numbers:
            self.insert()
        number = self.inserted.get(entry.identity) or self.db.queries.find(entry.identity)
        if number is not None:
            self._replay(number, entry)
            return False
        self._create(entry)
        return True

    def _create(self, entry: _Prepared) -> None:
        query = entry.query
        number = self.numbers[entry.identity] = self._number(self.db.queries)
        form, state = self._place(number, entry)
        path = [bytes.fromhex(level.key) for level in query.levels[:-1]]
        self.rows[_INSERT_QUERY].append(
            (
                number,
                entry.identity,
                form,
                self._prefix(path),
                len(path),
                query.priority,
                query.timeout_ms,
                self.now,
                0 if entry.origin is None else 1,
                state,
            )
        )
        self.rows[_INSERT_TEXT].append((number, entry.body))
        if entry.witness is not None:
            self.rows[_INSERT_WITNESS].append((number, 0, *entry.witness))
        if entry.origin is not None:
            file, position = entry.origin
            self.rows[INSERT_SUBMISSION].append(self._submission(number, query, file, position))
            self.recorded[file.mark] = file

    def _submission(self, number: int, query: Query, file: QueryFile, position: int) -> tuple[object, ...]:
        return submission_row(number, file.mark, position, spelled(file.name), query.metadata, self.now)

    def _replay(self, number: int, entry: _Prepared) -> None:
        query, connection = entry.query, self.db.connection
        recorded = entry.origin is not None and self._record(number, query, *entry.origin)
        priority, timeout_ms, status = connection.execute(
            "SELECT priority, timeout_ms, (SELECT status FROM results WHERE query = queries.number) "
            "FROM queries WHERE number = ?",
            (number,),
        ).fetchone()
        timeout_ms = max(timeout_ms, query.timeout_ms)
        connection.execute(
            "UPDATE queries SET priority = max(priority, ?), timeout_ms = ?, submissions = submissions + ? "
            "WHERE number = ?",
            (query.priority, timeout_ms, recorded, number),
        )
        if query.priority > priority:
            connection.execute(HURRY_LEADER, (number,))
        if recorded or entry.origin is None:
            self.db.bump("replayed")
        witnessed = entry.witness is not None and self._add_witness(number, *entry.witness)
        if status is None:
            return
        if status in (Status.UNKNOWN, Status.ERROR) and self._reopen(number, self.limit_ms or timeout_ms):
            return
        if recorded or witnessed:
            due_again(self.db, self.now, number, submitted=recorded)

    def _reopen(self, number: int, limit_ms: int) -> bool:
        """See :func:`.reopen`. It reads and writes the row of the form, which a query that was collected may
        have been given to lead."""
        self.insert()
        self.forms.clear()
        return reopen(self.db, self.now, number, limit_ms)

    def _record(self, number: int, query: Query, file: QueryFile, position: int) -> bool:
        """False if this very file was admitted before, by a service that died before it moved the file."""
        row = self._submission(number, query, file, position)
        if not self.db.connection.execute(INSERT_SUBMISSION, row).rowcount:
            return False
        self.recorded[file.mark] = file
        return True

    def _add_witness(self, number: int, digest: bytes, body: bytes) -> bool:
        """Keep the witness; False if it is known, or if there are too many."""
        connection = self.db.connection
        known = dict(
            connection.execute("SELECT digest, length(body) FROM witnesses WHERE query = ?", (number,))
        )
        if digest in known:
            return False
        size = sum(known.values()) + len(body)
        if known and (len(known) >= MAX_WITNESSES or size > MAX_WITNESS_BYTES):
            self.db.bump("witnesses.dropped")
            return False
        connection.execute(_INSERT_WITNESS, (number, len(known), digest, body))
        return True

    def _place(self, number: int, entry: _Prepared) -> tuple[int, State]:
        """Row of the query's form, and the state in which the query starts."""
        digest = bytes.fromhex(entry.query.form.digest)
        form = self.forms.get(digest) or self._known_form(digest)
        if form is None:
            form = FormRow(self._number(self.db.forms), leader=number)
            self.rows[_INSERT_FORM].append((form.number, digest, number))
        elif form.state is FormState.OPEN and form.leader is not None:
            self.rows[HURRY_LEADER].append((number,))
            return form.number, State.WAITING
        elif form.state is FormState.OPEN:
            form.leader = number
            self.rows[_APPOINT_LEADER].append((number, form.number))
        elif form.state is FormState.ANSWERED and form.status is Status.UNSAT:
            self.answered.append((form.number, number))
        self.forms[digest] = form
        return form.number, State.PENDING

    def _known_form(self, digest: bytes) -> FormRow | None:
        number = self.db.forms.find(digest)
        return None if number is None else form_row(self.db, number)

    def _prefix(self, path: list[bytes]) -> int:
        """Row of the prefix. Its levels are looked up from the deepest one on, and new ones are added."""
        missing: list[bytes] = []
        row = 0
        for digest in reversed(path):
            found = self._known_prefix(digest)
            if found is not None:
                row = found
                break
            missing.append(digest)
        depth = len(path) - len(missing)
        for digest in reversed(missing):
            depth += 1
            parent, row = row, self._number(self.db.prefixes)
            self.prefixes[digest] = row
            self.rows[_INSERT_PREFIX].append((row, parent, digest, depth))
        return row

    def _known_prefix(self, digest: bytes) -> int | None:
        row = self.prefixes.get(digest) or self.db.prefixes.find(digest)
        if row is not None:
            self.prefixes[digest] = row
        return row

    def _number(self, digests: Digests) -> int:
        """The next row number of a table; chosen here so that rows can refer to rows not inserted yet."""
        number = self.last.get(digests, digests.last) + 1
        self.last[digests] = number
        return number

    def insert(self) -> None:
        """Write what was collected."""
        for statement, rows in self.rows.items():
            self.db.connection.executemany(statement, rows)
            rows.clear()
        for form, number in self.answered:
            place(self.db, self.now, form, number)
        self.answered.clear()
        self.inserted.update(self.numbers)
        self.numbers.clear()
