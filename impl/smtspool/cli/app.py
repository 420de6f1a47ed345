"""Common parts of the commands: the application, exit codes, and options that mean the same everywhere.

:data:`COMMANDS` is the list of commands that ``--help`` prints. Each is defined in a module of this folder,
which registers it with ``@app.command`` and is imported only when the command is given, since imports take
most of a short command's time. To add a command, add a line here and a function there.
"""

from __future__ import annotations

import math
from enum import IntEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from smtspool import service
from smtspool.errors import MisuseError
from smtspool.service import BUNDLED

__all__ = ["COMMANDS", "Dir", "Engines", "Exit", "Jobs", "Json", "Timeout", "app", "timeout_ms"]

# The module of each command and its line in --help, in the order of --help.
COMMANDS = {
    "solve": ("solve", "Answer files here and now: sat, unsat or unknown."),
    "init": ("campaign", "Create a campaign folder."),
    "submit": ("campaign", "Put files into a campaign's spool, durably."),
    "serve": ("serve", "Admit and solve until stopped."),
    "status": ("results", "Show how a campaign is doing."),
    "results": ("results", "List answers, follow them, export new inputs."),
    "profile": ("profile", "Show, replay or verify what was learnt about values."),
    "retry": ("upkeep", "Put queries that ended undecided back into the queue."),
    "republish": ("upkeep", "Have result files written again."),
    "fsck": ("upkeep", "Verify the store and change nothing."),
    "prune": ("care", "Remove old files that a campaign does not need."),
    "backup": ("care", "Copy a campaign, served or not, and verify it."),
    "salvage": ("care", "Make a new campaign of what a damaged store still holds."),
    "config": ("upkeep", "Print the settings in force and where each came from."),
    "probe": ("cluster", "Try what a shared directory needs, from this host."),
    "qualify": ("cluster", "Prove under mpiexec that locks hold between hosts."),
    "trace": ("trace", "Check a recording of `serve --trace` with the models."),
    "health": ("health", "Exit 0 if a service runs and nothing fails, for monitors."),
    "demo": ("demo", "Run the sample campaign."),
}

EXIT_CODES = """Exit codes: 0 done, every query answered; 2 bad input or misuse; 3 some query is unknown
or an error, or locks are clean but not verified; 5 fsck, health, profile, backup, salvage, trace check or an
export found something wrong; 65 masters refuse to trust a directory; 70 a defect of smtspool, or masters shut
down; 74 the machine failed us; 128+N signal N."""


class Exit(IntEnum):
    """Exit codes of the process; those of ``sysexits`` where one fits."""

    DONE = 0
    MISUSE = 2
    UNANSWERED = 3
    FINDINGS = 5
    UNQUALIFIED = 65
    DEFECT = 70
    INFRASTRUCTURE = 74


class _Unread(TyperCommand):
    """A command whose module is not imported yet: a name and a line of help."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        assert self.name is not None
        import_module(f"{__package__}.{COMMANDS[self.name][0]}")
        command = typer.main.get_group(app).commands[self.name]
        return command.make_context(info_name, args, *more, **extra)


class _Commands(TyperGroup):
    """All of :data:`COMMANDS`; those whose module is not imported yet have a stand-in."""

    def __init__(self, *, commands: dict[str, Any], **attributes: Any) -> None:
        unread = {name: _Unread(name, short_help=line) for name, (_, line) in COMMANDS.items()}
        super().__init__(commands={**unread, **commands}, **attributes)


app = typer.Typer(
    cls=_Commands,
    rich_markup_mode=None,  # importing what draws its frames takes longer than everything else in --help
    help="A durable, crash-safe SMT query service for parallel symbolic execution.",
    epilog=EXIT_CODES.replace("\n", " "),  # one paragraph
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Dir = Annotated[Path, typer.Argument(metavar="DIR", help="Campaign folder, made by: smtspool init DIR")]
Json = Annotated[bool, typer.Option("--json", help="JSON for machines, one document per line.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Queries solved at the same time.")]
Engines = Annotated[
    list[str] | None,
    typer.Option("--engine", "-e", help=f"{', '.join(BUNDLED)} or NAME=COMMAND; may be repeated."),
]
Timeout = Annotated[float | None, typer.Option("--timeout", "-t", help="Seconds per query.")]


def timeout_ms(seconds: float | None) -> int | None:
    """Milliseconds, at least one. Raises :class:`MisuseError` for anything but a number above 0."""
    if seconds is None:
        return None
    milliseconds = seconds * 1e3  # may overflow to infinity
    if not 0 < milliseconds < math.inf:  # written so that it refuses NaN too
        raise MisuseError(f"--timeout must be a number of seconds above 0, an hour at most, not {seconds:g}")
    return max(1, round(milliseconds))


def _version(wanted: bool) -> None:
    if wanted:
        for name, version in service.versions().items():
            print(f"{name} {version}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print versions, of engines too."),
    ] = False,
) -> None:
    pass
