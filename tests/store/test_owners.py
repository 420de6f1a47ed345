"""Owners: the kernel says who is dead."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from smtspool.errors import InfrastructureError
from smtspool.store import Store, owners
from tests.store.support import UNSAT, in_child, query

PROGRAM = Path(__file__).with_name("owner_process.py")
DEADLINE_S = 30
Start = Callable[[], tuple["subprocess.Popen[str]", str]]


@pytest.fixture
def store(directory: Path) -> Iterator[Store]:
    with Store.open(directory, create=True) as opened:
        opened.ingest([query(n) for n in range(3)])
        yield opened
    assert Store.fsck(directory) == []


@pytest.fixture
def start(store: Store) -> Iterator[Start]:
    """Starts a process that leases all there is; gives the process and its owner's name."""
    with ExitStack() as stack:

        def run() -> tuple[subprocess.Popen[str], str]:
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, str(PROGRAM), str(store.directory)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            name, leased = process.stdout.readline().split()
            assert leased == "3"
            return process, name

        yield run


def lock_files(store: Store) -> list[str]:
    return sorted(path.name for path in (store.directory / "owners").iterdir())


def test_the_leases_of_a_killed_process_are_put_back_at_once(store: Store, start: Start) -> None:
    process, _ = start()
    assert store.reap() == 0
    process.kill()
    process.wait(DEADLINE_S)
    assert store.reap() == 3
    assert store.counts().pending == 3
    assert lock_files(store) == []
    assert [lease.token for lease in store.claim("w", 10.0, 3)] == [2, 2, 2]


def test_a_stopped_process_is_not_dead(store: Store, start: Start) -> None:
    process, _ = start()
    process.send_signal(signal.SIGSTOP)
    assert store.reap() == 0
    assert store.counts().leased == 3


def test_a_reused_pid_does_not_protect_the_dead(store: Store, start: Start) -> None:
    process, name = start()
    process.kill()
    process.wait(DEADLINE_S)
    with closing(sqlite3.connect(store.directory / "index.sqlite3")) as other, other:
        # As after a reboot of a container: the same host, boot and pid belong to somebody alive, us.
        host, boot, _, token = name.split(":")
        reused = f"{host}:{boot}:{os.getpid()}:{token}"
        other.execute("UPDATE owners SET name = ?, pid = ?", (reused, os.getpid()))
        other.execute("UPDATE queries SET owner = ?", (reused,))
    assert store.reap() == 3


def test_a_restarted_process_does_not_protect_what_its_predecessor_held(store: Store, start: Start) -> None:
    first, _ = start()
    first.kill()
    first.wait(DEADLINE_S)
    with store.register() as successor:
        assert store.claim(successor.name, 10.0, 3) == []
        assert store.reap() == 3
        assert len(store.claim(successor.name, 10.0, 3)) == 3


def test_a_killed_reaper_leaves_nothing_in_the_way(store: Store, start: Start) -> None:
    process, name = start()
    process.kill()
    process.wait(DEADLINE_S)
    lock = store.directory / "owners" / f"{name.rsplit(':', 1)[1]}.lock"
    reaper = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); "
            "print(flush=True); sys.stdin.read()",
            str(lock),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with reaper:
        assert reaper.stdout is not None
        reaper.stdout.readline()
        assert store.reap() == 0  # another reaper is at it
        reaper.kill()
    assert store.reap() == 3


def test_a_lost_lock_file_means_a_dead_owner(store: Store, start: Start) -> None:
    process, name = start()
    process.kill()
    process.wait(DEADLINE_S)
    (store.directory / "owners" / f"{name.rsplit(':', 1)[1]}.lock").unlink()
    assert store.reap() == 3


def test_owners_of_an_earlier_boot_of_this_host_are_dead(store: Store, start: Start) -> None:
    start()
    with closing(sqlite3.connect(store.directory / "index.sqlite3")) as other, other:
        other.execute("UPDATE owners SET boot = 'earlier'")
    assert store.reap() == 3


def test_nothing_is_concluded_about_other_hosts(store: Store, start: Start) -> None:
    process, _ = start()
    with closing(sqlite3.connect(store.directory / "index.sqlite3")) as other, other:
        other.execute(
            "UPDATE owners SET boot = 'other', host = 'other', name = 'other:other:' || pid || ':' || token"
        )
        other.execute("UPDATE queries SET owner = (SELECT name FROM owners)")
    process.kill()
    process.wait(DEADLINE_S)
    assert store.reap() == 0


def test_a_clean_end_puts_leases_back_and_removes_the_lock(store: Store) -> None:
    with store.register() as owner:
        assert len(store.claim(owner.name, 3600.0, 3)) == 3
        assert len(lock_files(store)) == 1
    assert store.counts().pending == 3
    assert lock_files(store) == []
    owner.close()


def test_an_owner_that_ends_in_order_meanwhile_is_not_counted_as_dead(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = owners.boot_id

    def end_first() -> str:
        owner.close()
        return boot()

    with store.register() as owner:
        store.claim(owner.name, 3600.0, 3)
        monkeypatch.setattr(owners, "boot_id", end_first)  # asked when the owners have been listed
        assert store.reap() == 0
    assert store.counts().pending == 3
    assert "owners.reaped" not in store.counters()


def test_a_forked_child_that_closes_it_does_not_make_its_parent_look_dead(store: Store) -> None:
    def close() -> int:
        owner.close()
        return 0

    with store.register() as owner:
        store.claim(owner.name, 3600.0, 3)
        assert in_child(close) == 0
        assert len(lock_files(store)) == 1
        assert store.reap() == 0


def test_a_reaper_that_is_refused_by_the_store_lets_go_of_the_dead(store: Store, start: Start) -> None:
    process, _ = start()
    process.kill()
    process.wait(DEADLINE_S)
    with Store.open(store.directory, busy_timeout_s=0.01) as impatient:
        with closing(sqlite3.connect(store.directory / "index.sqlite3", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(InfrastructureError, match="locked"):
                impatient.reap()
        assert store.reap() == 3


@pytest.mark.parametrize("ends", [True, False], ids=["that removes the lock file", "that stops"])
def test_who_registers_does_not_wait_for_a_reaper(
    store: Store, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    flock = fcntl.flock
    reapers: list[int] = []

    def meet_a_reaper(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        if ends:
            store.reap()
        else:
            reapers.append(os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR))
            flock(reapers[0], fcntl.LOCK_EX)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", meet_a_reaper)
    with store.register() as owner:
        for reaper in reapers:
            os.close(reaper)
        assert store.reap() == 0
        assert lock_files(store) == [f"{owner.name.rsplit(':', 1)[1]}.lock"]


def test_leftover_lock_files_are_swept_but_not_held_ones(store: Store) -> None:
    folder = store.directory / "owners"
    (folder / "dead.lock").touch()
    with (folder / "registering.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        store.reap()
        assert lock_files(store) == ["registering.lock"]
    store.reap()
    assert lock_files(store) == []


def test_what_is_no_lock_file_is_in_nobodys_way(store: Store, directory: Path) -> None:
    folder, link, dead = (directory / "owners" / f"{name}.lock" for name in ("a", "b", "c"))
    folder.mkdir()
    link.symlink_to("elsewhere")
    dead.touch()
    assert store.reap() == 0
    assert not dead.exists()
    folder.rmdir()
    link.unlink()


def test_a_lock_that_may_not_be_read_says_nothing_and_is_in_nobodys_way(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with tempfile.TemporaryDirectory() as name:  # not below tmp_path, which only its owner may enter
        directory = Path(name) / "store"
        with Store.open(directory, create=True) as store:
            store.ingest([query(n) for n in range(2)])
            store.reap()  # has all modules loaded, which the child below may no longer read
        anothers = die_with_a_lease(directory)
        die_with_a_lease(directory)
        for path in (Path(name), *Path(name).rglob("*")):
            path.chmod(0o777)
        anothers.chmod(0)

        def look() -> int:
            if os.geteuid() == 0:
                os.setuid(65534)
            with Store.open(directory) as mine:
                assert (mine.reap(), mine.reap()) == (1, 0)
                assert mine.counts().leased == 1
            assert caplog.text.count(f"remove {anothers} if that service is gone") == 1
            return 0

        assert in_child(look) == 0
        anothers.unlink()
        with Store.open(directory) as store:
            assert store.reap() == 1


def die_with_a_lease(directory: Path) -> Path:
    """The lock file of an owner who had one query when it died."""
    before = set((directory / "owners").iterdir())

    def die() -> int:
        store = Store.open(directory)
        return 0 if store.claim(store.register().name, 3600.0, 1) else 1

    assert in_child(die) == 0
    (lock,) = set((directory / "owners").iterdir()) - before
    return lock


def test_a_living_owners_answers_are_kept(store: Store) -> None:
    with store.register() as owner:
        leases = store.claim(owner.name, 3600.0, 3)
        assert store.reap() == 0
        assert store.complete([(lease, UNSAT) for lease in leases]) == [True] * 3
