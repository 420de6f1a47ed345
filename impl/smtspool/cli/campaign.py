"""A campaign: create its folder, put queries in."""

from __future__ import annotations

from smtspool import printing, service
from smtspool.errors import MisuseError
from smtspool.query import Limits
from smtspool.spool import Spool

from .app import Dir, Files, Json, app


@app.command(epilog="Example: smtspool init campaign && smtspool submit campaign *.smt2")
def init(directory: Dir) -> None:
    """Create a campaign folder: spool/, store/, out/ and smtspool.toml with commented defaults."""
    existed = service.Campaign.exists(directory)
    campaign = service.Campaign.create(directory)
    if existed:
        print(f"campaign {campaign.root} exists already: what is in it is kept as it is")
    else:
        print(f"campaign {campaign.root}: submit queries, then run: smtspool serve {directory}")


@app.command(epilog="Example: smtspool submit campaign queries/*.smt2")
def submit(directory: Dir, files: Files, as_json: Json = False) -> None:
    """Publish FILEs durably in the campaign's spool; a taken name gets a fresh suffix."""
    campaign = service.Campaign.open(directory)
    missing = [str(path) for path in files if not path.is_file()]
    if missing:  # before the first is published: a command with a mistyped name can be given again
        raise MisuseError(f"nothing is submitted, no such file: {', '.join(missing)}")
    large = [str(path) for path in files if path.stat().st_size > Limits().file]
    if large:
        raise MisuseError(f"nothing is submitted, too large: {', '.join(large)}")
    with Spool.open(campaign.spool) as spool:
        contents = ((path.name, path.read_bytes()) for path in printing.progress(files, "submitting"))
        names = spool.submit_many(contents)
    if as_json:
        printing.document({"schema": "smtspool-submit-v1", "submitted": names})
    else:
        print(f"{len(names)} submitted")
