"""Publishing many files at once, and what producers that were killed over it leave behind.

While its files have temporary names, a producer holds the lock of a *mark* beside them. It lets go by dying,
so whoever gets the lock of a mark knows that its files will never be published.
"""

from __future__ import annotations

import errno
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from smtspool.errors import LockRefused, MisuseError
from smtspool.files import Directory, Draft, FileLock, sync_drafts
from smtspool.spool.names import free_names, may_submit

__all__ = ["publish", "sweep"]

_TEMPORARY = re.compile(r"\.([0-9a-f]{16})-\d+\.tmp")


def publish(incoming: Directory, files: Iterable[tuple[str, bytes]]) -> list[str]:
    """Publish all of them, or after an error some; returns their names, each fresh if it was taken.

    Durable after ``incoming.sync()``. Raises MisuseError for a name that no scan would look at.
    """
    limit = incoming.name_max()
    drafts: list[tuple[str, Draft]] = []
    published: list[str] = []
    with _marked(incoming) as token:
        try:
            for number, (name, data) in enumerate(files, 1):
                if not may_submit(name, limit):
                    raise MisuseError(
                        f"{name!r} cannot be submitted: it must be one visible file name of at most {limit} "
                        "bytes that does not end in .tmp"
                    )
                drafts.append((name, Draft.write(incoming, data, f".{token}-{number}.tmp")))
            sync_drafts([draft for _, draft in drafts])
            for name, draft in drafts:
                published.append(_name(incoming, name, draft))
        finally:
            for _, draft in drafts[len(published) :]:
                draft.discard()
    return published


def sweep(incoming: Directory, names: Sequence[str]) -> None:
    """Remove those of ``names`` that producers left when they died."""
    groups = defaultdict(list)
    for name in names:
        if name.endswith(".tmp") and (found := _TEMPORARY.fullmatch(name)):
            groups[found[1]].append(name)
    for token, left in groups.items():
        # OSError: another user's. What cannot be locked is not known to be dead.
        with suppress(LockRefused, OSError), FileLock(incoming, _mark(token)) as lock:
            if lock.try_acquire():
                for name in sorted({*left, _mark(token)}, reverse=True):  # the mark last
                    with suppress(FileNotFoundError):
                        incoming.unlink(name)


def _mark(token: str) -> str:
    return f".{token}-0.tmp"


@contextmanager
def _marked(incoming: Directory) -> Iterator[str]:
    """A token for temporary names, marked as in use until the block ends."""
    while True:
        token = os.urandom(8).hex()
        with FileLock(incoming, _mark(token)) as lock:
            try:
                if not lock.try_acquire():
                    continue
            except LockRefused:
                continue  # swept in the moment in which it was made
            try:
                yield token
            finally:
                with suppress(FileNotFoundError):
                    incoming.unlink(_mark(token))
            return


def _name(incoming: Directory, name: str, draft: Draft) -> str:
    for free in free_names(name, incoming.name_max):
        with suppress(FileExistsError):
            draft.publish(free, replace=False)
            return free
    raise FileExistsError(errno.EEXIST, "no free name to submit as", name)
