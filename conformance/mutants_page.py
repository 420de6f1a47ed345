"""``docs/mutants.md``: the kill matrix as it was measured last, from the pinned results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.engine import code_mutants, model_mutants
from conformance.engine.manifest import load_manifest
from conformance.matrix import ROOT, SUBJECTS, SURVIVED, Row, Subject, generated, pinned, reasons, seconds

__all__ = ["PAGE", "page"]

PAGE = ROOT / "docs" / "mutants.md"
_SIDES = {
    "model": ("Model mutants", (*model_mutants.OPERATORS,)),
    "code": ("Code mutants", (*code_mutants.OPERATORS,)),
    "named": ("Named code mutants", ("named",)),
}


def kind_of(detector: str) -> str:
    """The column of a detector."""
    return detector if detector == SURVIVED else detector.partition(" ")[0].rstrip(":") or "?"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _table(rows: Sequence[Row], operators: Sequence[str]) -> Iterator[str]:
    """Operator x kind of detector."""
    kinds = sorted({kind_of(row.detector) for row in rows} - {SURVIVED})
    yield f"| operator | mutants | {' | '.join(kinds)} | survived |"
    yield f"| --- |{' ---: |' * (len(kinds) + 2)}"
    for operator in operators:
        of = [row for row in rows if row.operator == operator]
        count = Counter(kind_of(row.detector) for row in of)
        if of:
            cells = (str(count[kind] or "") for kind in (*kinds, SURVIVED))
            yield f"| {operator} | {len(of)} | {' | '.join(cells)} |"
    count = Counter(kind_of(row.detector) for row in rows)
    cells = (str(count[kind] or "") for kind in (*kinds, SURVIVED))
    yield f"| all | {len(rows)} | {' | '.join(cells)} |"


def _first_killers(rows: Sequence[Row], subject: Subject) -> Iterator[str]:
    """Invariant or property x how many mutants it is the first to see."""
    runs = load_manifest(subject.bounded.with_name("manifest.toml"))
    legacy = Counter(run.violated for run in runs if run.kind in ("legacy", "unfair"))
    found: dict[str, Counter[str]] = {}
    for row in rows:
        kind, _, name = row.detector.partition(" ")
        if kind in ("invariant", "property"):
            found.setdefault(name, Counter())[row.side] += 1
    yield "| invariant or property | model mutants | code mutants | named | legacy and unfair runs |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name in sorted({*found, *legacy}):
        count = found.get(name, Counter())
        cells = (count["model"], count["code"], count["named"], legacy[name])
        yield f"| {name} | {' | '.join(str(cell or '') for cell in cells)} |"


def page() -> str:
    """The page, as it must be."""
    lines = [
        "# Mutants",
        "",
        "Written by `python -m conformance mutants --write` from what was measured last: every small fault",
        "that is generated for one of these models or for its code, the named faults, and what sees each",
        "*first*. The other models have named faults only, which `python -m conformance` drives.",
        "",
        "- *evaluation*: TLC cannot evaluate it; *graph*: no property fails, but its graph is another one;",
        "- *edge*, *gates*, *refusal*, *report*, *step*: code that does not do what the graph says, as",
        "  [conformance](../conformance/README.md) explains; *trace*: no graph shows it, and a recording is",
        "  no behaviour or lacks a step; *test*: a unit test fails, the last resort.",
    ]
    for subject in SUBJECTS:
        results = pinned(subject)
        rows = [replace(row, detector=results.get(row.key, "")) for row in generated(subject)]
        why = {reason.key: reason.reason for reason in reasons(subject)}
        took = seconds(subject)
        told = f"Measured in one run of {took} s." if took else "Measured in parts, not timed in one run."
        lines += ["", f"## {subject.name}", "", told, ""]
        lines += _first_killers(rows, subject)
        for side, (title, operators) in _SIDES.items():
            of = [row for row in rows if row.side == side]
            lines += ["", f"### {title}", "", *_table(of, operators), ""]
            lines += ["| mutant | change | first seen by |", "| --- | --- | --- |"]
            for row in of:
                seen = row.detector if row.detector != SURVIVED else f"**survived**: {why.get(row.key, '?')}"
                lines.append(f"| {_cell(row.name)} | `{_cell(row.change)}` | {_cell(seen)} |")
    return "\n".join([*lines, ""])
