"""The spool, as producers and consumers use it."""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from types import TracebackType
from typing import Self

from smtspool.errors import InfrastructureError, LockRefused
from smtspool.files import Directory, FileLock
from smtspool.query import Limits
from smtspool.spool.admission import Admission, Commit, CountRejected, Folders, Tally
from smtspool.spool.names import is_published
from smtspool.spool.quarantine import Memory, Quarantine
from smtspool.spool.report import Outcome, ScanReport
from smtspool.spool.state import DirectoryState
from smtspool.spool.steps import action
from smtspool.spool.submission import publish, sweep
from smtspool.spool.waiting import wait_for_change

__all__ = ["Spool"]

# Files that are submitted with one sync of the file system.
_TOGETHER = 256
_LOCK = ".ingest.lock"
_FOLDERS = ("incoming", "accepted", "rejected")
# The longest time that a batch is open, so that a consumer which is killed again and again still makes
# progress.
_BATCH_S = 0.1


class Spool:
    """A spool directory, held by descriptor, so that a link put into its path later cannot redirect it.

    Close it, or use it as a context manager. Any thread may call :meth:`submit` and :meth:`backlog`; one
    thread at a time calls :meth:`scan` and :meth:`wait`.

    An ``OSError``, also one of ``commit``, becomes the cause of an
    :class:`~smtspool.errors.InfrastructureError`; other errors of ``commit`` (``sqlite3.Error``) propagate.
    After an error the lock is free and every file that was not moved is still in ``incoming/``.
    """

    def __init__(self, root: Directory, limits: Limits) -> None:
        self._root = root
        self._limits = limits
        self._resume_after = ""  # the last name of a scan whose budget ran out
        self._busy_since: float | None = None  # by the clock of scan
        self._seen: DirectoryState | None = None  # incoming/, just before the last listing that was finished
        self._memory = Memory()

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, create: bool = False, limits: Limits | None = None
    ) -> Spool:
        """Open the spool at ``path``; ``create`` makes it and its folders where they are missing.

        A folder that is missing is made by the next submission or scan.

        :raises InfrastructureError: the spool is missing, or a component is a link (the error names it)
        """
        with _infrastructure(f"cannot open the spool {os.fspath(path)}"), ExitStack() as undo:
            root = undo.enter_context(Directory.open(path, create=create))
            for name in _FOLDERS:
                with suppress(FileNotFoundError):  # a scan will make it; a link is refused here
                    root.child(name, create=create).close()
            undo.pop_all()
            return cls(root, limits or Limits())

    def submit(self, name: str, data: bytes) -> str:
        """Publish ``data`` durably as one file of ``incoming/``; returns its name, fresh if it was taken.

        :raises MisuseError: no scan would read ``name`` (hidden, ``*.tmp``, a path, too long)
        """
        return self.submit_many([(name, data)])[0]

    def submit_many(self, files: Iterable[tuple[str, bytes]]) -> list[str]:
        """As :meth:`submit` for each file, with one directory sync; after an error some are published."""
        published: list[str] = []
        try:
            with self._root.child("incoming", create=True) as incoming:
                rest = iter(files)
                while publish(incoming, islice(rest, _TOGETHER), published):
                    pass
                incoming.sync()
        except OSError as error:
            raise InfrastructureError(
                f"cannot submit: {error}; {len(published)} files were published before. When this is mended "
                "submit all of them again: what is known is not solved again"
            ) from error
        return published

    def backlog(self) -> int:
        """How many published files are in ``incoming/`` now. Lists the directory."""
        with (
            _infrastructure("cannot list the spool"),
            suppress(FileNotFoundError),  # a scan or a submission makes it
            self._root.child("incoming") as incoming,
        ):
            return sum(map(is_published, incoming.names()))
        return 0

    def scan(
        self,
        commit: Commit,
        count_rejected: CountRejected = lambda number: None,
        *,
        consumer: str,
        budget_s: float,
        batch: int = 1024,
        batch_bytes: int = 16 << 20,
        serving_since: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> ScanReport:
        """One admission pass (F364 §4), or the part of one that fits into ``budget_s``.

        If the lock is busy nothing happens: ``Outcome.BUSY``. Else ``incoming/`` is listed once, and its
        files are read, committed and moved in batches of about ``batch`` queries, ``batch_bytes`` of query
        text, or a tenth of a second, whichever comes first; one batch is in memory at a time. The budget is
        checked after every file, and at least one file is settled; the next call continues an unfinished
        pass after its last name.

        ``commit`` stores the queries of files in one durable transaction and returns which are new; if it
        raises, none are stored. ``count_rejected`` is called with the number of rejected files of each batch,
        also of one that fails. A file waits from when it came, but not from before ``serving_since``.
        ``clock`` measures spans, ``wall`` is compared with file times; both in seconds.

        :raises LockRefused: the lock is not one regular file; nothing was touched
        :raises InfrastructureError: see the class
        """
        with _infrastructure("the scan ended early"), FileLock(self._root, _LOCK) as lock:
            asked = clock()
            acquired = self._try_lock(lock, consumer)
            if self._busy_since is None:
                self._busy_since = asked
            waited_ns = int((clock() - self._busy_since) * 1e9)
            if not acquired:
                return ScanReport(Outcome.BUSY, backlog=None, lock_wait_ns=waited_ns)
            self._busy_since = None
            ended: str | None = "failed"
            try:
                with self._folders() as folders:
                    quarantine = Quarantine(folders.incoming, folders.rejected, self._memory)
                    with action("List", consumer=consumer):
                        quarantine.repair(wall())
                        names = self._list(folders.incoming, wall())
                    admission = Admission(
                        folders,
                        quarantine,
                        commit,
                        count_rejected,
                        consumer=consumer,
                        limits=self._limits,
                        serving_since=serving_since,
                        wall=wall,
                    )
                    left = self._pass(admission, names, batch, batch_bytes, asked, budget_s, clock)
                    report = _report(admission.tally, len(names), left, waited_ns)
                ended = None
                return report
            finally:
                with action("Release", consumer=consumer) as step:
                    step.outcome = ended  # a recording tells a pass that ended early from one that was over
                    lock.release()

    def _try_lock(self, lock: FileLock, consumer: str) -> bool:
        with action("TryLock", consumer=consumer) as step:
            try:
                acquired = lock.try_acquire()
            except LockRefused:
                step.outcome = "RefuseLock"
                raise
            step.outcome = "Acquire" if acquired else "Busy"
        return acquired

    @contextmanager
    def _folders(self) -> Iterator[Folders]:
        # Opened anew by every scan: an operator may have recreated one.
        with ExitStack() as opened:
            yield Folders(*(opened.enter_context(self._root.child(name, create=True)) for name in _FOLDERS))

    def _list(self, incoming: Directory, now: float) -> list[str]:
        self._seen = DirectoryState.of(incoming)
        names = incoming.names()
        sweep(incoming, names, now)
        return sorted(filter(is_published, names))

    def _pass(
        self,
        admission: Admission,
        names: list[str],
        batch: int,
        batch_bytes: int,
        started: float,
        budget_s: float,
        clock: Callable[[], float],
    ) -> int:
        """Examine and settle all names, from where the last scan stopped; returns how many are left."""
        start = bisect_right(names, self._resume_after)
        self._resume_after = ""
        settle_at = started + _BATCH_S
        for done, name in enumerate([*names[start:], *names[:start]], 1):
            admission.examine(name)
            now = clock()
            if admission.holds(batch, batch_bytes) or now >= settle_at:
                admission.settle()
                settle_at = now + _BATCH_S
            if now >= started + budget_s and done < len(names):
                admission.settle()
                self._resume_after = name
                self._seen = None
                return len(names) - done
        admission.settle()
        return 0

    def wait(
        self, timeout_s: float, stop: threading.Event, *, clock: Callable[[], float] = time.monotonic
    ) -> bool:
        """Wait until a scan may find something; False after ``timeout_s`` seconds or once ``stop`` is set.

        True at once if ``incoming/`` has changed since it was last listed (also by moves of a scan) or if the
        last scan was unfinished. It may be wrong in both directions, so callers must scan at times in any
        case.
        """
        with _infrastructure("cannot watch the spool"), self._root.child("incoming", create=True) as incoming:
            return wait_for_change(
                incoming.path, lambda: DirectoryState.of(incoming) != self._seen, timeout_s, stop, clock
            )

    def close(self) -> None:
        """Close the descriptor; repeating it is harmless."""
        self._root.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _report(tally: Tally, listed: int, left: int, lock_wait_ns: int) -> ScanReport:
    return ScanReport(
        Outcome.SCANNED if listed else Outcome.IDLE,
        accepted=tally.accepted,
        rejected=tally.rejected,
        deferred=tally.deferred,
        created=tally.created,
        replayed=tally.replayed,
        bytes=tally.bytes,
        backlog=left + tally.deferred,
        finished=left == 0,
        lock_wait_ns=lock_wait_ns,
        latency=tuple(tally.latency),
    )


@contextmanager
def _infrastructure(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InfrastructureError(f"{what}: {error}") from error
