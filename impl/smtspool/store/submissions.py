"""The submissions of a query: which files asked it; how they are recorded, read and listed.

A submission is one ``check-sat`` of one file. Its key is the query, the mark of the file and the number of
the ``check-sat``, so that a file which is admitted again after a crash is recorded once (F364 §4.2).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from .database import Database, short_digest
from .rows import Damaged

__all__ = [
    "COLUMNS",
    "INSERT_SUBMISSION",
    "LISTED",
    "Submission",
    "Submissions",
    "read_submissions",
    "submission_of",
    "submission_row",
]

# So many of the oldest submissions of a query are listed with its result, and as many of the newest, each
# half only while its metadata fits. All submissions are kept and counted.
LISTED = 128
LISTED_METADATA = 512 * 1024

INSERT_SUBMISSION = (
    "INSERT OR IGNORE INTO submissions (query, mark, number, file, metadata, submitted, digest) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
# The columns that submission_of takes.
COLUMNS = "s.number, s.file, s.metadata, s.submitted, s.digest"
_SELECT = f"SELECT {COLUMNS} FROM submissions s WHERE query = ? ORDER BY mark {{0}}, number {{0}}"
_ENCODER = json.JSONEncoder(separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Submission:
    """One ``check-sat`` of one file. Members that an earlier version did not record are None."""

    file: str | None  # the name of the file in the spool
    number: int | None  # of the check-sat in it, from 1
    metadata: Mapping[str, object]
    submitted: float  # when it was admitted, in seconds since the epoch

    def to_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Submissions:
    """How often a query was submitted; of very many only the oldest and the newest are listed."""

    total: int
    listed: tuple[Submission, ...]  # in the order of the files' times


def submission_row(
    query: int, mark: bytes, number: int, file: str, metadata: Mapping[str, object], now: float
) -> tuple[object, ...]:
    """The values of :data:`INSERT_SUBMISSION`; ``file`` is spelled already."""
    text = _ENCODER.encode(metadata) if metadata else None
    return query, mark, number, file, text, now, short_digest(number, file, text)


def submission_of(columns: Sequence[Any]) -> Submission:
    """The submission of a row. Raises Damaged."""
    number, file, metadata, submitted, digest = columns
    if short_digest(number, file, metadata) != digest:
        raise Damaged("a submission of the query is damaged: it does not match its digest")
    return Submission(file, number or None, {} if metadata is None else json.loads(metadata), submitted)


def read_submissions(db: Database, query: int) -> Submissions:
    """The submissions of the query of a row; inside a transaction. Raises Damaged."""
    (total,) = db.connection.execute("SELECT submissions FROM queries WHERE number = ?", (query,)).fetchone()
    oldest = _listed(db.connection.execute(_SELECT.format("ASC"), (query,)))
    rest = min(LISTED, total - len(oldest))
    newest = _listed(islice(db.connection.execute(_SELECT.format("DESC"), (query,)), max(0, rest)))
    return Submissions(total, tuple(map(submission_of, [*oldest, *reversed(newest)])))


def _listed(rows: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
    listed: list[Sequence[Any]] = []
    size = 0
    for row in islice(rows, LISTED):
        size += len(row[2] or "")
        if size > LISTED_METADATA:
            break
        listed.append(row)
    return listed
