"""What the commands share: the application, its exit codes, and options that mean the same everywhere."""

from __future__ import annotations

import math
from enum import IntEnum
from pathlib import Path
from typing import Annotated

import typer

from smtspool import __version__
from smtspool.errors import MisuseError

__all__ = ["Dir", "Engines", "Exit", "Files", "Jobs", "Json", "Timeout", "app", "timeout_ms"]

EXIT_CODES = """Exit codes: 0 done, every query answered; 2 bad input or misuse; 3 some query is unknown
or an error, or locks are clean but not verified; 5 fsck or trace check found something; 65 masters refuse to
trust a directory; 70 a defect of smtspool, or masters shut down; 74 the machine failed us; 128+N signal N."""


class Exit(IntEnum):
    """What the process says when it ends; ``sysexits`` where there is one."""

    DONE = 0
    MISUSE = 2
    UNANSWERED = 3
    FINDINGS = 5
    UNQUALIFIED = 65
    DEFECT = 70
    INFRASTRUCTURE = 74


app = typer.Typer(
    help="A durable, crash-safe SMT query service for parallel symbolic execution.",
    epilog=EXIT_CODES.replace("\n", " "),  # one paragraph
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Dir = Annotated[Path, typer.Argument(metavar="DIR", help="Campaign folder, made by: smtspool init DIR")]
Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="*.smt2, or *.json envelopes")]
Json = Annotated[bool, typer.Option("--json", help="JSON for machines, one document per line.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Queries solved at the same time.")]
Engines = Annotated[
    list[str] | None,
    typer.Option("--engine", "-e", help="bitwuzla, z3, cvc5 or NAME=COMMAND; repeat it: a sat takes two."),
]
Timeout = Annotated[float | None, typer.Option("--timeout", "-t", help="Seconds per query.")]


def timeout_ms(seconds: float | None) -> int | None:
    """Milliseconds, at least one. Raises :class:`MisuseError` for what is no number above 0."""
    if seconds is None:
        return None
    milliseconds = seconds * 1e3  # infinite for some numbers that are not
    if not 0 < milliseconds < math.inf:  # written so that it refuses NaN too
        raise MisuseError(f"--timeout must be a number of seconds above 0, an hour at most, not {seconds:g}")
    return max(1, round(milliseconds))


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
