"""Leases: claim, renew, complete, fail, release.

Every lease of a query has a larger token than the one before. Only the owner of the latest lease can change
anything, and only before its deadline. A call with any other lease changes nothing and returns that it is
lost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from smtspool.errors import MisuseError
from smtspool.query import Answer, Status

from .answers import check_answer, outrun, record
from .database import Database
from .forms import drain_one, quarantine, spread
from .leases import Held, read_leases
from .rows import Damaged
from .values import Lease, Order, State

__all__ = ["Patience", "claim", "complete", "fail", "finish", "refute", "release", "release_owner", "renew"]

MAX_OWNER_BYTES = 256
MAX_LEASE_SECONDS = 7 * 24 * 3600.0
MAX_FAILURE_CHARS = 4096
# After so many attempts without an answer a query is a suspect: it is claimed alone.
SUSPECT_ATTEMPTS = 3
# Until queries that were claimed and could not be read are pending again.
UNREAD_SECONDS = 10.0
# Expired leases put back by one claim; more would make its transaction long.
EXPIRED_CHUNK = 1000
# How many extensions of the last prefix, the newest ones, are searched for its neighbours. Of its ancestors
# as many are searched as the claim may take queries.
NEAR_CHILDREN = 16

_PENDING = "queries INDEXED BY {} WHERE state = 'pending' ORDER BY {}"
_ORDERS = {
    Order.DFS: _PENDING.format("pending_dfs", "depth DESC, priority DESC, number"),
    Order.BFS: _PENDING.format("pending_bfs", "depth, priority DESC, number"),
    Order.PRIORITY: _PENDING.format("pending_priority", "priority DESC, number"),
    Order.FIFO: _PENDING.format("pending_fifo", "number"),
}
_HELD = "state = 'leased' AND number = ? AND owner = ? AND token = ? AND deadline > ?"


@dataclass(frozen=True, slots=True)
class Patience:
    """When a query is given up, as a terminal `error` that `retry` re-opens.

    ``attempts`` is generous: services are restarted and machines crash without the query's fault, and
    each takes one attempt. ``deaths`` is small: a helper that died had nothing else to do.
    """

    attempts: int = 20
    deaths: int = 3


def claim(
    db: Database,
    owner: str,
    lease_s: float,
    limit: int,
    order: Order,
    affinity: str | None,
    patience: Patience,
) -> list[Lease]:
    """Take up to ``limit`` queries for ``lease_s`` seconds; see :meth:`Store.claim`."""
    _check_owner(owner)
    _check_seconds(lease_s)
    with db.write() as now:
        drain_one(db, now)
        _reopen_expired(db, now, patience)
        numbers = _apart(db, _pick(db, order, limit, _row(affinity) if affinity else 0))
        deadline = now + lease_s
        taken = db.connection.execute(
            "UPDATE queries SET state = 'leased', owner = ?, deadline = ?, token = token + 1, "
            "attempts = attempts + 1 WHERE number IN (SELECT value FROM json_each(?)) "
            "RETURNING number, token, attempts, prefix",
            (owner, deadline, json.dumps(numbers)),
        ).fetchall()
    held = {
        number: Held(number, owner, token, deadline, attempts, prefix)
        for number, token, attempts, prefix in taken
    }
    # The leases are committed, so the write lock is free while the texts are read and checked.
    try:
        read = list(read_leases(db, [held[number] for number in numbers]))
        damaged = [one for one in read if not isinstance(one, Lease)]
        if damaged:
            _park(db, damaged)
    except BaseException:
        # The caller does not get these leases. If this fails as well, the first error is raised.
        with suppress(Exception):
            _expire_soon(db, held.values())
        raise
    return [one for one in read if isinstance(one, Lease)]


def _expire_soon(db: Database, leases: Iterable[Held]) -> None:
    """Let leases that the caller did not get expire within ``UNREAD_SECONDS``; the attempt counts.

    They do not expire at once: a query whose text can never be read would be claimed again and again, and
    other queries would wait.
    """
    with db.write() as now:
        db.connection.executemany(
            f"UPDATE queries SET deadline = min(deadline, ?) WHERE {_HELD}",
            ((now + UNREAD_SECONDS, one.number, one.owner, one.token, now) for one in leases),
        )


def _park(db: Database, damaged: Iterable[tuple[Held, Damaged]]) -> None:
    with db.write() as now:
        for held, error in damaged:
            if _end(db, now, held, State.DONE) is not None:
                db.bump("damaged")
                finish(db, now, held.number, Answer(Status.ERROR, reason=str(error)))


def _apart(db: Database, numbers: list[int]) -> list[int]:
    """Those of ``numbers`` that are no suspects, or one suspect alone.

    When a service dies, the attempt counts for every query of its batch, though at most one of them was the
    cause. A suspect is leased alone, so that its further attempts are its own. Other queries come first,
    since a suspect may kill the service that claims it. But a suspect that is first in the order is passed
    over only once, so it does not wait for ever.
    """
    rows = db.connection.execute(
        "SELECT number FROM queries WHERE number IN (SELECT value FROM json_each(?)) AND attempts >= ?",
        (json.dumps(numbers), SUSPECT_ATTEMPTS),
    )
    suspects = {number for (number,) in rows}
    others = [number for number in numbers if number not in suspects]
    first = not suspects.isdisjoint(numbers[:1])
    if not others or (first and db.suspect_waits):
        db.suspect_waits = False
        return numbers[:1]
    db.suspect_waits = first
    return others


def _row(affinity: str) -> int:
    try:
        return int(affinity)
    except ValueError as error:
        raise MisuseError(f"not an affinity that a lease gave: {affinity!r}") from error


def _pick(db: Database, order: Order, limit: int, last: int) -> list[int]:
    """Rows to claim: those near row ``last``, then the next in the order with those near it, and so on.

    A batch thus follows few paths, and its queries share most of their assertion stacks.
    """
    numbers = dict.fromkeys(_near(db, last, limit))
    candidates = iter(_in_order(db, order, limit))
    while len(numbers) < limit:
        first = next((number for number in candidates if number not in numbers), None)
        if first is None:
            break
        (prefix,) = db.connection.execute("SELECT prefix FROM queries WHERE number = ?", (first,)).fetchone()
        numbers |= dict.fromkeys([first, *_near(db, prefix, limit)])
    return list(numbers)[:limit]


def _near(db: Database, last: int, limit: int) -> list[int]:
    """Pending queries whose prefix shares most with row ``last``: itself, its extensions, its ancestors."""
    if last == 0:  # every prefix extends the empty one, so no query is near it
        return []
    connection = db.connection
    children = connection.execute(
        "SELECT number FROM prefixes WHERE parent = ? ORDER BY number DESC LIMIT ?",
        (last, NEAR_CHILDREN),
    ).fetchall()
    ancestors = connection.execute(
        "WITH RECURSIVE up (number, distance) AS (SELECT ?, 0 UNION ALL SELECT p.parent, distance + 1 "
        "FROM up JOIN prefixes p USING (number) WHERE p.depth > 1 AND distance < ?) "
        "SELECT number FROM up WHERE distance > 0 ORDER BY distance",
        (last, limit),
    ).fetchall()
    numbers: list[int] = []
    for (prefix,) in [(last,), *children, *ancestors]:
        if len(numbers) >= limit:
            break
        rows = connection.execute(
            "SELECT number FROM queries INDEXED BY pending_prefix "
            "WHERE state = 'pending' AND prefix = ? ORDER BY number LIMIT ?",
            (prefix, limit - len(numbers)),
        )
        numbers.extend(number for (number,) in rows)
    return numbers


def _in_order(db: Database, order: Order, limit: int) -> list[int]:
    """The next pending queries in the order."""
    rows = db.connection.execute(f"SELECT number FROM {_ORDERS[order]} LIMIT ?", (limit,))
    return [number for (number,) in rows]


def renew(db: Database, leases: Sequence[Lease], lease_s: float) -> list[Lease]:
    """Those of the leases that are still held, with deadlines ``lease_s`` seconds from now."""
    _check_seconds(lease_s)
    with db.write() as now:
        deadline = now + lease_s
        return [
            replace(lease, deadline=deadline)
            for lease in leases
            if db.connection.execute(
                f"UPDATE queries SET deadline = ? WHERE {_HELD}",
                (deadline, lease.number, lease.owner, lease.token, now),
            ).rowcount
        ]


def complete(db: Database, answered: Sequence[tuple[Lease, Answer]]) -> list[bool]:
    """Commit answers in one durable transaction; False for each that came too late and was dropped."""
    for lease, answer in answered:
        check_answer(lease.query, answer)
    with db.write() as now:
        return [_complete(db, now, lease, answer) for lease, answer in answered]


def _complete(db: Database, now: float, lease: Lease, answer: Answer) -> bool:
    if outrun(answer):
        answer = replace(answer, limit_ms=answer.limit_ms or lease.query.timeout_ms)
    again = answer.limit_ms is not None and _has_longer(db, lease, answer.limit_ms)
    form = _end(db, now, lease, State.PENDING if again else State.DONE)
    if form is None:
        db.bump("stale")
        return False
    if again:
        db.connection.execute("UPDATE queries SET attempts = attempts - 1 WHERE number = ?", (lease.number,))
        db.bump("reopened")
        return True
    record(db, now, lease.number, answer)
    spread(db, now, form, lease.number, answer)
    return True


def _has_longer(db: Database, lease: Lease, limit_ms: int) -> bool:
    """True if the query was given its own limit, and was submitted with a larger one while it was solved."""
    if limit_ms != lease.query.timeout_ms:
        return False
    row = db.connection.execute("SELECT timeout_ms FROM queries WHERE number = ?", (lease.number,)).fetchone()
    return int(row[0]) > limit_ms


def fail(
    db: Database, lease: Lease, reason: str, *, helper_died: bool, stderr: str, patience: Patience
) -> bool:
    """Return a query unanswered, or end it as an error; False if the lease was lost."""
    failure = f"{reason}\n{stderr[-MAX_FAILURE_CHARS:]}" if stderr else reason[-MAX_FAILURE_CHARS:]
    with db.write() as now:
        if _end(db, now, lease, State.PENDING) is None:
            db.bump("stale")
            return False
        db.connection.execute(
            "UPDATE queries SET deaths = deaths + ?, failure = ? WHERE number = ?",
            (helper_died, failure, lease.number),
        )
        db.bump("failures")
        if helper_died:
            db.bump("deaths")
        _give_up_if_hopeless(db, now, [lease.number], patience)
        return True


def release(db: Database, leases: Iterable[Lease]) -> int:
    """Return queries without counting the attempt. Returns how many were still held."""
    with db.write() as now:
        held = [lease.number for lease in leases if _end(db, now, lease, State.PENDING) is not None]
        db.connection.executemany(
            "UPDATE queries SET attempts = attempts - 1 WHERE number = ?", ((number,) for number in held)
        )
        return len(held)


def release_owner(db: Database, now: float, owner: str, patience: Patience) -> int:
    """Release the leases of a dead owner, inside a transaction. Its attempts count."""
    numbers = [
        number
        for (number,) in db.connection.execute(
            "UPDATE queries SET state = 'pending', owner = NULL, deadline = NULL, "
            "failure = 'the service that solved it died' "
            "WHERE state = 'leased' AND owner = ? RETURNING number",
            (owner,),
        ).fetchall()
    ]
    _give_up_if_hopeless(db, now, numbers, patience)
    return len(numbers)


def refute(db: Database, lease: Lease) -> None:
    """Quarantine the form of a query, since the answer offered with its lease is wrong. The lease goes on."""
    if lease.reuse is None:
        raise MisuseError("this lease came with no answer to refute")
    with db.write() as now:
        db.bump("reuse.refuted")
        quarantine(db, now, _form_of(db, lease.number))


def _reopen_expired(db: Database, now: float, patience: Patience) -> None:
    numbers = [
        number
        for (number,) in db.connection.execute(
            "SELECT number FROM queries INDEXED BY leased_deadline "
            "WHERE state = 'leased' AND deadline <= ? ORDER BY deadline LIMIT ?",
            (now, EXPIRED_CHUNK),
        ).fetchall()
    ]
    if not numbers:
        return
    db.connection.executemany(
        "UPDATE queries SET state = 'pending', owner = NULL, deadline = NULL, "
        "failure = 'the lease expired' WHERE number = ?",
        ((number,) for number in numbers),
    )
    db.bump("expired", len(numbers))
    _give_up_if_hopeless(db, now, numbers, patience)


def _give_up_if_hopeless(db: Database, now: float, numbers: list[int], patience: Patience) -> None:
    """End those of the pending queries as errors that used up their attempts or keep killing helpers."""
    for number in numbers:
        attempts, deaths, failure = db.connection.execute(
            "SELECT attempts, deaths, failure FROM queries WHERE number = ?", (number,)
        ).fetchone()
        if deaths >= patience.deaths:
            reason = f"{deaths} helpers died of it; the last: {failure}"
        elif attempts >= patience.attempts:
            reason = f"{attempts} attempts failed; the last: {failure}"
        else:
            continue
        db.bump("parked")
        finish(db, now, number, Answer(Status.ERROR, reason=reason))


def _end(db: Database, now: float, held: Held | Lease, state: State) -> int | None:
    """End a lease that is still held, leaving the query in ``state``; row of its form, None if it is not."""
    ended = db.connection.execute(
        f"UPDATE queries SET state = ?, owner = NULL, deadline = NULL WHERE {_HELD} RETURNING form",
        (state, held.number, held.owner, held.token, now),
    ).fetchall()
    return int(ended[0][0]) if ended else None


def finish(db: Database, now: float, number: int, answer: Answer) -> None:
    """End a query with an answer and update its form; inside a transaction."""
    db.connection.execute("UPDATE queries SET state = 'done' WHERE number = ? AND state <> 'done'", (number,))
    record(db, now, number, answer)
    spread(db, now, _form_of(db, number), number, answer)


def _form_of(db: Database, number: int) -> int:
    return int(db.connection.execute("SELECT form FROM queries WHERE number = ?", (number,)).fetchone()[0])


def _check_owner(owner: str) -> None:
    if not owner or "\0" in owner or len(owner.encode()) > MAX_OWNER_BYTES:
        raise MisuseError(f"an owner is named by 1 to {MAX_OWNER_BYTES} bytes of text without NUL")


def _check_seconds(lease_s: float) -> None:
    if not math.isfinite(lease_s) or not 0 < lease_s <= MAX_LEASE_SECONDS:
        raise MisuseError(f"a lease lasts more than 0 and at most {MAX_LEASE_SECONDS:.0f} seconds")
