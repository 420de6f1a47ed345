"""Pruning: finding files and attempts that a campaign does not need, and removing or packing them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from smtspool.files import Directory
from smtspool.spool import is_published
from smtspool.store import Store

from .archive import ARCHIVE, pack
from .campaign import Campaign

__all__ = ["Pruned", "What", "prune"]

_SIDECAR = ".error"


class What(StrEnum):
    """What can be removed; see docs/operating.md."""

    ACCEPTED = "accepted"  # files whose queries are stored
    REJECTED = "rejected"  # bad files with their sidecars
    RESULTS = "results"  # files of out/results/, which `republish --all` writes again
    ATTEMPTS = "attempts"  # how answers were found; in the store


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or would be."""

    what: What
    number: int  # files, or answers
    bytes: int  # on disk; for attempts in the store, which reuses them and does not shrink


def prune(
    campaign: Campaign, what: What, before: float, *, archive: bool = False, dry_run: bool = False
) -> Pruned:
    """Remove what came to its place before that time, in seconds since the epoch.

    With ``archive`` files of the spool are packed into ``spool/archive/`` first. Files that change meanwhile
    stay.
    """
    if what is What.ATTEMPTS:
        with (Store.view if dry_run else Store.open)(campaign.store) as store:
            return Pruned(what, *store.drop_attempts(before, dry_run=dry_run))
    parent, name = (campaign.out, "results") if what is What.RESULTS else (campaign.spool, what.value)
    try:
        with Directory.open(parent) as above, above.child(name) as folder:
            old = dict(_old(folder, before))
            gone = sorted(old)
            if archive and not dry_run and what is not What.RESULTS:
                gone = []
                with above.child(ARCHIVE, create=True) as archives:
                    for packed in pack(folder, sorted(old), archives, what):
                        gone += _remove(folder, packed, old)
            elif not dry_run:
                gone = _remove(folder, gone, old)
    except FileNotFoundError:  # the whole folder was removed, which is allowed
        return Pruned(what, 0, 0)
    return Pruned(what, len(gone), sum(old[one].st_blocks * 512 for one in gone))


def _old(folder: Directory, before: float) -> Iterator[tuple[str, os.stat_result]]:
    """Names and status of the old files. Their ``ctime`` is compared, which a rename into the folder sets."""
    for name in folder.names():
        with suppress(FileNotFoundError):
            status = folder.stat(name)
            if is_published(name) and stat.S_ISREG(status.st_mode) and status.st_ctime < before:
                yield name, status


def _remove(folder: Directory, names: list[str], old: Mapping[str, os.stat_result]) -> list[str]:
    """Remove those that have not changed, since a result may have been published again; returns their names.

    A bad file is removed before its sidecar, so that it never lies there without its explanation.
    """
    removed = []
    for name in sorted(names, key=lambda one: one.endswith(_SIDECAR)):
        with suppress(FileNotFoundError):
            if os.path.samestat(folder.stat(name), old[name]):
                folder.unlink(name)
                removed.append(name)
    folder.sync()
    return removed
