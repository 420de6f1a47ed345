"""One pass over ``incoming/``, by the holder of the admission lock.

Each ``action`` is an atomic step of the model ``spool_admission``. A process may die before any of them, and
the next pass completes its work, because of their order: the commit is durable before the first move of its
batch, every sidecar before the move of its file, and a file is in ``incoming/`` until its move.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from smtspool.errors import AdmissionError, Reason
from smtspool.files import Directory, Draft, Entry, Identity, Unstable, sync_drafts
from smtspool.query import Limits, Query, QueryFile, file_mark, parse_file, spelled
from smtspool.spool.names import free_names
from smtspool.spool.quarantine import Quarantine, Rejection
from smtspool.spool.steps import action

__all__ = ["Admission", "Commit", "CountRejected", "Folders", "Tally"]

log = logging.getLogger("smtspool")

Commit = Callable[[Sequence[QueryFile]], Sequence[bool]]
CountRejected = Callable[[int], None]


class Folders(NamedTuple):
    """The three directories of a spool."""

    incoming: Directory
    accepted: Directory
    rejected: Directory


@dataclass(frozen=True, slots=True)
class Admissible:
    """A file that did not change while it was read, and was decoded whole."""

    name: str
    identity: Identity
    file: QueryFile


@dataclass(slots=True)
class Tally:
    """The counters of one pass; see :class:`~smtspool.spool.report.ScanReport`."""

    accepted: int = 0
    rejected: int = 0
    deferred: int = 0
    created: int = 0
    replayed: int = 0
    bytes: int = 0
    latency: list[float] = field(default_factory=list)


class Fate(StrEnum):
    """The outcome of a ``Move``."""

    MOVED = "moved"
    GONE = "gone"  # its producer removed it after it was read; its queries are committed
    REPLACED = "replaced"  # another file has the name, or it cannot be moved; it stays for the next pass


class Admission:
    """The steps of one pass. For one thread, which holds the lock."""

    def __init__(
        self,
        folders: Folders,
        quarantine: Quarantine,
        commit: Commit,
        count_rejected: CountRejected,
        *,
        consumer: str,
        limits: Limits,
        serving_since: float,
        wall: Callable[[], float],
    ) -> None:
        self.tally = Tally()
        self._incoming, self._accepted, self._rejected = folders
        self._quarantine = quarantine
        self._commit = commit
        self._count_rejected = count_rejected
        self._consumer = consumer
        self._limits = limits
        self._serving_since = serving_since
        self._wall = wall
        self._batch: list[Admissible | Rejection] = []
        self._batch_queries = 0
        self._batch_bytes = 0

    def holds(self, queries: int, size: int) -> bool:
        """Whether the open batch has at least so many queries (or files), or bytes of query text."""
        return max(self._batch_queries, len(self._batch)) >= queries or self._batch_bytes >= size

    def examine(self, name: str) -> None:
        """``Open`` and ``Verify`` one file, and put the verdict into the open batch."""
        with action("Open", consumer=self._consumer, file=name) as step:
            try:
                entry = self._quarantine.open(name)
            except FileNotFoundError:  # its producer or an operator removed it
                step.outcome = "gone"
                return
            except Unstable:
                step.outcome = "unstable"
                self.tally.deferred += 1
                return
        with entry, action("Verify", consumer=self._consumer, file=name) as step:
            try:
                verdict = self._judge(entry)
            except Unstable:
                step.outcome = "unstable"
                self.tally.deferred += 1
                return
            step.outcome = "good" if isinstance(verdict, Admissible) else "bad"
        self._batch.append(verdict)

    def _judge(self, entry: Entry) -> Admissible | Rejection:
        def decode(data: bytes) -> tuple[Query, ...]:
            return _decode(entry.name, data, self._limits)

        queries = self._quarantine.judge(entry, self._limits.file, decode)
        if isinstance(queries, Rejection):
            return queries
        for note in dict.fromkeys(note for query in queries for note in query.notes):
            log.debug("%s: %s", spelled(entry.name), note)
        self._batch_queries += len(queries)
        self._batch_bytes += sum(query.size for query in queries)
        identity = entry.identity
        mark = file_mark(entry.name, identity.ino, identity.mtime_ns)
        # The file came at its ctime, which the rename set; its mtime may be that of an original. Time before
        # this service ran does not count as waiting.
        since = max(identity.ctime_ns / 1e9, self._serving_since)
        file = QueryFile(entry.name, mark, identity.size, since, queries)
        return Admissible(entry.name, identity, file)

    def settle(self) -> None:
        """``Commit`` the open batch, ``WriteSidecar`` and ``Move`` its files; each stage durable in turn."""
        batch = self._batch
        self._batch, self._batch_queries, self._batch_bytes = [], 0, 0
        good = [file for file in batch if isinstance(file, Admissible)]
        if good:
            self._store(good)
        kept = self._write_sidecars([file for file in batch if isinstance(file, Rejection)])
        rejected = self.tally.rejected
        try:
            for file in batch:
                with action("Move", consumer=self._consumer, file=file.name) as step:
                    if isinstance(file, Admissible):
                        step.outcome = self._accept(file)
                    else:
                        step.outcome = self._reject(file, kept[file.name])
        finally:
            if self.tally.rejected > rejected:
                self._count_rejected(self.tally.rejected - rejected)
        if good:
            self._accepted.sync()
        if kept:
            self._rejected.sync()

    def _store(self, good: Sequence[Admissible]) -> None:
        with action("Commit", consumer=self._consumer, files=tuple(one.name for one in good)):
            created = self._commit([one.file for one in good])
        now = self._wall()
        self.tally.created += sum(created)
        self.tally.replayed += len(created) - sum(created)
        self.tally.latency.extend(max(0.0, now - one.file.since) for one in good)

    def _write_sidecars(self, bad: Sequence[Rejection]) -> dict[str, str]:
        """Write the sidecars, durably; returns for each file the name that its sidecar keeps for it."""
        kept: dict[str, str] = {}
        drafts: list[Draft] = []
        try:
            for rejection in bad:
                drafts.append(self._quarantine.draft_sidecar(rejection, self._wall()))
            sync_drafts(drafts)
            for rejection, draft in zip(bad, drafts, strict=True):
                with action("WriteSidecar", consumer=self._consumer, file=rejection.name):
                    kept[rejection.name] = self._quarantine.write_sidecar(rejection, draft)
        finally:
            for draft in drafts[len(kept) :]:
                draft.discard()
        if kept:
            self._rejected.sync()
        return kept

    def _accept(self, file: Admissible) -> Fate:
        names = free_names(file.name, self._accepted.name_max)
        fate = self._move(file.name, file.identity, self._accepted, names)
        self._quarantine.drop_leftover(file.name)
        if fate is Fate.REPLACED:
            self.tally.deferred += 1
        else:
            self.tally.accepted += 1
            self.tally.bytes += file.identity.size
        return fate

    def _reject(self, file: Rejection, kept: str) -> Fate:
        try:
            fate = self._move(file.name, file.identity, self._rejected, (kept,))
        except OSError as error:
            if not self._quarantine.is_immovable(file, error):
                raise
            self._quarantine.leave(file, error)
            fate = Fate.REPLACED
        if fate is Fate.MOVED:
            self.tally.rejected += 1
            self._quarantine.tell(file, kept)
            return fate
        self._quarantine.drop_sidecar(kept)
        self.tally.deferred += fate is Fate.REPLACED
        return fate

    def _move(self, name: str, identity: Identity, to: Directory, new_names: Iterable[str]) -> Fate:
        # The identity is compared before the rename, because a batch takes a while, and after it, because a
        # producer may replace the file until the rename. A file that was not read is put back. It stays in
        # the other folder only if a producer replaces the file just before the rename and this process dies
        # just after it.
        try:
            if not Identity.of(self._incoming.stat(name)).moved_from(identity):
                return Fate.REPLACED
            moved = _rename_to_free(self._incoming, name, to, new_names)
        except FileNotFoundError:
            return Fate.GONE
        if Identity.of(to.stat(moved)).moved_from(identity):
            return Fate.MOVED
        _rename_to_free(to, moved, self._incoming, free_names(name, self._incoming.name_max))
        return Fate.REPLACED


def _decode(name: str, data: bytes, limits: Limits) -> tuple[Query, ...]:
    try:
        return parse_file(name, data, limits)
    except (AdmissionError, MemoryError):
        raise
    except Exception as defect:
        # Input may be hostile: an unexpected exception of the decoder rejects this file, and the pass goes
        # on.
        raise AdmissionError(Reason.INTERNAL, f"{type(defect).__name__}: {defect}") from defect


def _rename_to_free(source: Directory, name: str, to: Directory, new_names: Iterable[str]) -> str:
    for new_name in new_names:
        with suppress(FileExistsError):
            source.rename(name, to, new_name)
            return new_name
    raise FileExistsError(errno.EEXIST, "no free name to move to", name)
