"""The sample campaign, end to end: execute small parsers symbolically, solve, execute the answers."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from smtspool.query import Answer, Query, Status, candidate, parse_envelope
from smtspool.sample import PROGRAMS, Envelope, Flip, campaign, flips, runs
from smtspool.spool import Spool
from smtspool.store import Store

from .campaign import Campaign
from .config import load
from .intake import submit_telemetry
from .service import Service

__all__ = ["run_demo"]

PROGRESS_SECONDS = 0.1
SHOWN = 3
PROBES_SHOWN = 2


@dataclass(frozen=True, slots=True)
class _Outcome:
    """One query of the campaign: what was asked, what came back, and what the new input did."""

    name: str
    program: str
    query: Query
    answer: Answer
    new_input: bytes | None  # of a sat answer
    flip: Flip | None  # what it did


def run_demo(directory: Path | None, console: Console) -> bool:
    """Run it in ``directory`` (None: a temporary one) and print tables; True if everything held.

    What must hold: every query has a definite answer, every ``sat`` is verified, and every new input,
    executed, takes the other branch.
    """
    with ExitStack() as stack:
        if directory is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="smtspool-demo-")))
        place = Campaign.create(directory)
        outcomes = _solve_all(place, console)
        with Store.open(place.store) as store:
            rejected = int(store.counters().get("probes.rejected", 0))
    _print_programs(outcomes, console)
    _print_flips(outcomes, console)
    _print_facts(outcomes, console)
    _print_probes(outcomes, rejected, console)
    return all(_holds(outcome) for outcome in outcomes)


def _solve_all(place: Campaign, console: Console) -> list[_Outcome]:
    asked = list(campaign())
    observed = list(runs())
    submit_telemetry(place.spool, ((name, json.dumps(record).encode()) for name, record in observed))
    with Spool.open(place.spool) as spool:
        spool.submit_many((name, json.dumps(envelope).encode()) for name, envelope in asked)
    settings, _ = load(place.root)
    console.print(
        f"{len(asked)} path constraints and {len(observed)} recorded runs of {len(PROGRAMS)} parsers, "
        f"{settings.jobs} workers"
    )
    with Service(place, settings, once=True) as service:
        _watch(service, console)
        with service.open_store() as store:
            answers = {result.query_id: result.answer for result in store.results()}
    return [_outcome(name, envelope, answers) for name, envelope in asked]


def _outcome(name: str, envelope: Envelope, answers: Mapping[str, Answer]) -> _Outcome:
    program = PROGRAMS[envelope["metadata"]["program"]]
    query = parse_envelope(envelope)
    answer = answers[query.id]
    new_input = candidate(query.witness, answer.model) if query.witness and answer.model else None
    flip = None if new_input is None else flips(program, envelope, new_input)
    return _Outcome(name, program.name, query, answer, new_input, flip)


def _watch(service: Service, console: Console) -> None:
    """Wait for the end of the run behind a progress bar (on a terminal)."""
    with service.open_store() as store, Progress(console=console, transient=True) as progress:
        task = progress.add_task("solving", total=None)
        while not service.join(PROGRESS_SECONDS):
            counts = store.counts()
            progress.update(task, total=counts.total or None, completed=counts.done)


def _print_programs(outcomes: list[_Outcome], console: Console) -> None:
    table = Table(title="verified answers", title_justify="left", box=None)
    table.add_column("parser")
    for column in ("queries", "sat", "verified", "unsat", "open", "reused", "executed", "other branch"):
        table.add_column(column, justify="right")
    for program in (*PROGRAMS, None):
        rows = [one for one in outcomes if program in (one.program, None)]
        statuses = Counter(one.answer.status for one in rows)
        table.add_row(
            program or "all",
            f"{len(rows)}",
            f"{statuses[Status.SAT]}",
            f"{sum(one.answer.verified_by is not None for one in rows if one.answer.status is Status.SAT)}",
            f"{statuses[Status.UNSAT]}",
            f"{statuses[Status.UNKNOWN] + statuses[Status.ERROR]}",
            f"{sum(one.answer.reused_from is not None for one in rows)}",
            f"{sum(one.flip is not None for one in rows)}",
            f"{sum(one.flip is not None and one.flip.flipped for one in rows)}",
            style="bold" if program is None else None,
        )
    console.print(table)


def _print_flips(outcomes: list[_Outcome], console: Console) -> None:
    """The deepest branch that was flipped in each parser."""
    table = Table(title="new inputs, executed", title_justify="left", box=None)
    widths = {"parser": 10, "branch": 34, "known input": 24, "new input": 24, "effect": 13}
    for column, width in widths.items():
        table.add_column(column, no_wrap=True, width=width)
    for program in PROGRAMS:
        flipped = [one for one in outcomes if one.program == program and one.flip and one.flip.flipped]
        deepest = max(flipped, key=lambda one: len(one.query.prefix), default=None)
        if deepest is None or deepest.flip is None or deepest.query.witness is None:
            continue
        table.add_row(
            program,
            escape(deepest.flip.source),
            escape(repr(deepest.query.witness.input)),
            escape(repr(deepest.new_input)),
            f"{deepest.flip.before} → {deepest.flip.after}",
        )
    console.print(table)


def _print_facts(outcomes: list[_Outcome], console: Console) -> None:
    levels = [level.key for one in outcomes for level in one.query.levels]
    kept = sum(attempt.prefix_hit for one in outcomes for attempt in one.answer.attempts)
    console.print(
        f"shared prefixes: {len(levels)} assertions in {len(outcomes)} queries are {len(set(levels))} "
        f"different ones; {kept} were on a helper's stack already"
    )
    races = [one for one in outcomes if any(attempt.cancelled for attempt in one.answer.attempts)]
    for one in sorted(races, key=lambda one: -one.answer.elapsed_ms)[:SHOWN]:
        losers = ", ".join(
            f"{attempt.engine} after {attempt.elapsed_ms:.0f} ms ({attempt.cancel_reason})"
            for attempt in one.answer.attempts
            if attempt.cancelled
        )
        answer = one.answer
        console.print(
            f"race: {one.name}: {answer.status} by {answer.engine} in {answer.elapsed_ms:.0f} ms; "
            f"cancelled: {losers}"
        )


def _print_probes(outcomes: list[_Outcome], rejected: int, console: Console) -> None:
    """Print what probing values of earlier runs gave, with the deepest example of each kind."""
    probed = {kind: [one for one in outcomes if _probed(one.answer) is kind] for kind in (True, False)}
    console.print(
        f"probes: {len(probed[True])} answered by a value seen there, {len(probed[False]) + rejected} "
        f"fell back to a race, {rejected} of them without an engine, for no value seen fits"
    )
    for kind, meaning in ((True, "answered"), (False, "fell back")):
        for one in sorted(probed[kind], key=lambda one: -len(one.query.prefix))[:PROBES_SHOWN]:
            flip = "" if one.flip is None else f": {one.flip.source}, {one.flip.before} → {one.flip.after}"
            console.print(
                f"  {meaning}: {one.name}: {one.answer.status} by {one.answer.engine}{escape(flip)}"
            )


def _probed(answer: Answer) -> bool | None:
    """Whether the probe of a query answered it; None if no engine was probed."""
    for attempt in answer.attempts:
        if attempt.attempt_id.startswith("probe-"):
            return attempt.status is Status.SAT
    return None


def _holds(outcome: _Outcome) -> bool:
    if outcome.answer.status is Status.SAT:
        return outcome.answer.verified_by is not None and outcome.flip is not None and outcome.flip.flipped
    return outcome.answer.status is Status.UNSAT
