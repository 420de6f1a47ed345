"""Taking care of a campaign: salvage of what a damaged store still holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smtspool import printing, service

from .app import Dir, Exit, Json, app

New = Annotated[Path, typer.Argument(metavar="NEW", help="A folder that is to be made.")]


@app.command(epilog="Example: smtspool salvage campaign rescued && smtspool serve rescued")
def salvage(directory: Dir, new: New, as_json: Json = False) -> None:
    """Make a new campaign of what can be read of one whose store is damaged; exit 5 if a query is lost.

    DIR is only read. Queries and answers are saved row by row; files of spool/accepted/ whose queries are not
    saved are submitted again, and so is all of spool/incoming/. See docs/recovery.md.
    """
    rescue = service.salvage(service.Campaign.open(directory), new)
    saved = rescue.saved
    if as_json:
        printing.document(
            {
                "schema": "smtspool-salvage-v1",
                "queries": saved.queries,
                "answers": saved.answers,
                "resubmitted": rescue.resubmitted,
                "lost": rescue.lost,
                "unreadable": saved.unreadable,
                "damage": saved.damage,
            }
        )
    else:
        if saved.damage is not None:
            print(f"nothing of the store can be read: {service.plain(saved.damage)}")
        print(f"saved: {saved.queries} queries, {saved.answers} of them answered")
        print(f"submitted again: {rescue.resubmitted} files")
        if saved.unreadable:
            print(
                f"not known: {saved.unreadable} rows that cannot be read; accepted files may have held them"
            )
        print(f"lost: {len(rescue.lost)} queries", *rescue.lost, sep="\n  ")
    if rescue.lost or saved.unreadable or saved.damage is not None:
        raise typer.Exit(Exit.FINDINGS)
