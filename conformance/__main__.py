"""``python -m conformance``: every protocol, in one table.

``python -m conformance models [--pin]`` runs TLC on every ``models/*/manifest.toml``,
``python -m conformance models --long`` on every safety run with one bound raised;
``python -m conformance spool [--path N,N,...]`` drives one protocol, or one path of it;
``python -m conformance race/RaceQueue`` drives one graph of a protocol;
``python -m conformance mutants`` measures the kill matrix and compares it with what is pinned,
``python -m conformance mutants --write [--all]`` pins what is new, or all, and writes ``docs/mutants.md``;
``python -m conformance race --races N`` races the real engines on free threads, under kills;
``python -m conformance trace FILE`` checks a recording of ``smtspool serve --trace``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from conformance.contract import Protocol
from conformance.driving import drive_all, repeat_walk, run
from conformance.engine.manifest import check_all, check_raised, pin
from conformance.engine.replay import Divergence
from conformance.engine.tlc import TlcError
from conformance.engine.trace import TraceError
from conformance.matrix import SUBJECTS, faults, generated, measure, update
from conformance.mutants_page import PAGE, page
from conformance.protocols import PROTOCOLS, check_file, named

MANIFESTS = sorted((Path(__file__).parent.parent / "models").glob("*/manifest.toml"))


def run_models(console: Console, *, repin: bool, long: bool) -> int:
    """Run TLC on all models; the number of runs that differ from what is pinned."""
    for manifest in MANIFESTS if repin else ():
        pin(manifest)
    started, bad, count = time.monotonic(), 0, 0
    for verdict in check_raised(*MANIFESTS) if long else check_all(*MANIFESTS):
        count += 1
        bad += bool(verdict.differences)
        run = verdict.run
        says = f"fails {run.violated}" if run.violated else "holds"
        seconds = f"{verdict.result.seconds:5.1f} s" if verdict.result else ""
        mark = "[red]differs[/]" if verdict.differences else "[green]ok[/]"
        model = Path(run.module).stem
        console.print(
            f"{mark} {model}/{run.cfg} ({run.kind}): {says}, {run.distinct} states {seconds}", highlight=False
        )
        for difference in verdict.differences:
            console.print(f"    {difference}", markup=False, highlight=False)
    console.print(f"{count} runs, {bad} differ, {time.monotonic() - started:.0f} s")
    return bad


def run_protocols(console: Console, protocols: Sequence[Protocol]) -> int:
    """Drive protocols through the code and print what was driven; the number of those that are incomplete."""
    table = Table(title="conformance")
    bad = 0
    for protocol in protocols:
        report = run(protocol, say=lambda text: console.print(text, highlight=False, markup=False))
        for column in () if table.columns else report.cells:
            table.add_column(column, justify="right" if column != "protocol" else "left")
        table.add_row(*report.cells.values())
        bad += not report.complete
    console.print(table)
    return bad


def run_mutants(console: Console, *, repin: bool, everything: bool, only: str | None) -> int:
    """Measure the mutants of all protocols; the number of faults of the matrix."""

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False)

    wrong: list[str] = []
    for subject in SUBJECTS:
        if only not in (None, subject.name):
            continue
        started = time.monotonic()
        if repin:
            update(subject, say, everything=everything)
        else:
            wrong += faults(subject, list(measure(subject, generated(subject), say)))
        say(f"{subject.name}: {time.monotonic() - started:.0f} s")
    if repin:
        PAGE.write_text(page())
    for fault in wrong:
        say(fault)
    say(f"{len(wrong)} faults of the matrix")
    return len(wrong)


# What `smtspool trace check` ends with, as its other commands do.
_MISUSE, _FINDINGS, _INFRASTRUCTURE = 2, 5, 74


def check_trace(path: Path) -> int:
    """Say whether the model explains a recording: 0; 5 if it does not; 2 if it is no whole recording."""
    accepted = True
    try:
        for checked in check_file(path):
            print(f"{path}: {checked.text}")
            accepted &= checked.accepted
    except TraceError as error:
        print(f"{path}: {error}", file=sys.stderr)
        return _MISUSE
    except (OSError, TlcError) as error:
        print(error, file=sys.stderr)
        return _INFRASTRUCTURE
    return 0 if accepted else _FINDINGS


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 only when everything that is required was done and came out right."""
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        default="all",
        help=f"all, models, mutants, trace, or a protocol: {', '.join(p.name for p in PROTOCOLS)}",
    )
    parser.add_argument("file", nargs="?", type=Path, help="trace: the recording")
    parser.add_argument(
        "--pin", action="store_true", help="models: write the results of today into the manifest"
    )
    parser.add_argument("--write", action="store_true", help="mutants: pin what is new")
    parser.add_argument("--all", action="store_true", help="mutants, with --write: measure all of it")
    parser.add_argument("--only", choices=[s.name for s in SUBJECTS], help="mutants: of one protocol")
    parser.add_argument("--long", action="store_true", help="models: safety with one bound raised")
    parser.add_argument("--path", help="a protocol: drive this one path, edge numbers with commas")
    parser.add_argument("--walk", help="a protocol: take this one walk, as a failure prints it")
    parser.add_argument("--races", type=int, help="race: so many of the real engines, and nothing else")
    parser.add_argument("--seed", type=int, help="with --races: another one each time by default")
    parser.add_argument("--variant", type=int, default=0, help="with --path and --walk: which variant")
    chosen = parser.parse_args(arguments)
    if (chosen.what == "trace") != (chosen.file is not None):
        parser.error("trace takes a FILE, and nothing else does")
    if chosen.what == "trace":
        return check_trace(chosen.file)
    console = Console(width=None if sys.stdout.isatty() else 150)
    try:
        if chosen.what == "models":
            return min(1, run_models(console, repin=chosen.pin, long=chosen.long))
        if chosen.what == "mutants":
            return min(1, run_mutants(console, repin=chosen.write, everything=chosen.all, only=chosen.only))
        if chosen.what == "all":
            return min(1, run_protocols(console, PROTOCOLS))
        try:
            protocol, graph = named(chosen.what)
        except LookupError as error:
            parser.error(str(error))
        if chosen.races is not None and protocol.stress is None:
            parser.error(f"{protocol.name} has no --races")
        return run_one(console, protocol, graph, chosen)
    except Divergence as error:
        console.print(str(error), markup=False, highlight=False)
        return 1


def run_one(console: Console, protocol: Protocol, graph: str, chosen: argparse.Namespace) -> int:
    """One path, one walk or one graph of a protocol, or so many free runs of it, or all that it requires."""
    if chosen.path is not None:
        with protocol.replay(graph) as driven:
            driven.path([int(number) for number in chosen.path.split(",") if number != "-"], chosen.variant)
        console.print("the path goes as the model says")
    elif chosen.walk is not None:
        repeat_walk(protocol, chosen.variant, chosen.walk)
        console.print("every invariant holds on this walk")
    elif chosen.races is not None and protocol.stress is not None:
        seed = int.from_bytes(os.urandom(4)) if chosen.seed is None else chosen.seed
        console.print(f"seed {seed}")
        protocol.stress(seed, chosen.races, lambda text: console.print(text, highlight=False, markup=False))
    elif "/" in chosen.what:
        console.print(f"{graph}: {drive_all(protocol, [graph]).text}", highlight=False)
    else:
        return min(1, run_protocols(console, [protocol]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
