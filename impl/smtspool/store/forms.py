"""Queries equal up to names are solved once.

A form is *open* until one of its queries has a proven answer. While it is open, at most one of its
queries, the *leader*, is pending or leased; the others wait. Then

* if the leader is `unsat`, the form is *answered*, and the waiting queries are done with the same answer; but
if one engine alone gave it and the store was opened with `confirm_unsat`, each is solved by itself;
* if the leader is `sat`, the form is answered, and the waiting queries may be claimed with its model as an
offer;
* if the answer of the leader cannot be reused, the next query leads;
* if engines disagree, or an offered model fails, the form is *quarantined*, and each query is solved by
itself.

All of it happens in the transaction that commits the leader's answer. A form with very many waiting
queries is marked *draining*, and every later claim releases some more of them. So no transaction is
long, and after a crash the next claim goes on.

Only whole forms are reused. Two further kinds of reuse were measured on 303 corpus queries and not built.
None of them contained a known unsatisfiable set of assertions (of 4,206 SAGE queries one did). A recent model
of the same prefix satisfied 5, all in incremental scripts, where the engine's assertion stack helps already.
The form answered 17.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from smtspool.query import Answer, Status

from .answers import record, reusable
from .database import Database
from .rows import Damaged, read_answer

__all__ = [
    "HURRY_LEADER",
    "FormRow",
    "FormState",
    "drain_one",
    "form_row",
    "place",
    "quarantine",
    "reopen",
    "reused",
    "spread",
]

# Waiting queries released in one transaction, which takes some ten milliseconds.
DRAIN_CHUNK = 1000

# A leader gets the priority of a query that waits for it; else an urgent query would wait for a leader of low
# priority.
HURRY_LEADER = (
    "UPDATE queries AS leader SET priority = waiting.priority FROM queries AS waiting, forms "
    "WHERE waiting.number = ? AND waiting.state = 'waiting' AND forms.number = waiting.form "
    "AND leader.number = forms.leader AND leader.priority < waiting.priority"
)


class FormState(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    QUARANTINED = "quarantined"


@dataclass(slots=True)
class FormRow:
    """A row of `forms`."""

    number: int
    state: FormState = FormState.OPEN
    leader: int | None = None
    source: int | None = None
    status: Status | None = None


def form_row(db: Database, number: int) -> FormRow:
    """The form in row ``number``. Raises Damaged if there is none, which foreign keys forbid."""
    row = db.connection.execute(
        "SELECT state, leader, source, status FROM forms WHERE number = ?", (number,)
    ).fetchone()
    if row is None:
        raise Damaged(f"form number {number} has no row")
    state, leader, source, status = row
    return FormRow(number, FormState(state), leader, source, None if status is None else Status(status))


def place(db: Database, now: float, form: int, number: int) -> None:
    """Give a query that is open again the state that follows from its form."""
    row = form_row(db, form)
    if row.state is FormState.OPEN and row.leader is not None:
        _move(db, number, "waiting")
        db.connection.execute(HURRY_LEADER, (number,))
        return
    _move(db, number, "pending")
    if row.state is FormState.OPEN:
        db.connection.execute("UPDATE forms SET leader = ? WHERE number = ?", (number, form))
    elif row.state is FormState.ANSWERED and row.status is Status.UNSAT:
        _finish_reused(db, now, row, [number])


def reopen(db: Database, now: float, number: int, limit_ms: float = math.inf) -> bool:
    """Open a query again that ended undecided; False if it may not be opened.

    Without ``limit_ms`` every ``unknown`` and ``error`` may be opened. With it, only an ``unknown`` that came
    from a smaller time limit.
    """
    ended = db.connection.execute(
        "DELETE FROM results WHERE query = ?1 AND status IN ('unknown', 'error') "
        "AND (limit_ms < ?2 OR ?2 = ?3) RETURNING number",
        (number, limit_ms, math.inf),
    ).fetchall()
    if not ended:
        return False
    (form,) = db.connection.execute(
        "UPDATE queries SET attempts = 0, deaths = 0, failure = NULL WHERE number = ? RETURNING form",
        (number,),
    ).fetchone()
    place(db, now, form, number)
    db.bump("retried" if limit_ms == math.inf else "reopened")
    return True


def spread(db: Database, now: float, form: int, number: int, answer: Answer) -> None:
    """Update the form of an answered query, and release the queries that wait for it."""
    row = form_row(db, form)
    if row.state is FormState.OPEN:
        if answer.disagreement:
            quarantine(db, now, form)
        elif reusable(answer):
            db.connection.execute(
                "UPDATE forms SET state = 'answered', leader = NULL, source = ?, status = ? WHERE number = ?",
                (number, answer.status, form),
            )
            _drain(db, now, form)
        elif row.leader == number:
            _promote(db, form)
    elif row.state is FormState.ANSWERED:
        if answer.disagreement or (answer.status.definite and answer.status is not row.status):
            quarantine(db, now, form)
        elif row.status is Status.UNSAT and reusable(answer) and answer.verified_by is not None:
            # The form was answered unsat by one engine; with `confirm_unsat` its queries are solved
            # nevertheless. This answer was confirmed by a second engine, so from here on it is the one to
            # reuse.
            db.connection.execute("UPDATE forms SET source = ? WHERE number = ?", (number, form))


def quarantine(db: Database, now: float, form: int) -> None:
    """Never reuse an answer of this form again; each waiting query is solved by itself."""
    changed = db.connection.execute(
        "UPDATE forms SET state = 'quarantined', leader = NULL WHERE number = ? AND state <> 'quarantined'",
        (form,),
    ).rowcount
    if changed:
        db.bump("forms.quarantined")
        _drain(db, now, form)


def drain_one(db: Database, now: float) -> None:
    """Release some of the queries that still wait although their form is answered or quarantined."""
    found = db.connection.execute("SELECT number FROM forms WHERE draining = 1 LIMIT 1").fetchone()
    if found is not None:
        _drain(db, now, found[0], draining=True)


def reused(db: Database, source: int) -> Answer:
    """The answer of query number ``source``, marked as coming from there. Raises Damaged."""
    row = db.connection.execute(
        "SELECT q.id, r.body, r.digest FROM queries q JOIN results r ON r.query = q.number "
        "WHERE q.number = ?",
        (source,),
    ).fetchone()
    if row is None:
        raise Damaged(f"query number {source} has no result to reuse")
    identity, body, digest = row
    return replace(
        read_answer(body, digest), reused_from=identity.hex(), at_limit=False, elapsed_ms=0.0, attempts=()
    )


def _drain(db: Database, now: float, form: int, *, draining: bool = False) -> None:
    waiting = [
        number
        for (number,) in db.connection.execute(
            "SELECT number FROM queries INDEXED BY waiting_form "
            "WHERE state = 'waiting' AND form = ? ORDER BY number LIMIT ?",
            (form, DRAIN_CHUNK + 1),
        )
    ]
    if not waiting and not draining:
        return
    chunk = waiting[:DRAIN_CHUNK]
    row = form_row(db, form)
    if row.state is FormState.ANSWERED and row.status is Status.UNSAT and chunk:
        _finish_reused(db, now, row, chunk)
    else:
        for number in chunk:
            _move(db, number, "pending")
    db.connection.execute(
        "UPDATE forms SET draining = ?1 WHERE number = ?2 AND draining <> ?1",
        (len(waiting) > len(chunk), form),
    )


def _finish_reused(db: Database, now: float, form: FormRow, numbers: list[int]) -> None:
    assert form.source is not None
    try:
        answer = reused(db, form.source)
    except Damaged:
        # The answer to reuse is damaged, so these are solved by themselves; fsck reports the row.
        for number in numbers:
            _move(db, number, "pending")
        quarantine(db, now, form.number)
        return
    if db.confirm_unsat and answer.verified_by is None:
        for number in numbers:
            _move(db, number, "pending")
        return
    for number in numbers:
        _move(db, number, "done")
        record(db, now, number, answer)


def _promote(db: Database, form: int) -> None:
    """Make the oldest waiting query the leader, with the highest priority of all waiting ones."""
    found = db.connection.execute(
        "SELECT number FROM queries INDEXED BY waiting_form "
        "WHERE state = 'waiting' AND form = ? ORDER BY number LIMIT 1",
        (form,),
    ).fetchone()
    leader = None if found is None else found[0]
    if leader is not None:
        _move(db, leader, "pending")
        db.connection.execute(
            "UPDATE queries SET priority = max(priority, ifnull((SELECT max(priority) FROM (SELECT priority "
            "FROM queries INDEXED BY waiting_form WHERE state = 'waiting' AND form = ? "
            "ORDER BY number LIMIT ?)), priority)) WHERE number = ?",
            (form, DRAIN_CHUNK, leader),
        )
    db.connection.execute("UPDATE forms SET leader = ? WHERE number = ?", (leader, form))


def _move(db: Database, number: int, state: str) -> None:
    db.connection.execute("UPDATE queries SET state = ? WHERE number = ?", (state, number))
