"""Care of a campaign: removing old files, copying it, and rescuing what a damaged store still has."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from smtspool import printing, service
from smtspool.errors import MisuseError
from smtspool.service import What

from .ages import seconds_of
from .app import Dir, Exit, Json, app

New = Annotated[Path, typer.Argument(metavar="NEW", help="The folder to make.")]


@app.command(epilog="Example: smtspool salvage campaign rescued && smtspool serve rescued")
def salvage(directory: Dir, new: New, as_json: Json = False) -> None:
    """Make a new campaign of what can be read of one whose store is damaged; exit 5 if a query is lost.

    DIR is only read. Queries and answers are saved row by row; files of spool/accepted/ whose queries are not
    saved are submitted again, and so is all of spool/incoming/. See docs/recovery.md.
    """
    rescue = service.rescue(service.Campaign.open(directory), new)
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
                "unread": rescue.unread,
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
        for file in rescue.unread:
            print(f"cannot be read: {service.plain(file)}")
        print(f"lost: {len(rescue.lost)} queries", *rescue.lost, sep="\n  ")
    if rescue.lost or rescue.unread or saved.unreadable or saved.damage is not None:
        raise typer.Exit(Exit.FINDINGS)


@app.command(epilog="Example: smtspool backup campaign /mnt/other/campaign-monday")
def backup(directory: Dir, new: New, as_json: Json = False) -> None:
    """Copy a campaign to NEW, served or not, and verify the copy; exit 5 on any finding.

    The store is copied as it is at one moment, with the files of spool/. out/ is not copied, since it is
    derived from the store: `smtspool republish NEW --all` and `smtspool serve NEW` write it. The right to
    read DIR is enough. A setting `store` is not copied: the copy's store is in NEW.
    """
    made = service.back_up(service.Campaign.open(directory), new)
    if as_json:
        members = {"files": made.files, "bytes": made.bytes, "findings": len(made.findings)}
        printing.document({"schema": "smtspool-backup-v1", **members, "left_out": made.left_out})
    else:
        for finding in made.findings:
            print(f"{finding.fault}: {finding.subject}: {finding.message}")
        for name in made.left_out:
            print(f"smtspool.toml is copied without `{name}`: the copy has its own in NEW/{name}")
        print(f"{made.files} files, {service.size(made.bytes)}: {'damaged' if made.findings else 'clean'}")
    if made.findings:
        raise typer.Exit(Exit.FINDINGS)


@app.command(
    epilog="Examples: smtspool prune campaign accepted --archive --older-than 1d · "
    "smtspool prune campaign rejected results attempts --older-than 30d --dry-run"
)
def prune(
    directory: Dir,
    what: Annotated[
        list[What], typer.Argument(metavar="WHAT...", help="accepted, rejected, results, attempts.")
    ],
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Only what is older: 90m, 12h, 30d, 8w.")
    ] = "30d",
    archive: Annotated[
        bool, typer.Option("--archive", help="Pack accepted and rejected files into spool/archive/.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go.")] = False,
    as_json: Json = False,
) -> None:
    """Remove old files and attempts that a campaign does not need. Queries and answers are never removed.

    accepted: files whose queries are stored. rejected: bad files with their sidecars. results: files of
    out/results/, which `republish --all` brings back. attempts: how sat and unsat answers were found.
    """
    campaign = service.Campaign.open(directory)
    age = seconds_of(older_than)
    if age is None:
        raise MisuseError(f"--older-than takes a number and s, m, h, d or w, such as 30d, not {older_than!r}")
    before = time.time() - age
    for one in dict.fromkeys(what):
        gone = service.prune(campaign, one, before, archive=archive, dry_run=dry_run)
        if as_json:
            members = {"what": gone.what, "number": gone.number, "bytes": gone.bytes, "dry_run": dry_run}
            printing.document({"schema": "smtspool-prune-v1", **members})
        else:
            kind = "answers" if one is What.ATTEMPTS else "files"
            print(f"{one}: {gone.number} {kind}, {service.size(gone.bytes)}{' would go' if dry_run else ''}")
