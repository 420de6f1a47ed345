"""A process that dies at any statement loses nothing that was acknowledged, and strands nothing."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from smtspool.query import Query
from smtspool.store import Order, Store, digests
from tests.sampling import WHOLE
from tests.store.support import LEASE_S, TIMEOUT, UNSAT, in_child, query, sat, start_child, wait_for

EVERY_STATEMENT = 3  # is one at which the sample is killed

# One form three times, one alone, one on a path: the shortest story in which every table takes part.
STORY = [
    query(7, name="a", witness=b"w"),
    query(7, name="b"),
    query(7, name="c"),
    query(8),
    query(9, path=(5, 4)),
]


def work_through(store: Store) -> None:
    """Admit the story and answer all of it, whatever was done of it before."""
    store.reap()
    store.ingest(STORY)
    with store.register() as owner:
        while leases := store.claim(owner.name, LEASE_S, 2, Order.FIFO):
            timed_out = [lease for lease in leases if lease.query == STORY[0]]
            store.complete([(lease, TIMEOUT if lease in timed_out else UNSAT) for lease in leases])
    store.published(store.due_publications(10))
    store.retry(STORY[0].id)


def dying_at(statement: int, directory: Path) -> Callable[[], int]:
    """Work through the story and be killed in front of the statement with this number."""

    def work() -> int:
        with Store.open(directory) as store:
            left = statement

            def count(_: str) -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

            store._db.connection.set_trace_callback(count)
            work_through(store)
        return 0

    return work


@pytest.mark.slow
@pytest.mark.sampled
def test_killed_at_any_statement_it_is_sound_and_the_next_process_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "TAIL_ROWS", 2)
    Store.open(tmp_path / "empty", create=True).close()
    statement = 0
    while True:
        directory = tmp_path / str(statement)
        shutil.copytree(tmp_path / "empty", directory)
        if in_child(dying_at(statement, directory)) == 0:
            break
        assert Store.fsck(directory) == [], f"killed at statement {statement}"
        with Store.open(directory) as store:
            work_through(store)
            counts = store.counts()
            assert (counts.open, counts.unsat) == (0, 5), f"killed at statement {statement}"
        assert Store.fsck(directory) == [], f"killed at statement {statement}, then finished"
        statement += 1 if WHOLE else EVERY_STATEMENT
    assert statement > 100  # the story was long enough to mean something


@pytest.mark.parametrize("seed", range(4))
def test_what_was_acknowledged_before_a_kill_is_there(directory: Path, seed: int) -> None:
    print(f"seed {seed}")
    choice = random.Random(seed)
    Store.open(directory, create=True).close()
    admitted: set[int] = set()
    answered: set[int] = set()
    for _ in range(5):
        fresh = len(admitted) * 10  # numbers no earlier process used
        reader, writer = os.pipe()
        child = start_child(partial(_acknowledging, directory, writer, fresh))
        os.close(writer)
        with os.fdopen(reader) as lines:
            for _ in range(choice.randrange(1, 40)):
                _note(lines.readline(), admitted, answered)
            os.kill(child, signal.SIGKILL)
            assert wait_for(child) == -signal.SIGKILL
            for line in lines:
                _note(line, admitted, answered)
        assert Store.fsck(directory) == []
        with Store.open(directory) as store:
            assert all(store.query(query(number).id) is not None for number in admitted)
            assert all(store.result(query(number).id) is not None for number in answered)
            store.reap()
            assert store.counts().leased == 0


def _acknowledging(directory: Path, writer: int, fresh: int) -> int:
    """Admit and answer for ever, and say what is durable."""
    with Store.open(directory) as store, store.register() as owner:
        while True:
            batch = list(range(fresh, fresh + 7))
            fresh += 7
            store.ingest([query(number) for number in batch])
            os.write(writer, f"admitted {' '.join(map(str, batch))}\n".encode())
            leases = store.claim(owner.name, LEASE_S, 5)
            store.complete([(lease, sat(lease)) for lease in leases])
            numbers = [_number(lease.query) for lease in leases]
            os.write(writer, f"answered {' '.join(map(str, numbers))}\n".encode())


def _number(asked: Query) -> int:
    """The number that :func:`query` was given."""
    return int(asked.target.split("(_ bv")[1].split()[0])


def _note(line: str, admitted: set[int], answered: set[int]) -> None:
    if line.endswith("\n"):  # a line that was cut acknowledges nothing
        what, *numbers = line.split()
        (admitted if what == "admitted" else answered).update(map(int, numbers))
