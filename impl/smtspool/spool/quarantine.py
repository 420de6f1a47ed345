"""``rejected/``: every bad file beside a sidecar that says why, and no sidecar without its file.

The sidecar of ``rejected/<name>`` is ``rejected/<name>.error``. It is on disk before the file moves, so a
crash can only leave a sidecar whose file is still in ``incoming/``. The next holder of the lock finds it
(:meth:`Quarantine.repair`): it is completed when its file is judged bad again, and removed otherwise.
"""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from smtspool.errors import AdmissionError
from smtspool.files import Directory, Draft, Identity, Unstable, is_temporary, read_stable
from smtspool.query import spelled
from smtspool.spool.names import ERROR, quarantine_names
from smtspool.spool.state import DirectoryState

__all__ = ["Quarantine", "Refusals", "Rejection"]

log = logging.getLogger("smtspool")

_SCHEMA = "smtspool-rejection-v1"
_SIDECAR_BYTES = 1 << 16
_MESSAGE_CHARACTERS = 2000
TOLD_PER_MINUTE = 20
# What a rename says of the entry, unless it is the folder's: it is a directory that is not ours to write to,
# or a mount point.
_IMMOVABLE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY})


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why one file of ``incoming/`` is bad."""

    name: str
    identity: Identity
    refusal: AdmissionError
    sha256: str | None  # of the content; None when it was not read

    def sidecar(self, now: float) -> bytes:
        """The JSON text of the sidecar, one line of ASCII; ``time`` is in seconds since the epoch."""
        refusal = self.refusal.to_json()
        refusal["message"] = refusal["message"][:_MESSAGE_CHARACTERS]
        document = {
            "schema": _SCHEMA,
            "name": self.name,  # bytes that are no UTF-8 are lone surrogates U+DC80..U+DCFF (PEP 383)
            **refusal,
            "sha256": self.sha256,
            "identity": self.identity._asdict(),
            "time": now,
        }
        return json.dumps(document).encode("ascii") + b"\n"


class Refusals:
    """A warning for each file that is taken into quarantine, until there are too many in a minute.

    The sidecars tell of all of them. For one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._minute_ends = -math.inf
        self._told = 0

    def tell(self, rejection: Rejection, kept: str) -> None:
        now = self._clock()
        if now >= self._minute_ends:
            self._minute_ends = now + 60
            self._told = 0
        self._told += 1
        if self._told <= TOLD_PER_MINUTE:
            refusal = rejection.refusal
            log.warning("rejected (%s): %s", refusal.reason, refusal.of(spelled(rejection.name)))
        elif self._told == TOLD_PER_MINUTE + 1:
            sidecar = spelled(kept + ERROR)
            log.warning("more files are rejected; from here on see the sidecars, such as %s", sidecar)


class Quarantine:
    """``rejected/`` in the hands of the holder of the admission lock, for one scan."""

    __slots__ = ("_incoming", "_leftovers", "_refusals", "_rejected", "_stuck")

    def __init__(
        self, incoming: Directory, rejected: Directory, stuck: dict[str, Identity], refusals: Refusals
    ) -> None:
        """``stuck`` is what earlier scans found that it cannot take; both outlive this one."""
        self._incoming = incoming
        self._rejected = rejected
        self._stuck = stuck
        self._refusals = refusals
        # A file in incoming/ -> the name that a leftover sidecar keeps for it in rejected/.
        self._leftovers: dict[str, str] = {}

    def repair(self, known: DirectoryState | None, now: float) -> DirectoryState | None:
        """Undo what a dead holder left: temporary files, and sidecars that nothing will complete.

        A sidecar whose very file still waits in ``incoming/`` is kept to be completed. A lone ``*.error``
        that smtspool did not write is nobody's sidecar and stays.

        Returns the state in which ``rejected/`` is known to be in order, if it is. Given back as ``known``
        the next time, an unchanged directory is not listed again, however full it is.
        """
        state = DirectoryState.of(self._rejected)
        if state == known:
            return known
        names = set(self._rejected.names())
        for name in sorted(names):
            if is_temporary(name):
                self._discard(name)
            elif name.endswith(ERROR) and name.removesuffix(ERROR) not in names:
                self._settle_lone_sidecar(name)
        return state if state.is_settled(now) and not self._leftovers else None

    def _settle_lone_sidecar(self, sidecar: str) -> None:
        origin = self._origin(sidecar)
        if origin is None:
            return
        name, identity = origin
        if name not in self._leftovers and self._waits(name, identity):
            self._leftovers[name] = sidecar.removesuffix(ERROR)
        else:
            self._discard(sidecar)

    def _origin(self, sidecar: str) -> tuple[str, Identity] | None:
        """Name and identity of the file that a sidecar of ours is about."""
        try:
            document = json.loads(read_stable(self._rejected, sidecar, _SIDECAR_BYTES)[0])
            if document["schema"] == _SCHEMA:
                return str(document["name"]), Identity(**document["identity"])
        except (AdmissionError, Unstable, FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
            pass  # a stranger's file, or one being changed by an operator
        return None

    def _waits(self, name: str, identity: Identity) -> bool:
        try:
            return Identity.of(self._incoming.stat(name)).moved_from(identity)
        except (FileNotFoundError, ValueError):  # ValueError: a forged name with a NUL in it
            return False

    def draft_sidecar(self, rejection: Rejection, now: float) -> Draft:
        """The sidecar, not yet seen by anybody, nor durable."""
        return Draft.write(self._rejected, rejection.sidecar(now))

    def write_sidecar(self, rejection: Rejection, draft: Draft) -> str:
        """Publish the sidecar; returns the name it keeps in ``rejected/``. Durable after ``rejected.sync()``.

        A leftover is completed: same name, today's verdict. A taken name gives file and sidecar one fresh
        suffix, so neither overwrites anything nor loses its partner.
        """
        kept = self._leftovers.get(rejection.name)
        if kept is not None:
            draft.publish(kept + ERROR)
            return kept
        for name in quarantine_names(rejection.name, self._rejected.name_max):
            if self._rejected.exists(name):
                continue
            with suppress(FileExistsError):
                draft.publish(name + ERROR, replace=False)
                return name
        raise FileExistsError(f"no free name for {rejection.name!r} in {self._rejected.path}")

    def is_stuck(self, name: str) -> bool:
        """Whether ``name`` is still the very entry that could not be moved, so that judging it is no use.

        Raises ``FileNotFoundError`` if it is no more.
        """
        known = self._stuck.get(name)
        if known is None or Identity.of(self._incoming.stat(name)) != known:
            return False
        self.forget(name)
        return True

    def took(self, rejection: Rejection, kept: str) -> None:
        """The file has moved, to the name ``kept`` beside its sidecar."""
        self._refusals.tell(rejection, kept)

    def cannot_take(self, rejection: Rejection, error: OSError) -> bool:
        """Whether ``error`` refused the move for what the entry is: it is not the machine that failed.

        Then it stays where it is, is *stuck* until it changes, and the log says so.
        """
        if error.errno not in _IMMOVABLE or not all(map(_may_change, (self._incoming, self._rejected))):
            return False
        if not self._waits(rejection.name, rejection.identity):
            return False
        self._stuck[rejection.name] = rejection.identity
        log.warning(
            "%r in %s is bad (%s) and cannot be moved away (%s): it stays until its owner or root removes it",
            rejection.name, self._incoming.path, rejection.refusal.reason, error.strerror,
        )  # fmt: skip
        return True

    def forget(self, name: str) -> None:
        """``name`` is good, or stays: a leftover sidecar of it will not be completed."""
        kept = self._leftovers.pop(name, None)
        if kept is not None:
            self.drop_sidecar(kept)

    def drop_sidecar(self, kept: str) -> None:
        """Remove the sidecar of a file that will not come."""
        self._discard(kept + ERROR)

    def _discard(self, name: str) -> None:
        with suppress(FileNotFoundError, IsADirectoryError):  # an operator's doing, both
            self._rejected.unlink(name)


def _may_change(folder: Directory) -> bool:
    return os.access(".", os.W_OK | os.X_OK, dir_fd=folder.fd, effective_ids=True)
