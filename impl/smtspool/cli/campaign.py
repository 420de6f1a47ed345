"""A campaign: create its folder, put queries in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from smtspool import printing, service
from smtspool.errors import AdmissionError, MisuseError
from smtspool.query import Limits, parse_file
from smtspool.spool import Spool

from .app import Dir, Exit, Json, app
from .inputs import FilesFrom, Inputs, expand, read


@app.command(epilog="Example: smtspool init campaign && smtspool submit campaign *.smt2")
def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")],
) -> None:
    """Create a campaign folder: spool/, store/, out/ and smtspool.toml with commented defaults."""
    existed = service.Campaign.exists(directory)
    campaign = service.Campaign.create(directory)
    if existed:
        print(f"campaign {campaign.root} exists already: what is in it is kept as it is")
    else:
        print(f"campaign {campaign.root}: submit queries, then run: smtspool serve {directory}")


@app.command(
    epilog="Example: smtspool submit campaign queries/*.smt2 && smtspool results campaign --file a.smt2"
)
def submit(
    directory: Dir,
    files: Inputs = None,
    files_from: FilesFrom = None,
    check: Annotated[
        bool,
        typer.Option("--check/--no-check", help="Read each file first: print ids, or why it is refused."),
    ] = True,
    as_json: Json = False,
) -> None:
    """Publish FILEs durably in the campaign's spool; a taken name gets a fresh suffix.

    Prints a line for each query: its file, a tab, its id. A file that no service would admit is not
    published; the others are, and the exit code is 2. With --no-check a service moves such a file to
    rejected/.
    """
    campaign = service.Campaign.open(directory)
    paths = expand(files, files_from)
    missing = [str(path) for path in paths if str(path) != "-" and not path.exists()]
    if missing:  # checked before any is published, so that the command can be repeated
        raise MisuseError(f"nothing is submitted, no such file: {', '.join(missing)}")
    large = [str(path) for path in paths if path.is_file() and path.stat().st_size > Limits().file]
    if large:
        raise MisuseError(f"nothing is submitted, too large: {', '.join(large)}")
    taken: list[tuple[Path, list[str]]] = []
    refused: list[tuple[Path, AdmissionError]] = []

    def contents() -> Iterator[tuple[str, bytes]]:
        for path in printing.progress(paths, "submitting"):
            given, data = read(path)
            name = Path(given).name
            try:
                if isinstance(data, AdmissionError):
                    raise data
                ids = [query.id for query in parse_file(name, data)] if check else []
            except AdmissionError as refusal:
                refused.append((path, refusal))
                continue
            taken.append((path, ids))
            yield name, data

    with Spool.open(campaign.spool) as spool:
        names = spool.submit_many(contents())
    printing.submitted(taken, names, refused, checked=check, as_json=as_json)
    if refused:
        raise typer.Exit(Exit.MISUSE)
