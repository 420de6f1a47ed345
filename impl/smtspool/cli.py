"""The command line: parse, call the service or the public API, print. No logic of its own."""

from __future__ import annotations

import io
import logging
import math
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
from contextlib import closing, nullcontext
from dataclasses import asdict
from enum import IntEnum
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from smtspool import __version__, printing, service
from smtspool.errors import AdmissionError, InfrastructureError, MisuseError, Reason, SmtspoolError
from smtspool.spool import Spool
from smtspool.store import Counts, Store

__all__ = ["Exit", "app", "main"]

EXIT_CODES = """Exit codes: 0 done, every query answered; 2 bad input or misuse; 3 some query is unknown
or an error; 5 fsck or trace check found something; 70 a defect of smtspool; 74 the machine failed us;
128+N signal N."""


class Exit(IntEnum):
    """What the process says when it ends; ``sysexits`` where there is one."""

    DONE = 0
    MISUSE = 2
    UNANSWERED = 3
    FINDINGS = 5
    DEFECT = 70
    INFRASTRUCTURE = 74


# How often `results --follow` looks for more.
FOLLOW_SECONDS = 0.5

app = typer.Typer(
    help="A durable, crash-safe SMT query service for parallel symbolic execution.",
    epilog=EXIT_CODES.replace("\n", " "),  # one paragraph
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

traces = typer.Typer(help="Recordings of `serve --trace`.", no_args_is_help=True)
app.add_typer(traces, name="trace")

Dir = Annotated[Path, typer.Argument(metavar="DIR", help="Campaign folder, made by: smtspool init DIR")]
Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="*.smt2, or *.json envelopes")]
Json = Annotated[bool, typer.Option("--json", help="JSON for machines, one document per line.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Queries solved at the same time.")]
Engines = Annotated[
    list[str] | None,
    typer.Option("--engine", "-e", help="bitwuzla, z3, cvc5 or NAME=COMMAND; repeat it: a sat takes two."),
]
Timeout = Annotated[float | None, typer.Option("--timeout", "-t", help="Seconds per query.")]


def main() -> None:
    """Run a command; every error becomes a sentence on stderr and an exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name or a symbol may not exist in its encoding
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except SmtspoolError as error:
        infrastructure = isinstance(error, InfrastructureError)
        _exit(str(error), Exit.INFRASTRUCTURE if infrastructure else Exit.MISUSE)
    except (OSError, sqlite3.Error) as error:
        _exit(str(error), Exit.INFRASTRUCTURE)
    except Exception as error:  # noqa: BLE001 - the last boundary of the process: reported, never swallowed
        traceback.print_exc()
        service.leave_if_unwinding(error)
        _exit("a defect of smtspool; please report it with the lines above", Exit.DEFECT)


def _leave(number: int, frame: FrameType | None) -> None:
    """First signal: unwind, so that temporary folders and helpers go. Second: the kernel's way."""
    for again in (signal.SIGINT, signal.SIGTERM):
        signal.signal(again, signal.SIG_DFL)
    sys.exit(128 + number)


def _exit(message: str, code: Exit) -> None:
    print(f"smtspool: {service.plain(message)}", file=sys.stderr)
    sys.exit(code)


def _timeout_ms(seconds: float | None) -> int | None:
    if seconds is None:
        return None
    if not 0 < seconds < math.inf:  # written so that it refuses NaN too
        raise MisuseError(f"--timeout must be a number of seconds above 0, not {seconds:g}")
    return max(1, round(seconds * 1e3))


def _version(wanted: bool) -> None:
    if wanted:
        print(f"smtspool {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


# -- one-off solving ------------------------------------------------------------------------------------


@app.command(epilog="Examples: smtspool solve q.smt2 · smtspool solve --json --timeout 20 queries/*.smt2")
def solve(
    files: Files,
    model: Annotated[bool, typer.Option("--model", "-m", help="Print the model of each sat query.")] = False,
    as_json: Json = False,
    engine: Engines = None,
    timeout: Timeout = None,
    jobs: Jobs = None,
) -> None:
    """Answer each query of the FILEs: sat, unsat or unknown; every sat is confirmed by a second engine."""
    settings, _ = service.load(flags={"engines": engine, "timeout_ms": _timeout_ms(timeout), "jobs": jobs})
    code = 0
    scripts = ((str(path), _content(path)) for path in files)
    with closing(service.solve_scripts(scripts, settings)) as answers:
        for solved in answers:
            printing.solved(solved, several=len(files) > 1, model=model, as_json=as_json)
            # Bad input outweighs an unknown answer: somebody has to do something about it.
            code = Exit.MISUSE if Exit.MISUSE in (code, _code(solved)) else (code or _code(solved))
    raise typer.Exit(code)


def _content(path: Path) -> bytes | AdmissionError:
    try:
        return path.read_bytes()
    except OSError as error:
        return AdmissionError(Reason.UNREADABLE, f"cannot be read: {error.strerror}")


def _code(solved: service.Solved) -> Exit:
    if solved.answer is None:
        return Exit.MISUSE
    return Exit.DONE if solved.answer.status.definite else Exit.UNANSWERED


# -- campaigns ------------------------------------------------------------------------------------------


@app.command(epilog="Example: smtspool init campaign && smtspool submit campaign *.smt2")
def init(directory: Dir) -> None:
    """Create a campaign folder: spool/, store/, out/ and smtspool.toml with commented defaults."""
    campaign = service.Campaign.create(directory)
    print(f"campaign {campaign.root}: submit queries, then run: smtspool serve {directory}")


@app.command(epilog="Example: smtspool submit campaign queries/*.smt2")
def submit(directory: Dir, files: Files, as_json: Json = False) -> None:
    """Publish FILEs durably in the campaign's spool; a taken name gets a fresh suffix."""
    campaign = service.Campaign.open(directory)
    missing = [str(path) for path in files if not path.is_file()]
    if missing:  # before the first is published: a command with a mistyped name can be given again
        raise MisuseError(f"nothing is submitted, no such file: {', '.join(missing)}")
    with Spool.open(campaign.spool) as spool:
        contents = ((path.name, path.read_bytes()) for path in printing.progress(files, "submitting"))
        names = spool.submit_many(contents)
    if as_json:
        printing.document({"schema": "smtspool-submit-v1", "submitted": names})
    else:
        print(f"{len(names)} submitted")


@app.command(epilog="Examples: smtspool serve campaign · smtspool serve campaign --once -j 4 -e z3 -e cvc5")
def serve(
    directory: Dir,
    once: Annotated[bool, typer.Option("--once", help="Answer what is there, then exit.")] = False,
    jobs: Jobs = None,
    engine: Engines = None,
    order: Annotated[str | None, typer.Option("--order", help="dfs, bfs, priority or fifo.")] = None,
    timeout: Timeout = None,
    metrics_port: Annotated[int | None, typer.Option(help="Prometheus on localhost, at /metrics.")] = None,
    log_format: Annotated[str | None, typer.Option(help="text or json.")] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Record every protocol action, one JSON line each.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every answer.")] = False,
    as_json: Json = False,
) -> None:
    """Admit and solve until stopped. SIGINT or SIGTERM drains; a second one stops at once.

    With --once the exit code is 3 if the campaign holds an unknown or an error.
    """
    campaign = service.Campaign.open(directory)
    flags = {
        "jobs": jobs,
        "engines": engine,
        "order": order,
        "timeout_ms": _timeout_ms(timeout),
        "metrics_port": metrics_port,
        "log_format": log_format,
    }
    settings, _ = service.load(campaign.root, flags=flags)
    service.log_to_stderr(settings.log_format, logging.DEBUG if verbose else logging.INFO)
    with service.collected_signals() as received:
        with (
            nullcontext() if trace is None else service.traced(trace),
            service.Service(campaign, settings, once=once) as running,
            service.exposed(settings.metrics_port, running.open_store, running.health),
        ):
            service.run_until_signalled(running, received)
        counts = _report_end(campaign, as_json)
    if received:
        raise typer.Exit(128 + received[0])
    if counts.done > counts.sat + counts.unsat:
        raise typer.Exit(Exit.UNANSWERED)


def _report_end(campaign: service.Campaign, as_json: bool) -> Counts:
    with Store.open(campaign.store) as store:
        now = service.snapshot(campaign, store)
    if as_json:
        printing.document(now.to_json())
    else:
        print(printing.summary(now))
    return now.counts


@app.command(epilog="Examples: smtspool status campaign · smtspool status campaign --json | jq .counts")
def status(
    directory: Dir,
    once: Annotated[bool, typer.Option("--once", help="Print once instead of a live screen.")] = False,
    as_json: Json = False,
    interval: Annotated[float, typer.Option(help="Seconds between refreshes.", min=0.1)] = 1.0,
) -> None:
    """Show how a campaign is doing: backlog, rates, answers, engines, trouble."""
    campaign = service.Campaign.open(directory)
    with Store.open(campaign.store) as store:
        now = service.snapshot(campaign, store)
        if as_json:
            printing.document(now.to_json())
            return
        console = Console()
        if once or not console.is_terminal:
            console.print(service.screen(now))
            return
        with Live(service.screen(now), console=console, screen=True, auto_refresh=False) as live:
            while True:  # until SIGINT unwinds it
                time.sleep(interval)
                before, now = now, service.snapshot(campaign, store)
                live.update(service.screen(now, before), refresh=True)


@app.command(epilog="Examples: smtspool results campaign · smtspool results campaign --json --follow")
def results(
    directory: Dir,
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="Id, or the start of one.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as answers arrive.")] = False,
    as_json: Json = False,
    export: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Only copy all new inputs there, for afl-fuzz -F.")
    ] = None,
) -> None:
    """List the answers of a campaign, or those of QUERY; with --json they have model and attempts."""
    campaign = service.Campaign.open(directory)
    if export is not None:
        print(f"{service.export_inputs(campaign, export)} inputs exported to {export}")
        return
    found = 0
    with Store.open(campaign.store) as store:
        table = printing.Results(as_json=as_json, endless=follow)
        last = 0
        while True:
            for result in store.results(last):
                last = result.number
                if query is None or result.query_id.startswith(query):
                    found += 1
                    table.add(result)
            if not follow:
                break
            time.sleep(FOLLOW_SECONDS)
        table.end()
    if query is not None and not found:
        raise MisuseError(f"no answered query whose id starts with {query!r}")


@app.command(epilog="Example: smtspool retry campaign 3f2a")
def retry(
    directory: Dir,
    queries: Annotated[list[str], typer.Argument(metavar="QUERY", help="Ids, or starts of ids; '' is all.")],
) -> None:
    """Put queries that ended as unknown or error back into the queue."""
    campaign = service.Campaign.open(directory)
    with Store.open(campaign.store) as store:
        ended = store.undecided()
        chosen = {query: [known for known in ended if known.startswith(query)] for query in queries}
        missing = [query for query, found in chosen.items() if not found]
        if missing:
            raise MisuseError(f"no query that ended as unknown or error: {', '.join(missing)}")
        reopened = sum(store.retry(known) for known in set().union(*chosen.values()))
    print(f"{reopened} put back")


@app.command(epilog="Examples: smtspool republish campaign · smtspool republish campaign --all")
def republish(
    directory: Dir,
    everything: Annotated[bool, typer.Option("--all", help="All files, to create out/ anew.")] = False,
) -> None:
    """Have result files that were given up written again by the next `serve`."""
    campaign = service.Campaign.open(directory)
    with Store.open(campaign.store) as store:
        due = store.republish() if everything else store.revive_publications()
    print(f"{due} to be written")


@app.command(epilog="Example: smtspool fsck campaign && echo all is well")
def fsck(directory: Dir, as_json: Json = False) -> None:
    """Verify the store of a campaign and change nothing; exit 5 on any finding."""
    campaign = service.Campaign.open(directory)
    findings = Store.fsck(campaign.store)
    for finding in findings:
        if as_json:
            printing.document({"schema": "smtspool-fsck-v1", **asdict(finding)})
        else:
            print(f"{finding.fault}: {finding.subject}: {finding.message}")
    if findings:
        raise typer.Exit(Exit.FINDINGS)
    if not as_json:
        print("clean")


@traces.command(epilog="Example: smtspool trace check t.ndjson")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Written by: smtspool serve --trace FILE")],
) -> None:
    """Check a recording against the model of spool admission; exit 5 if the model does not explain it.

    TLC looks for one order of the recorded steps that the model allows; if there is none, the first line
    that no step explains is named, with what is possible there. Needs the models, so a checkout of smtspool.
    """
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / "conformance" / "spool_trace.py").is_file():
        raise MisuseError(
            "the models are not installed with smtspool: run this in a checkout of its sources, where "
            "`make` has set up the environment, as .venv/bin/smtspool trace check FILE"
        )
    command = [sys.executable, "-m", "conformance", "trace", str(file.resolve())]
    raise typer.Exit(subprocess.run(command, cwd=checkout, check=False).returncode)


@app.command(epilog="Example: smtspool config campaign")
def config(
    directory: Annotated[Path | None, typer.Argument(metavar="DIR", help="Campaign folder.")] = None,
    as_json: Json = False,
) -> None:
    """Print the settings in force and where each came from."""
    _, sources = service.load(None if directory is None else service.Campaign.open(directory).root)
    if as_json:
        settings = {s.name: {"value": s.value, "origin": s.origin} for s in sources}
        printing.document({"schema": "smtspool-config-v1", "settings": settings})
        return
    table = Table("setting", "value", "from", box=None)
    for source in sources:
        value = ", ".join(source.value) if isinstance(source.value, tuple) else str(source.value)
        table.add_row(source.name, service.plain(value), service.plain(source.origin))
    Console(markup=False, emoji=False).print(table)


@app.command(epilog="Example: smtspool demo /tmp/campaign")
def demo(
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Where to keep the campaign; default: nowhere.")
    ] = None,
) -> None:
    """Run the sample campaign: walk small parsers, solve their path constraints, execute the new inputs."""
    console = Console()
    if not console.is_terminal:
        console.width = 120  # a pipe has no width; its reader may have one
    if not service.run_demo(directory, console):
        raise typer.Exit(Exit.UNANSWERED)
