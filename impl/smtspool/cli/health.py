"""``health``: whether a campaign is served, as an exit code for containers and monitors."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from smtspool import service

from .app import Dir, Exit, app


@app.command(epilog="Example: smtspool health campaign --within 60 || systemctl status")
def health(
    directory: Dir,
    within: Annotated[
        float, typer.Option(help="Seconds, at most, since a service last gave a sign of life.", min=1)
    ] = 30.0,
) -> None:
    """Exit 0 if a service serves the campaign, gives signs of life and reports no failure; else 5 and why.

    It reads the reports that services write about themselves, not the database, so it works also when the
    disk or the database fails. Services on other hosts are not seen.
    """
    campaign = service.Campaign.open(directory)
    living = [one for one in service.services(campaign) if one["alive"] is not False]
    complaints = [complaint for one in living if (complaint := _complaint(one, time.time() - within))]
    if not living:
        complaints = ["no service is running"]
    for complaint in complaints:
        print(service.plain(complaint))
    if complaints:
        raise typer.Exit(Exit.FINDINGS)


def _complaint(one: Mapping[str, Any], since: float) -> str | None:
    """What is wrong with a running service; None if nothing is."""
    if "written" not in one:
        return f"service {one['token']} does not tell how it is"
    name = f"service {one['pid']} on {one['host']}"
    if one["written"] < since:
        return f"{name} has given no sign of life for {time.time() - one['written']:.0f} s"
    if one["state"] != "serving":
        return f"{name} is {one['state']}"
    failures = [f"{it['loop']} fails: {it['message']}" for it in one["failing"]]
    return f"{name}: {'; '.join(failures)}" if failures else None
