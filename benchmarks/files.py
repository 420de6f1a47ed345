"""Directories of query files, made anew for every measurement, and the least that must be done with them."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .inputs import Problem

__all__ = ["BATCH", "bare_admission", "fill", "moved_in_batches"]

BATCH = 512  # files per durable commit: what `Spool.scan` takes when nobody says otherwise


def fill(directory: Path, problems: Sequence[Problem]) -> int:
    """Write one file per problem, and have the disk done with them; returns their bytes."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, problem in enumerate(problems):
        directory.joinpath(f"{number:07}-{problem.name}").write_bytes(problem.data)
    os.sync()
    return sum(len(problem.data) for problem in problems)


def moved_in_batches(incoming: Path, accepted: Path, store: Callable[[list[bytes]], None]) -> float:
    """Seconds to list, read, store and rename every file; one directory sync on each side per batch."""
    accepted.mkdir()
    started = time.perf_counter()
    names = sorted(os.listdir(incoming))
    folders = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY) for folder in (incoming, accepted)]
    for first in range(0, len(names), BATCH):
        batch = names[first : first + BATCH]
        store([_read(incoming / name) for name in batch])
        for name in batch:
            incoming.joinpath(name).rename(accepted / name)
        for folder in folders:
            os.fsync(folder)
    for folder in folders:
        os.close(folder)
    return time.perf_counter() - started


def _read(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def bare_admission(incoming: Path, accepted: Path, database: Path) -> float:
    """The limit of admission: the same bytes and syncs, and no question asked about any of them."""
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE bodies (number INTEGER PRIMARY KEY, body BLOB NOT NULL)")

    def store(bodies: list[bytes]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO bodies (body) VALUES (?)", ((body,) for body in bodies))
        connection.execute("COMMIT")

    try:
        return moved_in_batches(incoming, accepted, store)
    finally:
        connection.close()
