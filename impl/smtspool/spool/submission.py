"""Publishing many files at once, and removing temporary files of producers that were killed."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from smtspool.errors import MisuseError
from smtspool.files import Directory, Draft, sync_drafts
from smtspool.spool.names import free_names, may_submit

__all__ = ["ABANDONED_S", "publish", "sweep"]

# A producer renames its temporary files within seconds. A file so much older belongs to a dead one. Locks
# could not tell that, since producers run on other hosts too. One that was suspended for a day gets an error.
ABANDONED_S = 86_400.0
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp")


def publish(incoming: Directory, files: Iterable[tuple[str, bytes]], published: list[str]) -> bool:
    """Publish all files, or some if an error occurs; False if there were none.

    Their names, each fresh if it was taken, are added to ``published``. Durable after ``incoming.sync()``.
    Raises MisuseError for a name that no scan would look at.
    """
    limit = incoming.name_max()
    drafts: list[tuple[str, Draft]] = []
    before = len(published)
    try:
        for name, data in files:
            if not may_submit(name, limit):
                raise MisuseError(
                    f"{name!r} cannot be submitted: it must be one visible file name of at most {limit} "
                    "bytes that does not end in .tmp"
                )
            drafts.append((name, Draft.write(incoming, data)))
        sync_drafts([draft for _, draft in drafts])
        for name, draft in drafts:
            published.append(_name(incoming, name, draft))
    finally:
        for _, draft in drafts[len(published) - before :]:
            draft.discard()
    return bool(drafts)


def sweep(incoming: Directory, names: Sequence[str], now: float) -> None:
    """Remove those of ``names`` that are a day old at ``now``, in seconds since the epoch."""
    for name in names:
        if name.endswith(".tmp") and _TEMPORARY.fullmatch(name):
            with suppress(OSError):  # it is gone, or belongs to another user; it does no harm
                if incoming.stat(name).st_mtime < now - ABANDONED_S:
                    incoming.unlink(name)


def _name(incoming: Directory, name: str, draft: Draft) -> str:
    for free in free_names(name, incoming.name_max):
        with suppress(FileExistsError):
            draft.publish(free, replace=False)
            return free
    raise FileExistsError(errno.EEXIST, "no free name to submit as", name)
