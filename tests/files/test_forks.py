"""What is kept from children is nothing to them, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

from smtspool import forks
from tests.spool.support import in_child


def test_a_child_has_the_number_and_not_the_file() -> None:
    reader, writer = os.pipe()
    other = os.dup(writer)
    forks.keep(writer)

    null = Path(os.devnull).stat().st_rdev

    def work() -> None:
        assert os.fstat(writer).st_rdev == null
        assert not os.get_inheritable(writer)
        assert os.fstat(other).st_rdev != null

    before = sorted(os.listdir("/proc/self/fd"))
    in_child(work)
    assert sorted(os.listdir("/proc/self/fd")) == before
    forks.give_up(writer)
    in_child(lambda: os.write(writer, b"ours") and None)
    assert os.read(reader, 4) == b"ours"
    for fd in (reader, writer, other):
        os.close(fd)


def test_a_pipe_ends_with_its_owner_though_a_child_lives() -> None:
    reader, writer = os.pipe()
    waits, lives = os.pipe()
    forks.keep(writer)
    child = os.fork()
    if child == 0:
        os.close(lives)
        os.read(waits, 1)
        os._exit(0)
    forks.give_up(writer)
    os.close(writer)
    try:
        assert os.read(reader, 1) == b"", "or it waits for ever"
    finally:
        os.close(lives)
        os.waitpid(child, 0)
        for fd in (reader, waits):
            os.close(fd)
