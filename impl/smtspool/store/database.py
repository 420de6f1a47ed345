"""The connection to the database: opening, versions, transactions, and the meaning of SQLite's errors.

One :class:`Database` belongs to one thread of one process. Writes are short IMMEDIATE transactions; the
clock is read after the write lock is held, so that waiting for the lock cannot make a deadline stale.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from smtspool.errors import ClosedError, ConfigError, InfrastructureError, LastingError, MisuseError

from .digests import Digests
from .presence import OWNERS_NAME, present
from .rights import refusal
from .views import Unused, connect_view, unused

__all__ = [
    "APPLICATION_ID",
    "INDEX_NAME",
    "MIGRATIONS",
    "Database",
    "check_version",
    "described",
    "migrate",
    "migrations",
    "no_store",
    "short_digest",
]

INDEX_NAME = "index.sqlite3"
APPLICATION_ID = 0x736D7471  # "smtq": says that the file is ours
OLDEST_SQLITE = (3, 37, 0)  # STRICT tables
BUSY_TIMEOUT_SECONDS = 30.0
CACHE_KIB = 64 * 1024
# With rare checkpoints, several commits that change one page cost one write of it.
CHECKPOINT_PAGES = 8 * 1024
JOURNAL_BYTES = 64 * 1024 * 1024

# Script n turns version n into version n + 1; version 0 is an empty file.
MIGRATIONS = ("schema.sql", "version2.sql")


@cache
def migrations() -> tuple[str, ...]:
    """The SQL of every migration, oldest first; read once, as the program that runs is loaded once."""
    return tuple(Path(__file__).with_name(name).read_text("utf-8") for name in MIGRATIONS)


# The open databases of this process. A forked child inherits SQLite's record of the locks that they hold, so
# even a new connection in the child would wrongly count on these locks.
_open: set[Database] = set()


def _never_close() -> None:
    """Runs in a forked child: keep inherited connections from being freed, even when the interpreter ends.

    Closing one would roll back the open transaction of the parent, in memory that both processes share.
    """
    import ctypes

    for database in tuple(_open):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(database.connection))


os.register_at_fork(after_in_child=_never_close)


class Database:
    """One connection. Not thread-safe, not fork-safe: either use from elsewhere raises MisuseError."""

    process: int
    connection: sqlite3.Connection

    def __init__(
        self,
        directory: Path,
        *,
        clock: Callable[[], float],
        busy_timeout_s: float = BUSY_TIMEOUT_SECONDS,
        confirm_unsat: bool = False,
        scripts: Sequence[str] | None = None,
        writes: bool = True,
    ) -> None:
        """Open the index in ``directory``, creating or migrating it as needed.

        Without ``writes`` no right to write is needed, nothing changes, and an older version is refused.
        Raises ConfigError for a file of a newer version or of another program, and InfrastructureError when
        the machine refuses.
        """
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise ConfigError(f"SQLite {sqlite3.sqlite_version} is too old: the store needs 3.37 or newer")
        if any(other.process != os.getpid() for other in tuple(_open)):
            raise MisuseError("a child forked while a store was open cannot open one: use a new program")
        self.directory = directory
        self.confirm_unsat = confirm_unsat  # of this connection only
        self.suspect_waits = False  # see queue._apart
        self.path = directory / INDEX_NAME
        self._clock = clock
        self.process = os.getpid()
        self._thread = threading.get_ident()
        self._closed = False
        self._bumps: dict[str, float] = {}
        self._writes = writes
        self._busy_timeout_s = busy_timeout_s
        self._scripts = migrations() if scripts is None else scripts
        self._unused: Unused | None = None  # see views.py
        with described(self.path, writes=writes):
            self._connect()
        _open.add(self)

    def _connect(self) -> None:
        if self._writes:
            self.connection = sqlite3.connect(
                self.path, timeout=self._busy_timeout_s, isolation_level=None, check_same_thread=False
            )
        else:
            self.connection, self._unused = connect_view(self.path, self._busy_timeout_s)
        try:
            self._prepare()
            self._file = self.path.stat()
        except BaseException:
            self.connection.close()
            raise
        self.queries = Digests(self.connection, "queries")
        self.forms = Digests(self.connection, "forms")
        self.prefixes = Digests(self.connection, "prefixes")

    def _prepare(self) -> None:
        connection = self.connection
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        if not self._writes:
            check_version(connection, self.path, len(self._scripts))
            return
        migrate(connection, self.path, self._scripts)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_BYTES}")

    @contextmanager
    def write(self) -> Iterator[float]:
        """One durable transaction, all or nothing; yields the time read under the write lock.

        Any exception rolls back. SQLite's errors leave as InfrastructureError.
        """
        self._check_caller()
        self._check_file()
        if not self._writes:
            raise MisuseError(f"{self.path} was opened to be read")
        connection = self.connection
        with described(self.path):
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._clock()
                self._write_bumps()
                connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            finally:
                self._bumps.clear()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the store. Keep it short, since the journal grows until it ends."""
        self._check_caller()
        with described(self.path, writes=self._writes):
            if not self._writes:
                self._follow()
            connection = self.connection
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                self._roll_back()
                self._check_unused()

    def _follow(self) -> None:
        """Open the file again if a process has begun to use it since, so that its journal is read too."""
        if self._unused is None:
            self._check_file()
        elif self._unused != unused(self.path):
            self.connection.close()
            self._connect()

    def _check_unused(self) -> None:
        """Raise InfrastructureError if a process wrote during a read without locks, which may mix states."""
        if self._unused is None:
            return
        status = self.path.stat()
        if (status.st_ino, status.st_size, status.st_mtime_ns) != self._unused:
            raise InfrastructureError(f"{self.path}: a service came and went while it was read: try again")

    def _roll_back(self) -> None:
        # After a full disk or a broken page SQLite has often rolled back already; the first error is raised.
        with suppress(sqlite3.Error):
            if self.connection.in_transaction and os.getpid() == self.process:
                self.connection.execute("ROLLBACK")

    def now(self) -> float:
        return self._clock()

    def bump(self, name: str, amount: float = 1) -> None:
        """Add to a counter with the transaction that is being written."""
        self._bumps[name] = self._bumps.get(name, 0) + amount

    def _write_bumps(self) -> None:
        self.connection.executemany(
            "INSERT INTO counters (name, value) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
            self._bumps.items(),
        )

    def _check_caller(self) -> None:
        if self._closed:
            raise ClosedError("the store was closed before this call")
        if os.getpid() != self.process:
            raise MisuseError("a store must not cross a fork: open a new one in the child")
        if threading.get_ident() != self._thread:
            raise MisuseError("a store belongs to the thread that opened it: open one per thread")

    def _check_file(self) -> None:
        """Raise InfrastructureError if the file was moved or removed: SQLite would go on writing to it."""
        try:
            if os.path.samestat(self.path.stat(), self._file):
                return
            message = "another file took its place"
        except OSError as error:
            message = str(error.strerror)
        raise InfrastructureError(f"{self.path}: the store was moved away while it was in use: {message}")

    def close(self) -> None:
        """Close the connection; idempotent. In a forked child it is only marked as closed."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() == self.process:
            _open.discard(self)
            with described(self.path):
                self.connection.close()


def no_store(directory: Path) -> MisuseError:
    """The error for a folder without a database, which never had one or lost it."""
    return MisuseError(
        f"{directory} holds no store: if it had one, `smtspool salvage` makes a new campaign of the accepted "
        "files; else create one with `smtspool init`"
    )


def migrate(connection: sqlite3.Connection, path: Path, scripts: Sequence[str]) -> None:
    """Bring the file to the newest version in one transaction, or refuse and leave it as it is.

    Raises ConfigError for a file that is not ours, InfrastructureError while an older version uses it.
    """
    connection.execute("BEGIN")
    version = _version(connection, path, len(scripts))
    connection.execute("ROLLBACK")
    if version == len(scripts):
        return
    connection.create_function("short_digest", -1, short_digest, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again under the lock, since another process may have migrated it meanwhile.
        version = _version(connection, path, len(scripts))
        if version:
            _check_left(connection, path)
        for script in scripts[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(scripts)}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _check_left(connection: sqlite3.Connection, path: Path) -> None:
    """Raise InfrastructureError while a service lives that is registered in an older database.

    It is of an older version and writes as that does. A service that starts waits for its end.
    """
    living = {one.token for one in present(path.parent) if one.alive is not False}
    for pid, host, token in connection.execute("SELECT pid, host, token FROM owners"):
        if token in living:
            raise InfrastructureError(
                f"{path} is in use by an older smtspool, pid {pid} on {host}, which holds "
                f"{OWNERS_NAME}/{token}.lock: stop it, and this one brings the store up to date"
            )


def short_digest(*values: object) -> bytes:
    """16 bytes of SHA-256 over the values of a row, which show damage but are no proof against forgery."""
    return sha256(ascii(values).encode()).digest()[:16]


def check_version(connection: sqlite3.Connection, path: Path, newest: int) -> None:
    """Raises ConfigError for a file of any version but the ``newest``, and for one of another program."""
    version = _version(connection, path, newest)
    if version < newest:
        raise ConfigError(
            f"{path} has version {version}, and this smtspool reads {newest}: stop the services that use it, "
            "then `smtspool serve` brings it up to date"
        )


def _version(connection: sqlite3.Connection, path: Path, newest: int) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if version > newest:
        raise ConfigError(
            f"{path} has version {version}, and this smtspool knows {newest}: use the one that wrote it"
        )
    if application != (APPLICATION_ID if version else 0) or (tables and not version):
        raise ConfigError(f"{path} is a database of another program: choose another directory")
    return int(version)


def _statements(script: str) -> Iterator[str]:
    """The statements of a script; a trigger is one statement although it holds semicolons."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


# What SQLite's primary result codes mean for an operator.
_MEANINGS = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space, nothing was lost",
    sqlite3.SQLITE_READONLY: "the store is read-only: check permissions and mount options",
    sqlite3.SQLITE_CORRUPT: "the store is damaged: run `smtspool fsck`, then `smtspool salvage`",
    sqlite3.SQLITE_NOTADB: "the file is not a database, or its first page is damaged: run `smtspool salvage`",
    sqlite3.SQLITE_BUSY: "another process kept the store locked for too long: it will be tried again",
    sqlite3.SQLITE_LOCKED: "the store is locked by this process: it will be tried again",
    sqlite3.SQLITE_IOERR: "the disk failed to read or write the store",
    sqlite3.SQLITE_CANTOPEN: "the store cannot be opened: check that the directory exists and is ours",
}
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_RIGHTS = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


@contextmanager
def described(path: Path, *, writes: bool = True) -> Iterator[None]:
    """Turn the errors of SQLite that the machine causes into InfrastructureError, cause kept.

    It is a LastingError for a damaged file, and for one that this user may not read, or write.
    """
    try:
        yield
    except UnicodeDecodeError as error:  # the message of SQLite quotes damaged text
        raise LastingError(f"{path}: {_MEANINGS[sqlite3.SQLITE_CORRUPT]} ({error})") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code not in _MEANINGS:
            raise
        closed = refusal(path, writes=writes) if code in _RIGHTS else None
        kind = LastingError if closed or code in _DAMAGE else InfrastructureError
        raise kind(f"{path}: {closed or _MEANINGS[code]} ({error})") from error
