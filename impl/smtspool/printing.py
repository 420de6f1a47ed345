"""Output of the commands: JSON lines for machines, words and tables for people.

The library that draws tables is imported only when it is used, since importing it takes longer than a small
query.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from smtspool.query import Query, definitions
from smtspool.service import plain

if TYPE_CHECKING:
    from smtspool.errors import AdmissionError
    from smtspool.service import Export, Snapshot, Solved, Unadmitted
    from smtspool.store import Found, Submissions

__all__ = [
    "Results",
    "document",
    "exported",
    "model",
    "notes",
    "progress",
    "solved",
    "submitted",
    "summary",
]

# Fewer files than this need no progress bar.
MANY = 10


def document(members: Mapping[str, object]) -> None:
    """One JSON document on a line of its own."""
    print(json.dumps(members), flush=True)


def progress(files: list[Path], what: str) -> Iterator[Path]:
    """The files; with a progress bar if stderr is a terminal and there are many."""
    if len(files) < MANY or not sys.stderr.isatty():
        yield from files
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(files, what, console=Console(stderr=True))


def solved(one: Solved, *, several: bool, with_model: bool, as_json: bool) -> None:
    """One answer as a solver prints it, or one refusal; ``several`` puts the file's name in front."""
    if one.answer is None or one.query is None:
        assert one.refusal is not None
        if as_json:
            document({"schema": "smtspool-solve-v1", "file": one.script, "refused": one.refusal.to_json()})
        else:
            _complain(one.refusal.of(one.script))
        return
    answer = one.answer
    if as_json:
        place = {"schema": "smtspool-solve-v1", "file": one.script, "number": one.number}
        document({**place, "id": one.query.id, **answer.to_json(), "notes": one.query.notes})
        return
    print(f"{plain(one.script)}: {answer.status}" if several else answer.status, flush=True)
    if answer.values:
        print(f"({' '.join(f'({term} {value})' for term, value in answer.values.items())})", flush=True)
    if not answer.status.definite:
        _complain(f"{one.script}: {answer.reason}")
    for error in answer.errors if answer.status.definite else ():
        _complain(f"{one.script}: {answer.status}, but an engine reports an error: {error}")
    if with_model and answer.model is not None:
        model(one.query, answer.model)


def notes(script: str, texts: Iterable[str]) -> None:
    """Print the notes about what was dropped when ``script`` was read."""
    for text in texts:
        _complain(f"{script}: {text}")


def model(query: Query, values: Mapping[str, str]) -> None:
    """The model as a solver prints it."""
    print("(")
    for definition in definitions(query, values):
        print(f"  {definition}")
    print(")", flush=True)


def submitted(
    taken: Sequence[tuple[Path, Sequence[str]]],
    names: Sequence[str],
    refused: Sequence[tuple[Path, AdmissionError]],
    *,
    checked: bool,
    as_json: bool,
) -> None:
    """Print the names of submitted files in the spool, with the ids of their queries if ``checked``."""
    if as_json:
        files = [
            {"file": str(path), "name": name, "ids": list(ids) if checked else None}
            for (path, ids), name in zip(taken, names, strict=True)
        ]
        bad = [{"file": str(path), **refusal.to_json()} for path, refusal in refused]
        document({"schema": "smtspool-submit-v1", "submitted": names, "files": files, "refused": bad})
        return
    for path, ids in taken:
        for number, identity in enumerate(ids, 1):
            print(plain(f"{path}#{number}" if number > 1 else str(path)), identity, sep="\t")
    print(f"{len(names)} submitted", flush=True)
    for path, refusal in refused:
        _complain(refusal.of(str(path)))


def exported(done: Export, folder: Path, *, as_json: bool) -> None:
    """Print what an export did; its notes go to stderr."""
    if as_json:
        document(done.to_json())
        return
    print(f"{done.written} inputs exported to {folder}", flush=True)
    for note in done.notes():
        _complain(note)


def _complain(what: str) -> None:
    print(plain(f"smtspool: {what}"), file=sys.stderr)


def summary(now: Snapshot) -> str:
    """A campaign in one line."""
    counts, rejected = now.counts, now.counter("admission.rejected")
    line = f"{counts.done} answered: {counts.sat} sat, {counts.unsat} unsat, {counts.unknown} unknown, "
    line += f"{counts.error} error; {counts.open} open"
    return f"{line}; {rejected:.0f} files rejected" if rejected else line


class Results:
    """Results as lines at once (JSON, or fields with tabs), or on a terminal as one table at the end.

    A list that has no end (``endless``) is lines on a terminal too.
    """

    def __init__(self, *, as_json: bool, endless: bool) -> None:
        from rich.console import Console
        from rich.table import Table

        self._as_json = as_json
        self._console = Console(markup=False, emoji=False)
        self._tabular = self._console.is_terminal and not endless
        self._table = Table("query", "answer", "engine", "verified by", "ms", "reason", "file", box=None)

    def add(self, found: Found, submissions: Submissions) -> None:
        """Print one, or remember it for the table; ``submissions`` are those of its query."""
        if self._as_json:
            document(_found(found, submissions))
            return
        file = _file(found, submissions)
        if found.result is None:
            self._row(found.query_id[:16], "pending", "", "", "", found.state, file)
            return
        answer = found.result.answer
        reason = f"form of {answer.reused_from[:12]}" if answer.reused_from else (answer.reason or "")
        self._row(
            found.query_id[:16],
            answer.status,
            answer.engine or "",
            answer.verified_by or "",
            f"{answer.elapsed_ms:.1f}",
            reason,
            file,
        )

    def add_unadmitted(self, one: Unadmitted) -> None:
        """The same for a file that has no query, or none yet."""
        status, reason = "pending", "incoming"
        if one.refusal is not None:
            status, reason = "rejected", str(one.refusal.get("message"))
        if self._as_json:
            members = {"schema": "smtspool-answer-v1", "id": None, "status": status, "file": one.name}
            document({**members, "state": "incoming"} if one.refusal is None else {**one.refusal, **members})
        else:
            self._row("", status, "", "", "", reason, one.name)

    def _row(self, *cells: str) -> None:
        # Cells may quote text of helpers or producers, so control characters and line breaks are replaced.
        told = [plain(" ".join(cell.split())) for cell in cells]
        if self._tabular:
            self._table.add_row(*told)
        else:
            print("\t".join(told), flush=True)

    def end(self) -> None:
        """Print the table, if there is one."""
        if self._table.row_count:
            self._console.print(self._table)


def _found(found: Found, submissions: Submissions) -> dict[str, object]:
    members: dict[str, object] = {"schema": "smtspool-answer-v1", "id": found.query_id}
    if found.result is None:
        members |= {"status": "pending", "state": found.state}
    else:
        members |= {**found.result.answer.to_json(), "completed": found.result.completed}
    if found.submission is not None:
        members |= {"file": found.submission.file, "number": found.submission.number}
    first = found.submission or next(iter(submissions.listed), None)
    members["metadata"] = {} if first is None else first.metadata
    members["submissions"] = [one.to_json() for one in submissions.listed]
    members["submissions_total"] = submissions.total
    return members


def _file(found: Found, submissions: Submissions) -> str:
    """The file that was asked for, or the first and how many more there are; ``#2`` is its 2nd check-sat."""
    first = found.submission or next(iter(submissions.listed), None)
    if first is None or first.file is None:
        return ""
    text = first.file if first.number in (None, 1) else f"{first.file}#{first.number}"
    more = 0 if found.submission is not None else submissions.total - 1
    return f"{text} +{more}" if more else text
