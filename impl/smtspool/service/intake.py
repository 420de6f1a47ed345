"""Telemetry files: from ``spool/telemetry/`` into the coordinator's window, or into quarantine.

One file is one run. It must be a regular file that does not change while it is read, like a query file. It
stays until the checkpoint with its record is on disk; after a crash in between it is observed twice, but
never lost. A file that is not telemetry moves to ``spool/rejected-telemetry/`` beside a sidecar with the
reason (F364 §4).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from smtspool.files import Directory, FileLock, Identity, Unstable, write_durable
from smtspool.profile import MAX_TELEMETRY_BYTES, parse_telemetry
from smtspool.spool import Quarantine, Rejection, is_published

__all__ = ["Intake", "submit_telemetry"]

FOLDER = "telemetry"
REJECTED = "rejected-telemetry"
LOCK = ".ingest.lock"


def submit_telemetry(spool: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Publish telemetry files, durably together; one of a name that is taken replaces it."""
    with Directory.open(spool) as root, root.child(FOLDER, create=True) as incoming:
        for name, data in files:
            write_durable(incoming, name, data, sync=False)
        incoming.sync()


class Intake:
    """The telemetry folder, which one service at a time uses. For one thread."""

    def __init__(self, spool: Path, *, wall: Callable[[], float] = time.time) -> None:
        """Opens the folders of the spool at ``spool``, and makes missing ones."""
        with Directory.open(spool) as root:
            self._incoming = root.child(FOLDER, create=True)
            self._rejected = root.child(REJECTED, create=True)
        self._lock = FileLock(self._incoming, LOCK)
        self._locked = False
        self._quarantine = Quarantine(self._incoming, self._rejected)
        self._wall = wall
        self._taken: dict[str, Identity] = {}  # observed, but perhaps not on disk yet
        self.accepted = 0
        self.rejected = 0

    def take(self, observe: Callable[[Mapping[str, Any]], bool], enough: Callable[[], bool]) -> bool:
        """Observe new files, in the order of names, until ``enough``; False if some are left.

        Nothing happens while another service uses the folder.
        """
        if not self._locked:
            self._locked = self._lock.try_acquire()
            if not self._locked:
                return True
        self._quarantine.repair(self._wall())
        for name in sorted(filter(is_published, self._incoming.names())):
            if enough():
                return False
            with suppress(Unstable, FileNotFoundError):  # it is read later, if it still exists
                self._take(name, observe)
        return True

    def _take(self, name: str, observe: Callable[[Mapping[str, Any]], bool]) -> None:
        with self._quarantine.open(name) as entry:
            if self._taken.get(name) == entry.identity:
                return
            document = self._quarantine.judge(entry, MAX_TELEMETRY_BYTES, parse_telemetry)
        if isinstance(document, Rejection):
            self._reject(document)
            return
        self._quarantine.drop_leftover(name)
        if not observe(document):
            raise AssertionError("what was parsed as telemetry is observed")
        self._taken[name] = entry.identity
        self.accepted += 1

    def _reject(self, bad: Rejection) -> None:
        quarantine = self._quarantine
        sidecar = quarantine.draft_sidecar(bad, self._wall())
        try:
            sidecar.sync()
            kept = quarantine.write_sidecar(bad, sidecar)
        except BaseException:
            sidecar.discard()
            raise
        self._rejected.sync()
        if not self._is_still(bad.name, bad.identity):
            quarantine.drop_sidecar(kept)
            return
        try:
            self._incoming.rename(bad.name, self._rejected, kept)
        except OSError as error:
            if not quarantine.is_immovable(bad, error):
                raise
            quarantine.leave(bad, error)
            quarantine.drop_sidecar(kept)
            return
        self._rejected.sync()
        self.rejected += 1
        quarantine.tell(bad, kept)

    def submit(self, data: bytes) -> None:
        """Publish one telemetry file, durably, under a fresh name."""
        write_durable(self._incoming, f"feedback-{os.urandom(8).hex()}.json", data, replace=False)

    def remove_taken(self) -> None:
        """Remove the files of all records taken so far, which are in a checkpoint."""
        for name, identity in self._taken.items():
            if self._is_still(name, identity):
                with suppress(FileNotFoundError):
                    self._incoming.unlink(name)
        self._taken.clear()

    def _is_still(self, name: str, identity: Identity) -> bool:
        try:
            return Identity.of(self._incoming.stat(name)) == identity
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Release the lock and close all descriptors; idempotent."""
        self._lock.release()
        self._locked = False
        self._rejected.close()
        self._incoming.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
