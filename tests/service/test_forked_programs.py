"""A program that uses the library may fork: its child has no lock, helper or database of the parent's."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from smtspool.service import Campaign
from smtspool.store import Store
from tests.service.support import ODD_ENGINE, PATIENCE_S, equation, submit, until
from tests.solve.tracks import descendants, gone

PROGRAM = Path(__file__).with_name("forking_program.py")


@pytest.fixture
def forked(campaign: Campaign) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The program, which has a query that is never answered, and the pid of its child."""
    submit(campaign, a=equation(1, name="slow"))
    with subprocess.Popen(
        [sys.executable, PROGRAM, campaign.root, ODD_ENGINE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None and program.stdin is not None
        until(lambda: solving(program), "the engine at work")
        print(file=program.stdin, flush=True)
        child = int(program.stdout.readline())
        assert program.stdout.readline() == "left in order\n"
        yield program, child
        program.kill()
        program.stdin.close()


def solving(program: subprocess.Popen[str]) -> bool:
    """Whether the command of the engine is at work."""
    for pid in descendants(program.pid):
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\0"):
                return True
    return False


def test_a_child_that_ends_the_block_ends_nothing_of_its_parents(
    campaign: Campaign, forked: tuple[subprocess.Popen[str], int]
) -> None:
    program, _ = forked
    assert program.poll() is None
    with Store.open(campaign.store) as store:
        assert store.reap() == 0
        assert store.counts().leased == 1


def test_a_parent_that_is_killed_is_dead_though_its_child_lives(
    campaign: Campaign, forked: tuple[subprocess.Popen[str], int]
) -> None:
    program, child = forked
    helpers = descendants(program.pid) - {child}
    assert helpers
    program.kill()
    program.wait()
    until(lambda: all(map(gone, helpers)), "the end of all helpers")
    with Store.open(campaign.store) as store:
        assert store.reap() == 1
        assert store.counts().pending == 1
    assert not gone(child)
    os.kill(child, signal.SIGKILL)


HALF_WRITTEN = """
    import os, sys
    from pathlib import Path
    from smtspool.store import Store

    with Store.open(Path(sys.argv[1]), create=True) as store:
        with store._db.write():
            connection = store._db.connection
            connection.execute("PRAGMA cache_size = 1")  # so that pages go to the journal before the end
            connection.execute("CREATE TABLE much (number INTEGER PRIMARY KEY, text BLOB)")
            for number in range(500):
                connection.execute("INSERT INTO much VALUES (?, randomblob(4000))", (number,))
            if os.fork() == 0:
                sys.exit(0)  # leaves every block, and then the interpreter frees what it has
            assert os.wait()[1] == 0
            for number in range(500, 600):
                connection.execute("INSERT INTO much VALUES (?, randomblob(4000))", (number,))
"""


def test_a_child_that_ends_rolls_back_nothing_of_its_parents(tmp_path: Path) -> None:
    program = [sys.executable, "-c", textwrap.dedent(HALF_WRITTEN), tmp_path]
    subprocess.run(program, check=True, timeout=PATIENCE_S)
    with closing(sqlite3.connect(tmp_path / "index.sqlite3")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*) FROM much").fetchone() == (600,)
