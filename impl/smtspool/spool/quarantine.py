"""``rejected/``: every bad file beside a sidecar with the reason, and no sidecar without its file.

The sidecar of ``rejected/<name>`` is ``rejected/<name>.error``. It is on disk before the file moves, so a
crash can only leave a sidecar whose file is still in ``incoming/``. The next holder of the lock finds it
(:meth:`Quarantine.repair`). If the file is judged bad again, the sidecar is completed, otherwise removed.
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
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TypeVar

from smtspool.errors import AdmissionError
from smtspool.files import Directory, Draft, Entry, Identity, Unstable, is_temporary, open_entry, read_stable
from smtspool.query import spelled
from smtspool.spool.names import ERROR, quarantine_names
from smtspool.spool.state import DirectoryState

__all__ = ["Memory", "Quarantine", "Refusals", "Rejection"]

log = logging.getLogger("smtspool")

T = TypeVar("T")

_SCHEMA = "smtspool-rejection-v1"
_SIDECAR_BYTES = 1 << 16
_MESSAGE_CHARACTERS = 2000
TOLD_PER_MINUTE = 20
# Errors of a rename that may come from the entry itself: a directory that this user may not write, or a mount
# point.
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
    """Logs a warning for each rejected file, up to a limit per minute; the sidecars describe all of them.

    For one thread."""

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


@dataclass(slots=True)
class Memory:
    """State that a quarantine keeps from one scan to the next, even if its folders are opened anew."""

    in_order: DirectoryState | None = None  # of rejected/, when repair had nothing left to do there
    stuck: dict[str, Identity] = field(default_factory=dict)  # bad entries of incoming/ that cannot be moved
    refusals: Refusals = field(default_factory=Refusals)


class Quarantine:
    """Judges the files in ``incoming/`` and manages ``rejected/``, for the holder of the lock.

    For one thread. A scan begins with :meth:`repair`; it opens each file with :meth:`open` and reads it with
    :meth:`judge`. A file that is bad moves after :meth:`write_sidecar`.
    """

    __slots__ = ("_incoming", "_leftovers", "_memory", "_rejected")

    def __init__(self, incoming: Directory, rejected: Directory, memory: Memory | None = None) -> None:
        self._incoming = incoming
        self._rejected = rejected
        self._memory = memory or Memory()
        # File in incoming/ to the name that a leftover sidecar keeps for it in rejected/.
        self._leftovers: dict[str, str] = {}

    def repair(self, now: float) -> None:
        """Remove what a dead holder left: temporary files, and sidecars whose file will not come.

        A sidecar whose file is still in ``incoming/``, with the same identity, is kept to be completed. A
        ``*.error`` that smtspool did not write stays. A folder that was in order and has not changed is not
        listed again, since it may be full.
        """
        stuck = self._memory.stuck
        for name in [name for name in stuck if not self._incoming.exists(name)]:
            del stuck[name]
        state = DirectoryState.of(self._rejected)
        if state == self._memory.in_order:
            return
        self._leftovers.clear()
        names = set(self._rejected.names())
        for name in sorted(names):
            if is_temporary(name):
                self._discard(name)
            elif name.endswith(ERROR) and name.removesuffix(ERROR) not in names:
                self._judge_lone_sidecar(name)
        in_order = state.is_at_rest(now) and not self._leftovers
        self._memory.in_order = state if in_order else None

    def _judge_lone_sidecar(self, sidecar: str) -> None:
        origin = self._origin(sidecar)
        if origin is None:
            return
        name, identity = origin
        if name not in self._leftovers and self._waits(name, identity):
            self._leftovers[name] = sidecar.removesuffix(ERROR)
        else:
            self._discard(sidecar)

    def _origin(self, sidecar: str) -> tuple[str, Identity] | None:
        """Name and identity of the file that a sidecar of smtspool is about; None for other files."""
        try:
            document = json.loads(read_stable(self._rejected, sidecar, _SIDECAR_BYTES)[0])
            if document["schema"] == _SCHEMA:
                return str(document["name"]), Identity(**document["identity"])
        except (AdmissionError, Unstable, FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
            pass  # a file of another program, or one that an operator is changing
        return None

    def _waits(self, name: str, identity: Identity) -> bool:
        try:
            return Identity.of(self._incoming.stat(name)).moved_from(identity)
        except (FileNotFoundError, ValueError):  # ValueError: a forged name with a NUL in it
            return False

    def open(self, name: str) -> Entry:
        """Open ``name`` in ``incoming/``, to be judged.

        An entry that could not be moved away is not judged again until it changes; until then this raises
        :exc:`Unstable` and removes a leftover sidecar of it.

        :raises FileNotFoundError: it is gone
        :raises Unstable: it cannot be judged now
        """
        known = self._memory.stuck.get(name)
        if known is not None and Identity.of(self._incoming.stat(name)) == known:
            self.drop_leftover(name)
            raise Unstable(f"{name!r} is left as it is until it changes")
        return open_entry(self._incoming, name)

    def judge(self, entry: Entry, limit: int, decode: Callable[[bytes], T]) -> T | Rejection:
        """The result of ``decode`` for the content of ``entry`` (at most ``limit`` bytes), or why it is bad.

        :raises Unstable: the file changed meanwhile
        """
        data: bytes | None = None
        try:
            data = entry.read(limit)
            return decode(data)
        except AdmissionError as refusal:
            digest = None if data is None else sha256(data).hexdigest()
            return Rejection(entry.name, entry.identity, refusal, digest)

    def draft_sidecar(self, rejection: Rejection, now: float) -> Draft:
        """The sidecar under a temporary name, not durable yet."""
        return Draft.write(self._rejected, rejection.sidecar(now))

    def write_sidecar(self, rejection: Rejection, draft: Draft) -> str:
        """Publish the sidecar; returns the name it keeps in ``rejected/``. Durable after ``rejected.sync()``.

        A leftover sidecar is written again under its name with the present verdict. If a name is taken, file
        and sidecar get the same fresh suffix, so that neither overwrites another file and they stay together.
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

    def tell(self, rejection: Rejection, kept: str) -> None:
        """Log that the file has moved, to the name ``kept`` beside its sidecar."""
        self._memory.refusals.tell(rejection, kept)

    def is_immovable(self, rejection: Rejection, error: OSError) -> bool:
        """Whether ``error`` of the move is due to the entry itself, and not to a failure of the machine."""
        return (
            error.errno in _IMMOVABLE
            and all(map(_may_change, (self._incoming, self._rejected)))
            and self._waits(rejection.name, rejection.identity)
        )

    def leave(self, rejection: Rejection, error: OSError) -> None:
        """Leave an immovable entry where it is, *stuck* until it changes, and log that once."""
        self._memory.stuck[rejection.name] = rejection.identity
        log.warning(
            "%r in %s is bad (%s) and cannot be moved away (%s): it stays until its owner or root removes it",
            rejection.name, self._incoming.path, rejection.refusal.reason, error.strerror,
        )  # fmt: skip

    def drop_leftover(self, name: str) -> None:
        """Remove a leftover sidecar of ``name``, which is good or stays, so that the sidecar is of no use."""
        kept = self._leftovers.pop(name, None)
        if kept is not None:
            self.drop_sidecar(kept)

    def drop_sidecar(self, kept: str) -> None:
        """Remove the sidecar of a file that is not moved."""
        self._discard(kept + ERROR)

    def _discard(self, name: str) -> None:
        with suppress(FileNotFoundError, IsADirectoryError):  # an operator may have caused either
            self._rejected.unlink(name)


def _may_change(folder: Directory) -> bool:
    return os.access(".", os.W_OK | os.X_OK, dir_fd=folder.fd, effective_ids=True)
