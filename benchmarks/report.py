"""The table for people and the JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .measure import Row

__all__ = ["document", "print_table", "write"]

SCHEMA = "smtspool-benchmark-v1"
_PLAIN_WIDTH = 200  # in pipes and files nothing is folded


def print_table(rows: Sequence[Row], machine: Mapping[str, object], console: Console | None = None) -> None:
    """Columns on a terminal, the same as plain text anywhere else."""
    console = console or Console()
    if not console.is_terminal:
        console = Console(file=console.file, width=_PLAIN_WIDTH)
    table = Table(title=f"{machine['processor']}, {machine['cpus']} CPUs, {machine['file_system']}", box=None)
    for heading in ("what", "ours", "against", "theirs", "figure", "low-high", "bar", ""):
        table.add_column(heading, justify="left" if heading in ("what", "against", "") else "right")
    notes: list[str] = []
    for row in rows:
        mark = ""
        if row.note:
            if row.note not in notes:
                notes.append(row.note)
            mark = f" [{notes.index(row.note) + 1}]"
        table.add_row(*_cells(row, mark), style=None if row.met is not False else "red")
    console.print(table)
    for number, note in enumerate(notes, 1):
        console.print(f"[{number}] {note}", markup=False, highlight=False)


def _cells(row: Row, mark: str) -> list[str]:
    ratio = row.theirs is not None
    return [
        _escape(row.what + mark),
        f"{number(row.ours)} {row.unit}",
        _escape(row.against),
        f"{number(row.theirs)} {row.unit}" if row.theirs is not None else "",
        f"{number(row.figure)} {'×' if ratio else row.unit}",
        f"{number(row.spread[0])}-{number(row.spread[1])}",
        "" if row.bar is None else str(row.bar),
        {True: "met", False: "missed", None: ""}[row.met],
    ]


def _escape(text: str) -> str:
    return text.replace("[", "\\[")


def number(value: float) -> str:
    """Three figures, and no exponent where people would stumble."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def document(rows: Sequence[Row], machine: Mapping[str, object], run: Mapping[str, Any]) -> dict[str, Any]:
    """``run`` says how: size, seed, corpus."""
    return {
        "schema": SCHEMA,
        **run,
        "machine": dict(machine),
        "rows": [
            {**asdict(row), "bar": None if row.bar is None else str(row.bar), "met": row.met} for row in rows
        ],
    }


def write(path: Path, contents: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(contents, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
