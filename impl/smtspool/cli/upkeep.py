"""Upkeep of a campaign: opening queries again, writing files again, verifying the store, showing settings."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from smtspool import printing, service
from smtspool.errors import MisuseError
from smtspool.store import Store

from .app import Dir, Exit, Json, app


@app.command(epilog="Example: smtspool retry campaign 3f2a")
def retry(
    directory: Dir,
    queries: Annotated[
        list[str], typer.Argument(metavar="QUERY...", help="Ids, or starts of ids; '' is all.")
    ],
) -> None:
    """Put queries that ended as unknown or error back into the queue."""
    campaign = service.Campaign.open(directory)
    settings, _ = service.load(campaign.root)
    with Store.open(campaign.store, confirm_unsat=settings.confirm_unsat) as store:
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
    """Let the next `serve` write result files again that were given up."""
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
