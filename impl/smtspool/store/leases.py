"""From claimed rows to leases: each with its query, and the answer of an equal form if there is one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from smtspool.errors import MisuseError, ModelError
from smtspool.query import Answer, Form, Query, rename_model
from smtspool.query import complete as complete_model

from .database import Database
from .forms import reused
from .rows import QUERY, QUERY_TABLES, Damaged, query_of, read_form
from .values import Lease

__all__ = ["Held", "read_leases"]

_LEASED = (
    f"SELECT {QUERY}, "
    "(SELECT f.source FROM forms f WHERE f.number = q.form AND f.state = 'answered' AND f.status = 'sat' "
    "AND f.source <> q.number) "
    f"FROM {QUERY_TABLES} WHERE q.number IN (SELECT value FROM json_each(?))"
)


@dataclass(frozen=True, slots=True)
class Held:
    """A lease whose query is not read yet."""

    number: int
    owner: str
    token: int
    deadline: float
    attempts: int
    prefix: int


def read_leases(db: Database, held: Sequence[Held]) -> Iterator[Lease | tuple[Held, Damaged]]:
    """The leases in the same order; instead of one whose query is damaged, the error."""
    sources: dict[int, tuple[Form, Answer] | None] = {}
    with db.read() as connection:
        rows = connection.execute(_LEASED, (json.dumps([one.number for one in held]),))
        found = {number: columns for number, *columns in rows}
        for one in held:
            *columns, source = found[one.number]
            try:
                query = query_of(one.number, columns)
            except Damaged as error:
                yield one, error
                continue
            if source is not None and source not in sources:
                sources[source] = _answered(db, source)
            offer = _offer(query, sources.get(source))
            yield Lease(
                query, one.owner, one.token, one.deadline, one.attempts, one.number, one.prefix, offer
            )


def _answered(db: Database, source: int) -> tuple[Form, Answer] | None:
    try:
        return read_form(db, source), reused(db, source)
    except Damaged:
        return None  # fsck reports it; queries that wait for it are solved by themselves


def _offer(query: Query, source: tuple[Form, Answer] | None) -> Answer | None:
    """The sat answer of this query's form, in this query's symbols."""
    if source is None:
        return None
    form, answer = source
    try:
        model = complete_model(query, rename_model(answer.model or {}, form, query.form))
    except (MisuseError, ModelError):
        return None  # the model has sorts that are named differently here
    return replace(answer, model=model, verified_by=None)
