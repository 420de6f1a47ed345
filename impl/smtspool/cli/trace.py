"""``trace``: recordings of ``serve --trace``, checked against the models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from smtspool.errors import MisuseError

from .app import app

traces = typer.Typer(help="Recordings of `serve --trace`.", no_args_is_help=True)
app.add_typer(traces, name="trace")


@traces.command(epilog="Example: smtspool trace check t.ndjson")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Written by: smtspool serve --trace FILE")],
) -> None:
    """Check a recording against the models of admission and of solving; exit 5 if they do not allow it.

    TLC looks for an order of the recorded steps that the model allows. If there is none, the command names
    the first line that no step of the model explains, and the steps that are possible there. It needs the
    models, so it works only in a checkout of smtspool.
    """
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / "conformance" / "recording.py").is_file():
        raise MisuseError(
            "the models are not installed with smtspool: run this in a checkout of its sources, where "
            "`make` has set up the environment, as .venv/bin/smtspool trace check FILE"
        )
    command = [sys.executable, "-m", "conformance", "trace", str(file.resolve())]
    raise typer.Exit(subprocess.run(command, cwd=checkout, check=False).returncode)
