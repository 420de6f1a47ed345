"""Which answers may be committed, and their rows.

`sat` needs a complete model that the evaluator or another engine confirmed; `unsat` names the
engine that found it and one that agreed, if there is one; `unknown` and `error` carry a reason; if engines
disagree, the answer is `unknown`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from smtspool.errors import MisuseError
from smtspool.query import Answer, Query, Status

from .database import Database
from .rows import Damaged, answer_body, digest_of, read_answer

__all__ = ["check_answer", "drop_attempts", "outrun", "record", "reusable"]

_DROPPED_TOGETHER = 256


def check_answer(query: Query, answer: Answer) -> None:
    """Raise MisuseError for an answer that the store must not keep; the lease stays as it is."""
    if answer.disagreement and answer.status is not Status.UNKNOWN:
        raise MisuseError(f"engines disagreed, so the answer is unknown and not {answer.status}")
    if answer.status.definite and not answer.engine:
        raise MisuseError(f"a {answer.status} answer names the engine that gave it")
    if answer.verified_by is not None and answer.verified_by == answer.engine:
        raise MisuseError(f"{answer.engine} cannot confirm its own answer: somebody else must")
    if answer.status is Status.SAT:
        _check_model(query, answer)
    elif not answer.status.definite and not answer.reason:
        raise MisuseError(f"an {answer.status} answer carries a reason")


def _check_model(query: Query, answer: Answer) -> None:
    if answer.verified_by is None:
        raise MisuseError("a sat answer is committed only after somebody else confirmed its model")
    if answer.model is None:
        raise MisuseError("a sat answer carries a model")
    for symbol in query.symbols:
        if symbol.name not in answer.model:
            raise MisuseError(f"the model is not complete: {symbol.name} has no value")


def reusable(answer: Answer) -> bool:
    """True if other queries of the same form may have this answer: proven, and within the limit."""
    return answer.status.definite and not answer.at_limit and not answer.disagreement


def outrun(answer: Answer) -> bool:
    """True if a larger time limit may give another answer."""
    return answer.status is Status.UNKNOWN and answer.at_limit and not answer.disagreement


def record(db: Database, now: float, number: int, answer: Answer) -> None:
    """Add the result of a query, its outbox row and what it counts to the current transaction."""
    body = answer_body(answer)
    limit_ms = answer.limit_ms if outrun(answer) else None
    result = db.connection.execute(
        "INSERT INTO results (query, status, digest, body, completed, limit_ms) VALUES (?, ?, ?, ?, ?, ?)",
        (number, answer.status, digest_of(body), body, now, limit_ms),
    ).lastrowid
    db.connection.execute("INSERT INTO publications (result, due) VALUES (?, ?)", (result, now))
    _count(db, answer)


def _count(db: Database, answer: Answer) -> None:
    if answer.reused_from is not None:
        db.bump(f"reused.{answer.status}")
    elif answer.status.definite:
        db.bump(f"wins.{answer.engine}")
    if answer.disagreement:
        db.bump("disagreements")
    db.bump("answer_ms", answer.elapsed_ms)
    for attempt in answer.attempts:
        db.bump(f"attempts.{attempt.engine}")
        db.bump(f"attempt_ms.{attempt.engine}", attempt.elapsed_ms)
        if attempt.cancelled:
            db.bump(f"cancelled.{attempt.engine}")


def drop_attempts(db: Database, before: float, *, dry_run: bool = False) -> tuple[int, int]:
    """Remove the attempts of sat and unsat answers that are older than ``before``.

    The answers stay. Returns how many answers and bytes are affected. Uses short transactions; with
    ``dry_run`` nothing changes.
    """
    answers = freed = after = 0
    while True:
        with db.read() as connection:
            rows = connection.execute(
                "SELECT number, digest, body FROM results WHERE number > ? AND completed < ? "
                "AND status IN ('sat', 'unsat') "
                "ORDER BY number LIMIT ?",
                (after, before, _DROPPED_TOGETHER),
            ).fetchall()
        if not rows:
            return answers, freed
        after = rows[-1][0]
        changed = []
        for number, digest, body in rows:
            with suppress(Damaged):  # fsck reports it
                answer = read_answer(body, digest)
                if answer.attempts:
                    shorter = answer_body(replace(answer, attempts=()))
                    changed.append((digest_of(shorter), shorter, number, digest))
                    freed += len(body) - len(shorter)
        answers += len(changed)
        if changed and not dry_run:
            with db.write():
                db.connection.executemany(
                    "UPDATE results SET digest = ?, body = ? WHERE number = ? AND digest = ?", changed
                )
