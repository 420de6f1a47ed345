"""Many processes on one store."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from smtspool.store import Store
from tests.store.support import UNSAT, query, start_child, wait_for

PROCESSES = 16
EACH = 20
DEADLINE_S = 60.0


def test_no_submit_is_lost_while_somebody_holds_the_lock(directory: Path) -> None:
    Store.open(directory, create=True).close()

    def submit(number: int) -> int:
        with Store.open(directory) as store:
            created = [store.ingest([query(number * EACH + k)]) for k in range(EACH)]
        return 0 if created == [[True]] * EACH else 2

    with holding_the_lock(directory):
        children = [start_child(partial(submit, number)) for number in range(PROCESSES)]
        wait_until_all_sleep(children)
    assert [wait_for(child) for child in children] == [0] * PROCESSES
    with Store.open(directory) as store:
        assert store.counts().total == PROCESSES * EACH
    assert Store.fsck(directory) == []


@contextmanager
def holding_the_lock(directory: Path) -> Iterator[None]:
    """Another process is in the middle of a transaction while the body runs."""
    said, says = os.pipe()
    waits, let_go = os.pipe()

    def hold() -> int:
        os.close(let_go)
        with closing(sqlite3.connect(directory / "index.sqlite3", isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            os.write(says, b"!")
            os.read(waits, 1)
        return 0

    child = start_child(hold)
    try:
        os.read(said, 1)
        yield
    finally:
        os.write(let_go, b"!")
        assert wait_for(child) == 0
        for descriptor in (said, says, waits, let_go):
            os.close(descriptor)


def wait_until_all_sleep(children: list[int]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while any(state(child) != "S" for child in children):
        assert time.monotonic() < deadline


def state(pid: int) -> str:
    """The kernel's letter for what the process does; S is waiting."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_every_query_is_answered_by_exactly_one(directory: Path) -> None:
    total = 200
    with Store.open(directory, create=True) as store:
        store.ingest([query(n) for n in range(total)])

    def work() -> int:
        with Store.open(directory) as store, store.register() as owner:
            while leases := store.claim(owner.name, 60.0, 7):
                if not all(store.complete([(lease, UNSAT) for lease in leases])):
                    return 2
        return 0

    children = [start_child(work) for _ in range(8)]
    assert [wait_for(child) for child in children] == [0] * 8
    with Store.open(directory) as store:
        assert store.counts().unsat == total
        assert "stale" not in store.counters()
        assert store.counters()["wins.bitwuzla"] == total
    assert Store.fsck(directory) == []
