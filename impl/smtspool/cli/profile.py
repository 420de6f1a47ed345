"""``profile``: the domains that a campaign has learnt from telemetry, and checks of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from smtspool import printing, service

from .app import Dir, Exit, Json, app

_SCHEMA = "smtspool-profile-v1"
_CONTEXT_DIGITS = 12


class What(StrEnum):
    """What `profile` does."""

    SHOW = "show"
    REPLAY = "replay"
    VERIFY = "verify"


@app.command(
    epilog="Examples: smtspool profile campaign show · smtspool profile campaign replay && echo sound"
)
def profile(
    directory: Dir,
    what: Annotated[
        What,
        typer.Argument(
            help="show: domains and counters; replay: do the records still lead to them? verify: every file."
        ),
    ] = What.SHOW,
    as_json: Json = False,
) -> None:
    """Show, replay or verify what was learnt about values; changes nothing. Exit 5 on any finding."""
    campaign = service.Campaign.open(directory)
    if what is What.VERIFY:
        _verify(campaign, as_json=as_json)
        return
    settings, _ = service.load(campaign.root)
    report = service.profile_report(campaign, settings)
    if as_json:
        printing.document({"schema": _SCHEMA, **_members(report)})
    elif what is What.SHOW:
        _show(report)
    else:
        records = report.snapshot["window_records"]
        print(f"{records} records replayed in {report.replay_s * 1e3:.0f} ms")
        print("\n".join(report.snapshot["doubts"]) or "they lead to what is published")
    if what is What.REPLAY and report.snapshot["dirty"]:
        raise typer.Exit(Exit.FINDINGS)


def _verify(campaign: service.Campaign, *, as_json: bool) -> None:
    faults = 0
    for file, fault in service.verify_profile(campaign):
        faults += fault is not None
        if as_json:
            printing.document({"schema": _SCHEMA, "file": file, "fault": fault})
        else:
            print(f"{file}: {service.plain(fault or 'sound')}")
    if faults:
        raise typer.Exit(Exit.FINDINGS)


def _members(report: service.ProfileReport) -> dict[str, object]:
    found = report.artifact
    return {
        **report.snapshot,
        "replay_seconds": report.replay_s,
        "domains": [] if found is None else [_domain(domain) for domain in found.domains],
        "suppressed": []
        if found is None
        else [{**_domain(one.domain), **one.found._asdict()} for one in found.suppressed],
    }


def _domain(domain: service.Domain) -> dict[str, object]:
    return {**domain.key._asdict(), "values": list(domain.values)}


def _show(report: service.ProfileReport) -> None:
    console = Console(markup=False, emoji=False)
    found = report.artifact
    if found is not None:
        table = Table("program", "site", "bits", "values", "probed", box=None)
        withheld = {one.domain: one.found for one in found.suppressed}
        for domain in (*found.domains, *withheld):
            numbers = withheld.get(domain)
            table.add_row(
                domain.key.context[:_CONTEXT_DIGITS],
                f"{domain.key.site}",
                f"{domain.key.bits}",
                " ".join(map(str, domain.values)),
                "yes" if numbers is None else f"no: {numbers.validated} of {numbers.solver_queries} answered",
            )
        console.print(table)
    table = Table(show_header=False, box=None)
    for name, value in report.snapshot.items():
        if name != "doubts":
            table.add_row(name.replace("_", " "), f"{value}")
    for doubt in report.snapshot["doubts"]:
        table.add_row("to be rebuilt", doubt)
    console.print(table)
