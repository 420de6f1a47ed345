"""What the spool tests share: query files, a real store in one SQLite file, and a look at the folders."""

from __future__ import annotations

import json
import os
import sqlite3
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from smtspool.query import QueryFile
from smtspool.spool import ScanReport, Spool

BROKEN = b'{"schema": '


def envelope(number: int, *, padding: int = 0) -> bytes:
    """A query about one byte that equals ``number`` modulo 2**32; different numbers, different queries."""
    document = {
        "schema": "smtspool-query-v1",
        "logic": "QF_BV",
        "declarations": ["(declare-const x (_ BitVec 32))"],
        "prefix": ["(bvult #x00000000 x)"],
        "target": f"(= x #x{number:08x})",
        "witness": {"input_hex": "00000000", "symbols": {}},
        "metadata": {"padding": "p" * padding},
        "timeout_ms": 1000,
        "priority": 0,
    }
    return json.dumps(document).encode()


class Ledger:
    """The commit side: one durable SQLite transaction per batch, idempotent by query id."""

    def __init__(self, path: Path) -> None:
        self.calls = 0
        self.inside: Callable[[], None] = lambda: None
        self.behind: Callable[[], None] = lambda: None
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute("CREATE TABLE IF NOT EXISTS query (id TEXT PRIMARY KEY)")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def commit(self, files: Sequence[QueryFile]) -> list[bool]:
        queries = [query for file in files for query in file.queries]
        self.calls += 1
        self._db.execute("BEGIN IMMEDIATE")
        try:
            created = [
                self._db.execute("INSERT OR IGNORE INTO query VALUES (?)", (query.id,)).rowcount == 1
                for query in queries
            ]
            self.inside()
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self.behind()
        return created

    @property
    def stored(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM query").fetchone()[0])


def scan(spool: Spool, ledger: Ledger, **options: Any) -> ScanReport:
    """One pass without a budget."""
    return spool.scan(ledger.commit, **{"consumer": "c1", "budget_s": float("inf")} | options)


def publish(root: Path, name: str, data: bytes) -> None:
    """What a producer does: a temporary name, then a rename."""
    temporary = root / "incoming" / f".{os.getpid()}-{name[:200]}"
    temporary.write_bytes(data)
    temporary.rename(root / "incoming" / name)


def folder(root: Path, name: str) -> set[str]:
    return set(os.listdir(root / name))


def files(root: Path) -> dict[str, set[str]]:
    """The names in the three folders."""
    return {name: folder(root, name) for name in ("incoming", "accepted", "rejected")}


def sidecar(root: Path, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((root / "rejected" / f"{name}.error").read_bytes())
    return document


def assert_in_order(root: Path) -> None:
    """Nothing waits, nothing temporary is left, and sidecars and rejected files are pairs."""
    assert folder(root, "incoming") == set()
    rejected = folder(root, "rejected")
    sidecars = {name for name in rejected if name.endswith(".error")}
    assert {name.removesuffix(".error") for name in sidecars} == rejected - sidecars
    assert not [name for name in rejected | folder(root, "accepted") if name.startswith(".")]


def in_child(work: Callable[[], None]) -> None:
    """Run ``work`` in a process of its own, with limits of its own; its exceptions fail the test."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
