"""The interface of the store."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from smtspool.errors import MisuseError
from smtspool.query import Answer, Query, QueryFile, Witness

from . import ingest as admission
from . import listing, outbox, owners, queue
from .answers import drop_attempts
from .database import BUSY_TIMEOUT_SECONDS, INDEX_NAME, Database, no_store
from .forms import reopen
from .fsck import Finding, check_store
from .journal import journal_bytes, journal_readers, write_back
from .listing import Found, Wanted
from .outbox import Backoff
from .owners import Owner
from .pace import Pace, pace
from .presence import OWNERS_NAME, Presence
from .queue import Patience
from .rights import refused
from .rows import read_answer, read_query, read_witnesses
from .salvage import Salvaged, salvage
from .submissions import Submissions, read_submissions
from .values import Counts, Lease, Order, Publication, Result

__all__ = ["Store"]

EVERY_ANSWER = Wanted()


class Store:
    """Queries, leases, answers and the outbox of one directory, shared by any number of processes.

    Open one per thread: it holds one connection, which belongs to that thread of that process and is
    closed by it. It must not cross a fork, and a child forked while one is open cannot open its own.

    Every method is one transaction, durable when it returns, and short except :meth:`republish`;
    :meth:`results` is many. When the machine fails (full disk, read-only, damage, a lock held too long),
    InfrastructureError is raised, nothing has changed, and the call may be repeated. Times are seconds on
    ``clock``, which all users of the directory share.
    """

    def __init__(self, database: Database, patience: Patience, backoff: Backoff) -> None:
        self._db = database
        self._patience = patience
        self._backoff = backoff

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        create: bool = False,
        clock: Callable[[], float] = time.time,
        patience: Patience | None = None,
        backoff: Backoff | None = None,
        confirm_unsat: bool = False,
        busy_timeout_s: float = BUSY_TIMEOUT_SECONDS,
    ) -> Store:
        """Open the store in ``directory``; ``create`` makes it if there is none.

        With ``confirm_unsat`` an unsat answer that one engine gave alone answers no other query.
        Raises MisuseError if there is none, ConfigError if it was written by a newer smtspool.
        """
        directory = Path(directory)
        if create:
            try:
                _make_durably(directory / OWNERS_NAME)
            except OSError as error:
                raise refused(str(directory), directory / OWNERS_NAME, error) from error
        else:
            _check_there(directory)
        database = Database(
            directory, clock=clock, busy_timeout_s=busy_timeout_s, confirm_unsat=confirm_unsat
        )
        return cls(database, patience or Patience(), backoff or Backoff())

    @classmethod
    def view(cls, directory: Path, *, clock: Callable[[], float] = time.time) -> Store:
        """Open the store in ``directory`` for reading, which needs no right to write and changes nothing.

        Methods that write raise MisuseError. A store of an older version is not migrated, because services of
        that version may be using it: ConfigError. Other errors as in :meth:`open`.
        """
        directory = Path(directory)
        _check_there(directory)
        database = Database(directory, clock=clock, writes=False)
        return cls(database, Patience(), Backoff())

    @property
    def directory(self) -> Path:
        return self._db.directory

    # Admission

    def admit(self, files: Sequence[QueryFile], *, limit_ms: int | None = None) -> list[bool]:
        """Store the queries of files durably, all or none; True for each query that is new, file by file.

        Idempotent (F364 §4.2). A known query gets the larger timeout and the larger priority, and the witness
        if that is new. The *submissions* of each file and the counters ``admission.*`` are written in the
        same transaction, and a file that is admitted again counts once. A result with a further witness or
        submission is due for publication again. A query that ended ``unknown`` at its time limit is open
        again if the limit has grown; ``limit_ms`` is the limit that the service gives every query. A new
        query whose form is proven unsat is done at once.
        """
        return admission.admit(self._db, files, limit_ms)

    def ingest(self, queries: Sequence[Query]) -> list[bool]:
        """As :meth:`admit` for queries that come from no file; no submissions are recorded."""
        return admission.ingest(self._db, queries)

    # Leases

    def register(self, presence: Presence | None = None) -> Owner:
        """Register this process as an owner until the returned object is closed (on this thread).

        ``presence`` is its lock file, if it has one already.
        """
        return Owner(self._db, self._patience, presence)

    def reap(self) -> int:
        """Release the leases of owners that are proven dead; returns how many."""
        return owners.reap(self._db, self._patience)

    def claim(
        self,
        owner: str,
        lease_s: float,
        limit: int,
        order: Order = Order.DFS,
        affinity: str | None = None,
    ) -> list[Lease]:
        """Lease up to ``limit`` pending or expired queries for ``lease_s`` seconds.

        With ``affinity`` (``Lease.affinity`` of the last query) queries of the same prefix, its extensions
        and its ancestors come first. After them, or without affinity, comes the next query in the order with
        those near it in the same sense, and so on. The attempt counts from now on. A query whose text is
        damaged ends as an error and is not leased.
        """
        if limit < 1:
            raise MisuseError("claim at least one query")
        return queue.claim(self._db, owner, lease_s, limit, order, affinity, self._patience)

    def renew(self, leases: Sequence[Lease], lease_s: float) -> list[Lease]:
        """Move deadlines to ``lease_s`` seconds from now; returns the leases that are still held."""
        return queue.renew(self._db, leases, lease_s)

    def complete(self, answered: Sequence[tuple[Lease, Answer]]) -> list[bool]:
        """Commit answers; False for each whose lease was lost: it is stale, and changes nothing.

        An ``unknown`` at the limit is not kept if the query's limit has grown meanwhile; the query is solved
        again. Raises MisuseError, and commits none, if one answer is incomplete: a sat without a complete
        model confirmed by anybody else, an unknown or error without a reason.
        """
        return queue.complete(self._db, answered)

    def fail(self, lease: Lease, reason: str, *, helper_died: bool, stderr: str = "") -> bool:
        """Put a query back after a failed attempt; False if the lease was lost.

        Too many attempts, or too many dead helpers, end it as an error that carries the last stderr.
        """
        return queue.fail(
            self._db, lease, reason, helper_died=helper_died, stderr=stderr, patience=self._patience
        )

    def release(self, leases: Iterable[Lease]) -> int:
        """Put queries back unsolved, the attempt not counted; returns how many were still held."""
        return queue.release(self._db, leases)

    def refute(self, lease: Lease) -> None:
        """Report that the answer offered with this lease is wrong; its form is never reused again."""
        queue.refute(self._db, lease)

    def retry(self, query_id: str) -> bool:
        """Re-open a query that ended as unknown or error; False if there is no such result."""
        with self._db.write() as now:
            number = self._number(query_id)
            return number is not None and reopen(self._db, now, number)

    # Reading

    def query(self, query_id: str) -> Query | None:
        """The query as it was stored, with its present timeout and priority and its oldest witness."""
        with self._db.read():
            number = self._number(query_id)
            return None if number is None else read_query(self._db, number)

    def witnesses(self, query_id: str) -> list[Witness]:
        """The witnesses of a query, oldest first."""
        with self._db.read():
            number = self._number(query_id)
            return [] if number is None else read_witnesses(self._db, number)

    def result(self, query_id: str) -> Result | None:
        """The committed answer of a query, if it has one."""
        with self._db.read() as connection:
            row = connection.execute(
                "SELECT number, digest, body, completed FROM results WHERE query = ?",
                (self._number(query_id),),
            ).fetchone()
        if row is None:
            return None
        number, digest, body, completed = row
        return Result(number, query_id, read_answer(body, digest), completed)

    def submissions(self, query_id: str) -> Submissions:
        """The submissions of a query; none if it is unknown."""
        with self._db.read():
            number = self._number(query_id)
            return Submissions(0, ()) if number is None else read_submissions(self._db, number)

    def results(self, after: int = 0, *, wanted: Wanted = EVERY_ANSWER) -> Iterator[Result]:
        """Results in the order of completion, beginning behind number ``after``.

        Only those that are ``wanted``; its conditions on submissions are ignored. No other answer is read.
        Raises InfrastructureError at a damaged one.
        """
        return listing.answered(self._db, after, wanted)

    def listed(self, wanted: Wanted) -> Iterator[Found]:
        """Queries in the order of admission, each with its answer if there is one.

        If ``wanted`` names a file or metadata, each submission that has them is listed by itself. Raises
        InfrastructureError at a damaged answer or submission.
        """
        return listing.listed(self._db, wanted)

    def undecided(self) -> list[str]:
        """Ids of the queries that ended as unknown or error, in that order: what ``retry`` can re-open.

        No answer is read, so a damaged one is among them like any other.
        """
        with self._db.read() as connection:
            rows = connection.execute(
                "SELECT q.id FROM results r JOIN queries q ON q.number = r.query "
                "WHERE r.status IN ('unknown', 'error') ORDER BY r.number"
            ).fetchall()
        return [identity.hex() for (identity,) in rows]

    def counters(self) -> dict[str, int | float]:
        """Every counter: of rows, and of events such as ``wins.z3`` or ``stale``."""
        with self._db.read() as connection:
            return dict(connection.execute("SELECT name, value FROM counters"))

    def bump(self, increments: Mapping[str, int | float]) -> None:
        """Add to counters of events, durably and together."""
        for name in increments:
            if name.split(".")[0] in ("queries", "results", "publications"):
                raise MisuseError(f"{name} counts rows and cannot be bumped")
        with self._db.write():
            for name, amount in increments.items():
                self._db.bump(name, amount)

    def counts(self) -> Counts:
        """How many queries are in each state. Costs the same however large the store is."""
        return Counts.of(self.counters())

    def pace(self) -> Pace:
        """How many queries came and were answered lately. Costs the same however large the store is."""
        with self._db.read() as connection:
            return pace(connection, self._db.now())

    def _number(self, query_id: str) -> int | None:
        """Row of the query; inside a transaction."""
        self._db.queries.refresh()
        return self._db.queries.find(_raw(query_id))

    # Publication

    def due_publications(self, limit: int) -> list[Publication]:
        """Results whose files are to be written now, longest due first."""
        return outbox.due_publications(self._db, limit, self._backoff)

    def sat_publications(self) -> Iterator[Publication]:
        """The publications of all ``sat`` answers, due or not; InfrastructureError at a damaged one."""
        return outbox.sat_publications(self._db)

    def published(self, written: Iterable[Publication], inputs: Mapping[int, int] | None = None) -> None:
        """Record that the files of these publications are durable; one that changed meanwhile stays due.

        ``inputs`` maps the id of a publication to its number of new inputs.
        """
        outbox.published(self._db, written, inputs or {})

    def publication_failed(self, publication_id: int, error: str) -> None:
        """Record that writing failed; it is due again after a growing delay, and a dead letter in the end."""
        outbox.publication_failed(self._db, publication_id, error, self._backoff)

    def revive_publications(self) -> int:
        """Make dead letters due again; returns how many."""
        return outbox.revive_publications(self._db)

    def republish(self) -> int:
        """Make every result due again, to re-create all files; returns how many."""
        return outbox.republish(self._db)

    # Knowledge

    def put(self, name: str, value: object) -> None:
        """Remember a JSON value under a name, such as the times of engines that races learnt."""
        text = json.dumps(value, allow_nan=False)
        with self._db.write():
            self._db.connection.execute(
                "INSERT INTO knowledge (name, value) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (name, text),
            )

    def get(self, name: str) -> object:
        """The JSON value remembered under a name, or None."""
        with self._db.read() as connection:
            row = connection.execute("SELECT value FROM knowledge WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    # Upkeep

    def journal_bytes(self) -> int:
        """Length of the database's journal; a reader that does not end keeps it growing."""
        return journal_bytes(self._db.path)

    def write_back(self) -> tuple[int, int]:
        """Write back the part of the journal that no reader holds.

        Returns its pages and how many are written back; (-1, -1) if another process is writing back.
        """
        return write_back(self._db)

    def journal_readers(self) -> list[int]:
        """Other processes that hold a place in the journal at this moment, if the kernel shows them."""
        return journal_readers(self._db.path)

    def drop_attempts(self, before: float, *, dry_run: bool = False) -> tuple[int, int]:
        """Remove the attempts of sat and unsat answers older than ``before``; how many, and their bytes."""
        return drop_attempts(self._db, before, dry_run=dry_run)

    def salvage(self, directory: Path) -> Salvaged:
        """Save what can be read of the damaged store in ``directory``, which is only read, into this one."""
        return salvage(Path(directory), self._db)

    # Life cycle

    @staticmethod
    def fsck(directory: Path) -> list[Finding]:
        """Verify everything in a store without changing it; an empty list means that all is well."""
        return check_store(Path(directory))

    def close(self) -> None:
        """Close the connection; idempotent."""
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_there(directory: Path) -> None:
    try:
        # A failing disk may leave an empty file; going on with it would hide that all data is lost.
        if not (directory / INDEX_NAME).is_file() or not (directory / INDEX_NAME).stat().st_size:
            raise no_store(directory)
    except OSError as error:
        raise refused(str(directory), directory / INDEX_NAME, error) from error


def _make_durably(folder: Path) -> None:
    """Make the folder and those above it; what was made survives a power cut."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _raw(query_id: str) -> bytes:
    try:
        return bytes.fromhex(query_id)
    except ValueError as error:
        raise MisuseError(f"not the id of a query: {query_id!r}") from error
