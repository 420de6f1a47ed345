"""Queries equal up to names are solved once.

A form is *open* until one of its queries has a proven answer. While it is open, at most one of its
queries, the *leader*, is pending or leased; the others wait. Then

* the leader is `unsat`: the form is *answered*, and whoever waits is done with the same answer, or solved
  by itself if one engine alone gave it and the store was opened with `confirm_unsat`;
* the leader is `sat`: the form is answered, and whoever waits may be claimed, with the model on offer;
* the leader has no answer to reuse: the next one leads;
* engines disagree, or an offered model fails: the form is *quarantined*, each query is solved by itself.

All of it happens in the transaction that commits the leader's answer. A form with very many waiting
queries is marked *draining* and every later claim lets some more of them go, so that no transaction is
long and a crash strands nobody.

There is no second level (a superset of a proven unsatisfiable set, a recent model of the same prefix),
because it did not pay when measured: of 303 corpus queries none contained a known unsatisfiable set (of
4,206 SAGE queries one did), and a recent model of the same prefix satisfied 5, all of them incremental
scripts, which an engine's own assertion stack serves already. The form answered 17.
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
    "settle",
]

# Waiting queries let go in one transaction: some ten milliseconds.
DRAIN_CHUNK = 1000

# Who waits for a leader lends it its priority, or an urgent query would wait behind a patient one.
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
    """Put a query that is open again where its form wants it: leading, waiting, pending or done."""
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
    """Put a query that ended undecided back as if it were new; False if it did not, or not for lack of time.

    An ``unknown`` that a limit is to blame for re-opens for every larger ``limit_ms``. Without one every
    ``unknown`` and ``error`` re-opens.
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


def settle(db: Database, now: float, form: int, number: int, answer: Answer) -> None:
    """Draw the consequences of a query's answer for the queries of its form."""
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
            # Solved although the form is answered: that was no proof for whoever asks two engines. This is.
            db.connection.execute("UPDATE forms SET source = ? WHERE number = ?", (number, form))


def quarantine(db: Database, now: float, form: int) -> None:
    """Never reuse an answer of this form again; whoever waits is solved by itself."""
    changed = db.connection.execute(
        "UPDATE forms SET state = 'quarantined', leader = NULL WHERE number = ? AND state <> 'quarantined'",
        (form,),
    ).rowcount
    if changed:
        db.bump("forms.quarantined")
        _drain(db, now, form)


def drain_one(db: Database, now: float) -> None:
    """Let some queries go that still wait for a form that is open no more."""
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
        # The proof is gone, so these are solved by themselves; fsck reports the damaged row.
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
    """Let the oldest that waits lead, with the priority of the most urgent one."""
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
