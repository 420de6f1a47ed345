"""``demo``: the sample campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from smtspool import service

from .app import Exit, app


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
