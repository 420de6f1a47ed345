"""``status`` and ``results``: the state of a campaign, and its answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.live import Live

from smtspool import printing, service
from smtspool.errors import MisuseError
from smtspool.query import Status
from smtspool.store import Found, State, Store, Wanted

from .ages import seconds_of
from .app import Dir, Exit, Json, app

# How often `results --follow` looks for more.
FOLLOW_SECONDS = 0.5


@app.command(epilog="Examples: smtspool status campaign · smtspool status campaign --json | jq .counts")
def status(
    directory: Dir,
    once: Annotated[bool, typer.Option("--once", help="Print once instead of a live screen.")] = False,
    as_json: Json = False,
    interval: Annotated[float, typer.Option(help="Seconds between refreshes, 0.1 to 86400.")] = 1.0,
) -> None:
    """Show how a campaign is doing: backlog, rates, answers, engines, trouble."""
    if not 0.1 <= interval <= 86_400:  # in this form it also refuses NaN, which a range of typer does not
        raise MisuseError(f"--interval must be a number of seconds from 0.1 to 86400, not {interval:g}")
    campaign = service.Campaign.open(directory)
    if as_json:
        printing.document(service.look(campaign).to_json())
        return
    console = Console(markup=False, emoji=False, highlight=False)
    if once or not console.is_terminal:
        console.print(service.status_screen(service.look(campaign), width=console.width))
        return

    def looked() -> RenderableType:
        now = service.look(campaign)
        return service.status_screen(now, width=console.width, height=console.height, live=True)

    with Live(looked(), console=console, screen=True, auto_refresh=False) as live:
        while True:  # until SIGINT unwinds it
            time.sleep(interval)
            live.update(looked(), refresh=True)


class Kind(StrEnum):
    """The answer of a listed query; ``pending`` if it has none yet."""

    SAT = Status.SAT
    UNSAT = Status.UNSAT
    UNKNOWN = Status.UNKNOWN
    ERROR = Status.ERROR
    PENDING = "pending"


@app.command(
    epilog="Examples: smtspool results campaign --file a.smt2 · smtspool results campaign --status pending · "
    "smtspool results campaign --where site=12 --since 2h --json"
)
def results(
    directory: Dir,
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="Id, or the start of one.")] = None,
    file: Annotated[
        str | None, typer.Option(metavar="NAME", help="What became of a file; shell patterns are taken.")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Submitted with this in its metadata.")
    ] = None,
    status: Annotated[list[Kind] | None, typer.Option(help="Only these; repeat it for more.")] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Not older than 30m, 2h or 7d, or than 2026-12-01T09:30."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as answers arrive.")] = False,
    as_json: Json = False,
    export: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Only copy all new inputs there, for afl-fuzz -F.")
    ] = None,
) -> None:
    """List the answers of a campaign, or those of QUERY with their models; --json prints all members.

    --file and --where list each submission by itself, also one that waits for its answer or was refused.
    """
    campaign = service.Campaign.open(directory)
    if export is not None:
        exported = service.export_inputs(campaign, export)
        printing.exported(exported, export, as_json=as_json)
        if exported.damaged:
            raise typer.Exit(Exit.FINDINGS)
        return
    wanted = _wanted(query, file, where or [], status, since)
    if follow and (wanted.open or wanted.by_submission):
        raise MisuseError("--follow waits for any answer: give it without --file, --where, --status pending")
    found = 0
    with Store.view(campaign.store) as store:
        table = printing.Results(as_json=as_json, endless=follow or query is not None)
        last = 0
        while True:
            for one in _found(store, last, wanted):
                last = last if one.result is None else one.result.number
                found += 1
                table.add(one, store.submissions(one.query_id))
                asked = store.query(one.query_id) if query and not as_json and one.result else None
                if asked is not None and one.result is not None and one.result.answer.model is not None:
                    printing.model(asked, one.result.answer.model)
            if not follow:
                break
            time.sleep(FOLLOW_SECONDS)
        for file_left in service.find_unadmitted(campaign, wanted.file) if wanted.file and not status else ():
            found += 1
            table.add_unadmitted(file_left)
        table.end()
    if query is not None and not found:
        raise MisuseError(f"no answered query whose id starts with {query!r}")
    if file is not None and not found and not status:
        raise MisuseError(f"no file was submitted to this campaign as {wanted.file!r}")


def _found(store: Store, after: int, wanted: Wanted) -> Iterator[Found]:
    if wanted.open or wanted.by_submission:
        yield from store.listed(wanted)
    else:
        for result in store.results(after, wanted=wanted):
            yield Found(result.query_id, State.DONE, result)


def _wanted(
    query: str | None, file: str | None, where: list[str], kinds: list[Kind] | None, since: str | None
) -> Wanted:
    pairs = [pair.partition("=") for pair in where]
    if not all(key and equals for key, equals, _ in pairs):
        raise MisuseError(f"--where takes KEY=VALUE, not {' '.join(where)}")
    answers = frozenset(Status(kind) for kind in kinds or () if kind is not Kind.PENDING)
    return Wanted(
        prefix=query or "",
        statuses=answers if kinds else frozenset(Status),
        open=Kind.PENDING in kinds if kinds else bool(file or where),
        since=0.0 if since is None else _time(since),
        file=None if file is None else Path(file).name,
        metadata={key: value for key, _, value in pairs},
    )


def _time(text: str) -> float:
    """Seconds since the epoch of ``30m`` ago, or of a date in local time unless it has a zone."""
    age = seconds_of(text)
    if age is not None:
        return time.time() - age
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise MisuseError(f"--since takes 30m, 2h, 7d or a date such as 2026-12-01T09:30: {text!r}") from None
