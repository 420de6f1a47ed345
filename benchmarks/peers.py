"""Other durable queues, each in its own best honest configuration: WAL and ``synchronous=FULL``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

__all__ = ["PEERS", "Peer"]

# Stores the texts of one batch; when it returns, a power cut loses none of them.
Put = Callable[[Sequence[str]], None]


@dataclass(frozen=True, slots=True)
class Peer:
    package: str
    configuration: str
    open: Callable[[Path], AbstractContextManager[Put]]

    @property
    def name(self) -> str:
        return f"{self.package} {version(self.package)}, {self.configuration}"


@contextmanager
def _litequeue(directory: Path, *, batched: bool) -> Iterator[Put]:
    from litequeue import LiteQueue

    queue = LiteQueue(directory / "queue.sqlite3")
    queue.conn.execute("PRAGMA synchronous = FULL")  # it sets NORMAL, which a power cut may undo

    def put_batch(texts: Sequence[str]) -> None:
        with queue.transaction(mode="IMMEDIATE"):
            for text in texts:
                queue.put(text)

    def put_each(texts: Sequence[str]) -> None:
        for text in texts:
            queue.put(text)

    try:
        yield put_batch if batched else put_each
    finally:
        queue.close()


@contextmanager
def _persist_queue(directory: Path) -> Iterator[Put]:
    """One commit per text: "disable auto commit is not supported in ack queue"."""
    from persistqueue import SQLiteAckQueue

    queue = SQLiteAckQueue(str(directory), multithreading=False)
    # Nothing to set: WAL is its own choice, FULL is what SQLite does unless told otherwise.

    def put(texts: Sequence[str]) -> None:
        for text in texts:
            queue.put(text)

    try:
        yield put
    finally:
        queue.close()


@contextmanager
def _huey(directory: Path) -> Iterator[Put]:
    """One commit per text: ``enqueue`` takes one, inside a transaction of its own."""
    from huey.storage import SqliteStorage

    storage = SqliteStorage(filename=str(directory / "huey.sqlite3"), journal_mode="wal", fsync=True)

    def put(texts: Sequence[str]) -> None:
        for text in texts:
            storage.enqueue(text.encode())

    try:
        yield put
    finally:
        storage.close()


PEERS = (
    Peer("litequeue", "one transaction a batch", lambda directory: _litequeue(directory, batched=True)),
    Peer("litequeue", "one put, one commit", lambda directory: _litequeue(directory, batched=False)),
    Peer("persist-queue", "SQLiteAckQueue", _persist_queue),
    Peer("huey", "SqliteStorage, fsync", _huey),
)
