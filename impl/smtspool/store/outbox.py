"""Which results still have to be written as files.

A committed result is final; its files are derived from it and may be derived again at any time. The
outbox only records which are due, how often writing failed, and which were given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from smtspool.backoff import backoff_seconds
from smtspool.query import Remarks

from .database import Database
from .rows import Damaged, read_answer, read_query, read_remarks, read_witnesses
from .submissions import read_submissions
from .values import Publication, Result

__all__ = [
    "Backoff",
    "due_again",
    "due_publications",
    "publication_failed",
    "published",
    "republish",
    "revive_publications",
    "sat_publications",
]

MAX_FAILURE_CHARS = 4096
# Stored bytes handed out at once. Without a limit, a service that is killed for its memory would be handed
# the same again.
PASS_BYTES = 64 * 1024 * 1024

_DUE = (
    "SELECT p.result, p.due, p.failures, r.query, length(r.body) "
    "+ (SELECT total(length(body)) FROM texts WHERE query = r.query) "
    "+ (SELECT total(length(body)) FROM witnesses WHERE query = r.query) "
    "FROM publications p INDEXED BY publications_due JOIN results r ON r.number = p.result "
    "WHERE p.state = 'due' AND {} ORDER BY p.due LIMIT :limit"
)
# Taken in this order. A due date in the future is right only after a failure, and only within the longest
# delay; any other was written before the clock was set back, and such a publication is due now.
_WHEN = ("p.due <= :now", "p.due > :now AND (p.failures = 0 OR p.due > :now + :max_s)")


@dataclass(frozen=True, slots=True)
class Backoff:
    """When a failed publication is tried again: min(max_s, base_s * 2^(n-1)) after the n-th failure."""

    base_s: float = 1.0
    max_s: float = 300.0
    failures: int = 8  # after so many it becomes a dead letter

    def delay(self, failures: int) -> float:
        return backoff_seconds(failures, first=self.base_s, most=self.max_s)


def due_publications(db: Database, limit: int, backoff: Backoff) -> list[Publication]:
    """The publications that are due, longest due first. One with damaged rows becomes a dead letter.

    As many as fit into ``PASS_BYTES``; one that is larger is handed out alone.
    """
    found: list[Publication] = []
    damaged: list[tuple[int, Damaged]] = []
    with db.read() as connection:
        asked = {"now": db.now(), "max_s": backoff.max_s, "limit": limit}
        tried = (connection.execute(_DUE.format(when), asked).fetchall() for when in _WHEN)
        rows = next(filter(None, tried), [])
        sizes = accumulate(size for *_, size in rows)
        fitting = max(1, sum(size <= PASS_BYTES for size in sizes))
        for number, since, failures, query, _ in rows[:fitting]:
            try:
                found.append(_read(db, number, since, failures, query))
            except Damaged as error:
                damaged.append((number, error))
    for number, damage in damaged:
        publication_failed(db, number, str(damage), backoff, final=True)
    return found


def _read(db: Database, number: int, since: float, failures: int, query: int) -> Publication:
    identity, digest, body, completed = db.connection.execute(
        "SELECT q.id, r.digest, r.body, r.completed FROM results r JOIN queries q ON q.number = r.query "
        "WHERE r.number = ?",
        (number,),
    ).fetchone()
    result = Result(number, identity.hex(), read_answer(body, digest), completed)
    witnesses = tuple(read_witnesses(db, query))
    submissions = read_submissions(db, query)
    # The query's own symbols matter only if no witness says which symbol is which byte.
    unsaid = result.answer.model is not None and not any(witness.symbols for witness in witnesses)
    asked = read_query(db, query) if unsaid else None
    remarks = read_remarks(db, query) if asked is None else Remarks(asked.metadata, asked.notes)
    return Publication(number, remarks, witnesses, submissions, asked, result, failures, since)


def sat_publications(db: Database) -> Iterator[Publication]:
    """The publications of all ``sat`` answers, whatever their state, one after the other. Raises Damaged."""
    after = 0
    while True:
        with db.read() as connection:
            row = connection.execute(
                "SELECT r.number, p.due, p.failures, r.query FROM results r "
                "JOIN publications p ON p.result = r.number "
                "WHERE r.number > ? AND r.status = 'sat' ORDER BY r.number LIMIT 1",
                (after,),
            ).fetchone()
            if row is None:
                return
            found = _read(db, *row)
        yield found
        after = found.id


def published(db: Database, written: Iterable[Publication], inputs: Mapping[int, int]) -> None:
    """Record that the files of these publications are durable; ``inputs`` maps ids to numbers of new inputs.

    A publication that got a further witness or submission since it was read, or that is to be written again,
    stays due, since the written files lack that. Witnesses and submissions are never removed, so comparing
    their numbers is enough.
    """
    written = list(written)
    with db.write() as now:
        _count_inputs(db, now, {one.id: inputs.get(one.id, 0) for one in written})
        db.connection.executemany(
            "UPDATE publications SET state = 'published', failure = NULL "
            "WHERE result = ?1 AND state = 'due' AND due = ?2 AND ?3 = "
            "(SELECT count(*) FROM results r JOIN witnesses w ON w.query = r.query WHERE r.number = ?1) AND "
            "?4 = (SELECT q.submissions FROM results r JOIN queries q ON q.number = r.query "
            "WHERE r.number = ?1)",
            ((one.id, one.due, len(one.witnesses), one.submissions.total) for one in written),
        )


def _count_inputs(db: Database, now: float, inputs: Mapping[int, int]) -> None:
    """Count only inputs that a result did not have before, since publishing it again gives the same ones."""
    for number, count in inputs.items():
        if count == 0:
            continue
        row = db.connection.execute("SELECT inputs FROM publications WHERE result = ?", (number,)).fetchone()
        if row is not None and row[0] < count:
            db.connection.execute("UPDATE publications SET inputs = ? WHERE result = ?", (count, number))
            db.bump("inputs.found", count - row[0])
            db.connection.execute(
                "INSERT INTO counters (name, value) VALUES ('inputs.latest', ?1) "
                "ON CONFLICT (name) DO UPDATE SET value = ?1",
                (now,),
            )


def due_again(db: Database, now: float, query: int, *, submitted: bool) -> None:
    """Make a published result due again, inside a transaction.

    It was ``submitted`` again, or its model gives a further input for a further witness. A publication that
    is due or given up stays as it is; the change is written together with the rest.
    """
    db.connection.execute(
        "UPDATE publications SET state = 'due', due = ?1, failures = 0 WHERE state = 'published' "
        "AND result = (SELECT number FROM results WHERE query = ?2 AND (status = 'sat' OR ?3))",
        (now, query, submitted),
    )


def publication_failed(
    db: Database, number: int, error: str, backoff: Backoff, *, final: bool = False
) -> None:
    """Record that writing failed. It is tried again later; after too many failures only on request."""
    with db.write() as now:
        row = db.connection.execute(
            "SELECT failures FROM publications WHERE result = ? AND state = 'due'", (number,)
        ).fetchone()
        if row is None:
            return
        failures = row[0] + 1
        dead = final or failures >= backoff.failures
        db.connection.execute(
            "UPDATE publications SET state = ?, due = ?, failures = ?, failure = ? WHERE result = ?",
            (
                "dead" if dead else "due",
                now + backoff.delay(failures),
                failures,
                error[:MAX_FAILURE_CHARS],
                number,
            ),
        )
        db.bump("publication_failures")


def revive_publications(db: Database) -> int:
    """Make every dead letter due again; returns how many there were."""
    with db.write() as now:
        return db.connection.execute(
            "UPDATE publications INDEXED BY publications_dead SET state = 'due', due = ?, failures = 0 "
            "WHERE state = 'dead'",
            (now,),
        ).rowcount


def republish(db: Database) -> int:
    """Make every result due again, to re-create the files from nothing; returns how many there are."""
    with db.write() as now:
        return db.connection.execute(
            "UPDATE publications SET state = 'due', due = ?, failures = 0, failure = NULL", (now,)
        ).rowcount
