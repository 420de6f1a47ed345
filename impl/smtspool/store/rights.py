"""Error messages about missing rights, which name the owner of the file."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from stat import S_IMODE

from smtspool.errors import InfrastructureError, LastingError

from .views import index_of, journal_of

__all__ = ["refusal", "refused"]


def refusal(path: Path, *, writes: bool = True) -> str | None:
    """Why this user may not read, or write, the file at ``path`` and beside it, and what to do about it.

    None if the user may, or if the folder cannot be searched.
    """
    verb, rights = ("write", os.R_OK | os.W_OK) if writes else ("read", os.R_OK)
    try:
        folder = next(one for one in path.parents if one.exists())
        if writes and os.statvfs(folder).f_flag & os.ST_RDONLY:
            return (
                f"{folder} is on a file system that is mounted read-only: mount it for writing, "
                "or set `store` to a folder elsewhere"
            )
        beside = (path, journal_of(path), index_of(path)) if writes else (path,)
        closed = [one for one in beside if one.exists() and not os.access(one, rights)]
        if not os.access(folder, rights | os.X_OK):
            closed.insert(0, folder)
        if not closed:
            return None
        status = closed[0].stat()
    except OSError:
        return None
    owner, user = _name(status.st_uid), _name(os.geteuid())
    return (
        f"{user} may not {verb} {closed[0]}, which belongs to {owner} and has the mode "
        f"{S_IMODE(status.st_mode):o}: run this as {owner}, or change owner or mode"
    )


def refused(what: str, path: Path, error: OSError) -> InfrastructureError:
    """The error for a file that could not be made at ``path``: a lasting one if a right is missing."""
    reason = refusal(path)
    kind = LastingError if reason or isinstance(error, PermissionError) else InfrastructureError
    return kind(f"{what}: {reason or error.strerror}")


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
