"""Makes a new campaign from one whose store is damaged, which is only read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from smtspool.errors import AdmissionError, MisuseError
from smtspool.files import Directory, Unstable, read_stable, write_durable
from smtspool.query import Limits, parse_file
from smtspool.spool import Spool, is_published, may_submit
from smtspool.store import Salvaged, Store

from .archive import ARCHIVE, archived
from .campaign import Campaign
from .config import FILE_NAME, toml_without

__all__ = ["Rescue", "rescue"]


@dataclass(frozen=True, slots=True)
class Rescue:
    """What was rescued of a damaged campaign, and what is lost."""

    saved: Salvaged
    resubmitted: int  # files
    lost: tuple[str, ...]  # ids of queries that are neither saved nor in a file
    unread: tuple[str, ...]  # files and archives of which something cannot be read, and why


def rescue(damaged: Campaign, root: Path) -> Rescue:
    """Make a campaign at ``root`` of all that can be read of ``damaged``.

    Queries, witnesses, submissions and answers are saved row by row; files of ``accepted/`` with a query that
    is not saved, and all of ``incoming/``, are submitted again. Raises MisuseError if ``root`` exists, or if
    its settings lead to the damaged store.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise MisuseError(f"{root} exists already: name a folder that does not")
    settings, _ = toml_without("store", damaged.root)
    with Directory.open(root.absolute(), create=True) as folder:
        if settings:
            write_durable(folder, FILE_NAME, settings.encode())
    campaign = Campaign.create(root)
    if campaign.store == damaged.store:
        raise MisuseError(f"the settings of {root} lead to the damaged store: unset SMTSPOOL_STORE")
    with Store.open(campaign.store) as store, Spool.open(campaign.spool) as spool:
        saved = store.salvage(damaged.store)
        lost = set(saved.lost)
        unread: list[str] = []
        names = spool.submit_many(_rest(damaged, store, lost, unread))
    return Rescue(saved, len(names), tuple(sorted(lost)), tuple(unread))


def _rest(damaged: Campaign, store: Store, lost: set[str], unread: list[str]) -> Iterator[tuple[str, bytes]]:
    """The files that have to be admitted again, with their contents; removes their queries from ``lost``."""
    for admitted, name, data in _files(damaged, unread):
        with suppress(AdmissionError):  # it was never admitted
            ids = {query.id for query in parse_file(name, data, Limits())}
            if not admitted or any(store.query(one) is None for one in ids):
                lost -= ids
                yield name, data


def _files(damaged: Campaign, unread: list[str]) -> Iterator[tuple[bool, str, bytes]]:
    """All files of producers: whether it was admitted, its name, its content."""
    with suppress(FileNotFoundError), Directory.open(damaged.spool / ARCHIVE) as archives:
        for name, data in archived(archives, "accepted", unread):
            if may_submit(name, archives.name_max()):
                yield True, name, data
            else:  # whoever made that archive
                unread.append(f"{archives.path}: {name!r} is no name of a file in a spool")
    for folder in ("accepted", "incoming"):
        with suppress(FileNotFoundError), Directory.open(damaged.spool / folder) as files:
            for name in sorted(filter(is_published, files.names())):
                try:
                    data, _ = read_stable(files, name, Limits().file)
                except (Unstable, AdmissionError, OSError) as error:
                    unread.append(f"{files.path}/{name}: {error}")
                    continue
                yield folder == "accepted", name, data
