"""What was asked and what came of it, listed for whoever submitted it.

Listing reads every row of the table it goes through, in short transactions; nothing of the service does it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from smtspool.query import Status, file_patterns

from .database import Database
from .rows import read_answer
from .submissions import COLUMNS, Submission, spelled, submission_of
from .values import Result, State

__all__ = ["Found", "Wanted", "answered", "listed"]

ID_DIGITS = 64
_HEXADECIMAL = re.compile(rf"[0-9a-f]{{0,{ID_DIGITS}}}", re.ASCII)
# Rows read per transaction, so that a long listing holds no long view.
CHUNK = 256


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which queries to list; all conditions hold.

    ``file`` is the name of a file or a shell pattern, and finds a file that got a fresh suffix because its
    name was taken. ``metadata`` maps members to values as text: ``12`` finds 12 and ``"12"``.
    """

    prefix: str = ""  # of the id
    statuses: frozenset[Status] = frozenset(Status)
    open: bool = False  # also those without an answer
    since: float = 0.0  # answered, or while it is open submitted, then or later; seconds since the epoch
    file: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def by_submission(self) -> bool:
        """True if submissions are asked for; each is listed by itself then."""
        return self.file is not None or bool(self.metadata)


@dataclass(frozen=True, slots=True)
class Found:
    """A query and its answer, if it has one; and the submission that was asked for."""

    query_id: str
    state: State
    result: Result | None
    submission: Submission | None = None


def answered(db: Database, after: int, wanted: Wanted) -> Iterator[Result]:
    """Results in the order of completion, beginning behind number ``after``. Raises Damaged.

    Only of answers that are wanted anything is read. Conditions on submissions are not looked at.
    """
    chosen = _Chosen(wanted)
    while True:
        with db.read() as connection:
            rows = connection.execute(
                "SELECT r.number, q.id, r.digest, r.body, r.completed FROM results r "
                f"JOIN queries q ON q.number = r.query WHERE r.number > :after AND {chosen.condition} "
                "ORDER BY r.number LIMIT :limit",
                {**chosen.values, "after": after, "limit": CHUNK},
            ).fetchall()
        for number, identity, digest, body, completed in rows:
            yield Result(number, identity.hex(), read_answer(body, digest), completed)
        if len(rows) < CHUNK:
            return
        after = rows[-1][0]


def listed(db: Database, wanted: Wanted) -> Iterator[Found]:
    """Queries in the order of admission, open ones too if they are wanted. Raises Damaged."""
    chosen = _Chosen(wanted)
    after: tuple[int, bytes, int] = (0, b"", 0)
    joined, place = "", "q.number, x'', 0"
    columns = "NULL, NULL, NULL, NULL, NULL"
    if wanted.by_submission:
        joined, place = "JOIN submissions s ON s.query = q.number", "s.query, s.mark, s.number"
        columns = COLUMNS
    # Submissions are gone through in the order of their key; without them, queries in that of theirs.
    begin = "(s.query, s.mark, s.number)" if wanted.by_submission else "q.number"
    bound = "(:number, :mark, :position)" if wanted.by_submission else ":number"
    while True:
        with db.read() as connection:
            rows = connection.execute(
                f"SELECT {place}, q.id, q.state, r.number, r.digest, r.body, r.completed, {columns} "
                f"FROM queries q {joined} LEFT JOIN results r ON r.query = q.number "
                f"WHERE {begin} > {bound} AND {chosen.condition} ORDER BY {begin.strip('()')} LIMIT :limit",
                {
                    **chosen.values,
                    **dict(zip(("number", "mark", "position"), after, strict=True)),
                    "limit": CHUNK,
                },
            ).fetchall()
        for *_, identity, state, number, digest, body, completed, c1, c2, c3, c4, c5 in rows:
            result = None
            if number is not None:
                result = Result(number, identity.hex(), read_answer(body, digest), completed)
            submission = submission_of((c1, c2, c3, c4, c5)) if wanted.by_submission else None
            yield Found(identity.hex(), State(state), result, submission)
        if len(rows) < CHUNK:
            return
        after = rows[-1][:3]


class _Chosen:
    """The conditions as SQL over queries ``q``, results ``r`` and, if asked for, submissions ``s``."""

    def __init__(self, wanted: Wanted) -> None:
        conditions: list[str] = []
        self.values: dict[str, object] = {}
        if _HEXADECIMAL.fullmatch(wanted.prefix) is None:
            conditions.append("0")
        elif wanted.prefix:
            conditions.append("q.id BETWEEN :lowest AND :highest")
            for name, digit in (("lowest", "0"), ("highest", "f")):
                self.values[name] = bytes.fromhex(wanted.prefix.ljust(ID_DIGITS, digit))
        statuses = ", ".join(f"'{status}'" for status in sorted(wanted.statuses))
        conditions.append(f"(r.status IN ({statuses}) OR (r.number IS NULL AND {int(wanted.open)}))")
        if wanted.since:
            asked = "s.submitted" if wanted.by_submission else "q.created"
            conditions.append(f"coalesce(r.completed, {asked}) >= :since")
            self.values["since"] = wanted.since
        if wanted.file is not None:
            conditions.append("(s.file = :file OR s.file GLOB :file OR s.file GLOB :renamed)")
            self.values |= dict(zip(("file", "renamed"), file_patterns(spelled(wanted.file)), strict=True))
        for at, (name, value) in enumerate(wanted.metadata.items()):
            conditions.append(
                f"EXISTS (SELECT 1 FROM json_each(s.metadata) WHERE key = :name{at} AND :value{at} = "
                "CASE type WHEN 'true' THEN type WHEN 'false' THEN type WHEN 'null' THEN type "
                "ELSE CAST(value AS TEXT) END)"
            )
            self.values |= {f"name{at}": name, f"value{at}": value}
        self.condition = " AND ".join(conditions)
