"""What commands print: JSON lines for machines, words and tables for people.

What draws on a terminal is imported where it is drawn: it takes longer than a small query.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from smtspool.query import Query, definitions
from smtspool.service import plain

if TYPE_CHECKING:
    from smtspool.service import Snapshot, Solved
    from smtspool.store import Result

__all__ = ["Results", "document", "model", "progress", "solved", "summary"]

# Fewer files than this need no progress bar.
MANY = 10


def document(members: Mapping[str, object]) -> None:
    """One JSON document on a line of its own."""
    print(json.dumps(members), flush=True)


def progress(files: list[Path], what: str) -> Iterator[Path]:
    """The files, behind a progress bar where stderr is a terminal and there are many."""
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
        document({**place, "id": one.query.id, **answer.to_json()})
        return
    print(f"{plain(one.script)}: {answer.status}" if several else answer.status, flush=True)
    if not answer.status.definite:
        _complain(f"{one.script}: {answer.reason}")
    if with_model and answer.model is not None:
        model(one.query, answer.model)


def model(query: Query, values: Mapping[str, str]) -> None:
    """The model as a solver prints it."""
    print("(")
    for definition in definitions(query, values):
        print(f"  {definition}")
    print(")", flush=True)


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
        self._table = Table("query", "answer", "engine", "verified by", "ms", "reason", box=None)

    def add(self, result: Result) -> None:
        """Print one, or remember it for the table."""
        answer = result.answer
        if self._as_json:
            document({"schema": "smtspool-answer-v1", "id": result.query_id, **answer.to_json()})
            return
        reason = f"form of {answer.reused_from[:12]}" if answer.reused_from else (answer.reason or "")
        cells = (
            result.query_id[:16],
            answer.status.value,
            answer.engine or "",
            answer.verified_by or "",
            f"{answer.elapsed_ms:.1f}",
            # It may quote what a helper printed; a row stays one line of six fields.
            plain(" ".join(reason.split())),
        )
        if self._tabular:
            self._table.add_row(*cells)
        else:
            print("\t".join(cells), flush=True)

    def end(self) -> None:
        """Print the table, if there is one."""
        if self._table.row_count:
            self._console.print(self._table)
