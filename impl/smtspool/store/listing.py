"""Lists of queries and their answers.

Listing reads every row of a table, in short transactions. Only commands do it, never a service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from smtspool.query import Status, file_patterns, spelled

from .database import Database
from .rows import read_answer
from .submissions import COLUMNS, Submission, submission_of
from .values import Result, State

__all__ = ["Found", "Wanted", "answered", "listed"]

ID_DIGITS = 64
_HEXADECIMAL = re.compile(rf"[0-9a-f]{{0,{ID_DIGITS}}}", re.ASCII)
# Rows read per transaction, so that a long listing holds no long view.
CHUNK = 256


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which queries to list; all conditions hold.

    ``file`` is the name of a file or a shell pattern. It also finds a file that got a fresh suffix in the
    spool because its name was taken. ``metadata`` maps members to values as text: ``12`` finds 12 and
    ``"12"``.
    """

    prefix: str = ""  # of the id
    statuses: frozenset[Status] = frozenset(Status)
    open: bool = False  # also those without an answer
    since: float = 0.0  # answered then or later; if open, submitted then or later; seconds since the epoch
    file: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def by_submission(self) -> bool:
        """True if a condition is on submissions; then each submission is listed by itself."""
        return self.file is not None or bool(self.metadata)


@dataclass(frozen=True, slots=True)
class Found:
    """A query, its answer if it has one, and the submission that meets the conditions."""

    query_id: str
    state: State
    result: Result | None
    submission: Submission | None = None


def answered(db: Database, after: int, wanted: Wanted) -> Iterator[Result]:
    """Results in the order of completion, beginning behind number ``after``. Raises Damaged.

    Only the bodies of wanted answers are read. Conditions on submissions are ignored.
    """
    chosen = _Chosen(wanted)
    while True:
        with db.read() as connection:
            rows = connection.execute(
                "SELECT r.number, q.id, r.digest, r.body, r.completed FROM results r "
                f"JOIN queries q ON q.number = r.query WHERE r.number > :after AND {chosen.condition} "
                f"ORDER BY r.number LIMIT {CHUNK}",
                {"after": after, **chosen.values},
            ).fetchall()
        for number, identity, digest, body, completed in rows:
            yield Result(number, identity.hex(), read_answer(body, digest), completed)
        if len(rows) < CHUNK:
            return
        after = rows[-1][0]


class _Source(NamedTuple):
    """The rows that a listing reads, in the order of their key."""

    tables: str
    key: str
    behind: str  # condition: the key is behind that of the last row that was read
    columns: str  # the key in three parts, then those of a submission


_QUERIES = _Source("queries q", "q.number", "q.number > :number", f"q.number, x'', 0{', NULL' * 5}")
_SUBMISSIONS = _Source(
    "submissions s JOIN queries q ON q.number = s.query",
    "s.query, s.mark, s.number",
    "(s.query, s.mark, s.number) > (:number, :mark, :position)",
    f"s.query, s.mark, s.number, {COLUMNS}",
)


def listed(db: Database, wanted: Wanted) -> Iterator[Found]:
    """Queries in the order of admission, open ones too if they are wanted. Raises Damaged."""
    source = _SUBMISSIONS if wanted.by_submission else _QUERIES
    chosen = _Chosen(wanted)
    select = (
        f"SELECT {source.columns}, q.id, q.state, r.number, r.digest, r.body, r.completed "
        f"FROM {source.tables} LEFT JOIN results r ON r.query = q.number "
        f"WHERE {source.behind} AND {chosen.condition} ORDER BY {source.key} LIMIT {CHUNK}"
    )
    last = {"number": 0, "mark": b"", "position": 0}
    while True:
        with db.read() as connection:
            rows = connection.execute(select, {**last, **chosen.values}).fetchall()
        for row in rows:
            identity, state, number, digest, body, completed = row[8:]
            result = None
            if number is not None:
                result = Result(number, identity.hex(), read_answer(body, digest), completed)
            submission = submission_of(row[3:8]) if wanted.by_submission else None
            yield Found(identity.hex(), State(state), result, submission)
        if len(rows) < CHUNK:
            return
        last = dict(zip(last, rows[-1], strict=False))


class _Chosen:
    """The conditions as SQL over queries ``q``, results ``r`` and, if asked for, submissions ``s``."""

    def __init__(self, wanted: Wanted) -> None:
        self.values: dict[str, object] = {}
        self.condition = " AND ".join(self._conditions(wanted))

    def _value(self, value: object) -> str:
        name = f"value{len(self.values)}"
        self.values[name] = value
        return f":{name}"

    def _conditions(self, wanted: Wanted) -> Iterator[str]:
        statuses = ", ".join(f"'{status}'" for status in sorted(wanted.statuses))
        yield f"(r.status IN ({statuses}) OR (r.number IS NULL AND {int(wanted.open)}))"
        if _HEXADECIMAL.fullmatch(wanted.prefix) is None:
            yield "0"
        elif wanted.prefix:
            lowest, highest = (bytes.fromhex(wanted.prefix.ljust(ID_DIGITS, digit)) for digit in "0f")
            yield f"q.id BETWEEN {self._value(lowest)} AND {self._value(highest)}"
        if wanted.since:
            asked = "s.submitted" if wanted.by_submission else "q.created"
            yield f"coalesce(r.completed, {asked}) >= {self._value(wanted.since)}"
        if wanted.file is not None:
            own, renamed = map(self._value, file_patterns(spelled(wanted.file)))
            yield f"(s.file = {own} OR s.file GLOB {own} OR s.file GLOB {renamed})"
        for name, value in wanted.metadata.items():
            yield (
                "EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(s.metadata) THEN s.metadata END) "
                f"WHERE key = {self._value(name)} AND {self._value(value)} = "
                "CASE WHEN type IN ('true', 'false', 'null') THEN type ELSE CAST(value AS TEXT) END)"
            )
