"""``status`` and ``results``: how a campaign is doing, and what it has found."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from smtspool import printing, service
from smtspool.errors import MisuseError
from smtspool.store import Store

from .app import Dir, Json, app

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
    if not 0.1 <= interval <= 86_400:  # written so that it refuses NaN too, as no range of typer does
        raise MisuseError(f"--interval must be a number of seconds from 0.1 to 86400, not {interval:g}")
    campaign = service.Campaign.open(directory)
    with Store.view(campaign.store) as store:
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
    """List the answers of a campaign, or with their models those of QUERY; --json tells everything."""
    campaign = service.Campaign.open(directory)
    if export is not None:
        print(f"{service.export_inputs(campaign, export)} inputs exported to {export}")
        return
    found = 0
    with Store.view(campaign.store) as store:
        table = printing.Results(as_json=as_json, endless=follow or query is not None)
        last = 0
        while True:
            for result in store.results(last, prefix=query or ""):
                last = result.number
                found += 1
                table.add(result)
                asked = store.query(result.query_id) if query and not as_json else None
                if asked is not None and result.answer.model is not None:
                    printing.model(asked, result.answer.model)
            if not follow:
                break
            time.sleep(FOLLOW_SECONDS)
        table.end()
    if query is not None and not found:
        raise MisuseError(f"no answered query whose id starts with {query!r}")
