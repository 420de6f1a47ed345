"""F364 §4: one holder, verified, released by the kernel. Takeover and refusal by kind: tests/spool."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from smtspool.errors import LockRefused, MisuseError
from smtspool.files import Directory, FileLock

NAME = ".ingest.lock"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Directory]:
    with Directory.open(tmp_path) as opened:
        yield opened


def test_two_holders_exclude_each_other_in_one_process(here: Directory) -> None:
    with FileLock(here, NAME) as first, FileLock(here, NAME) as second:
        assert first.try_acquire()
        assert not second.try_acquire()
        first.release()
        assert second.try_acquire()


def test_a_holder_cannot_take_it_twice_and_still_releases_it(here: Directory) -> None:
    with FileLock(here, NAME) as lock, FileLock(here, NAME) as other:
        assert lock.try_acquire()
        with pytest.raises(MisuseError, match="held already"):
            lock.try_acquire()
        lock.release()
        assert other.try_acquire()


def test_the_file_is_private_empty_and_stays(tmp_path: Path, here: Directory) -> None:
    with FileLock(here, NAME) as lock:
        assert lock.try_acquire()
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / NAME).read_bytes() == b""


def test_what_stands_in_the_file_is_not_believed(tmp_path: Path, here: Directory) -> None:
    (tmp_path / NAME).write_text(str(os.getpid()))
    with FileLock(here, NAME) as lock:
        assert lock.try_acquire()
    (tmp_path / NAME).write_text("1")
    with FileLock(here, NAME) as lock:
        assert lock.try_acquire()


@pytest.mark.parametrize("moment", ["before", "while"])
def test_a_lock_file_replaced_while_it_is_opened_is_refused(
    tmp_path: Path, here: Directory, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def replace() -> None:
        (tmp_path / "new").touch()
        (tmp_path / "new").rename(tmp_path / NAME)

    if moment == "before":  # between open and the first check
        open_file = Directory.open_file

        def open_and_replace(self: Directory, name: str, flags: int, mode: int = 0o666) -> int:
            fd = open_file(self, name, flags, mode)
            replace()
            return fd

        monkeypatch.setattr(Directory, "open_file", open_and_replace)
    else:  # between the check and the flock
        flock = fcntl.flock

        def replace_and_flock(fd: int, operation: int) -> None:
            if operation & fcntl.LOCK_EX:
                replace()
            flock(fd, operation)

        monkeypatch.setattr(fcntl, "flock", replace_and_flock)
    with FileLock(here, NAME) as lock, pytest.raises(LockRefused, match="replaced"):
        lock.try_acquire()


def test_a_child_forked_meanwhile_does_not_keep_the_lock(here: Directory) -> None:
    with FileLock(here, NAME) as lock, FileLock(here, NAME) as next_holder:
        assert lock.try_acquire()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)  # lives, with all descriptors, until the parent closes its end
            os._exit(0)
        os.close(reader)
        try:
            lock.release()
            assert next_holder.try_acquire()
        finally:
            os.close(writer)
            os.waitpid(child, 0)


def test_a_program_started_meanwhile_does_not_inherit_the_lock(here: Directory) -> None:
    with FileLock(here, NAME) as lock:
        assert lock.try_acquire()
        code = "import os; print(*(os.path.realpath(f'/proc/self/fd/{fd}') for fd in range(64)))"
        child = subprocess.run(
            [sys.executable, "-c", code], close_fds=False, stdout=subprocess.PIPE, text=True, check=True
        )
    assert NAME not in child.stdout


def test_busy_and_refused_leak_no_descriptor(tmp_path: Path, here: Directory) -> None:
    with FileLock(here, NAME) as holder:
        assert holder.try_acquire()
        os.mkfifo(tmp_path / "fifo")
        before = len(os.listdir("/proc/self/fd"))
        other = FileLock(here, NAME)
        assert not other.try_acquire()
        with pytest.raises(LockRefused):
            FileLock(here, "fifo").try_acquire()
        assert len(os.listdir("/proc/self/fd")) == before
