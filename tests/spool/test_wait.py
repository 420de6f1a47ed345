from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from smtspool.spool import Spool, waiting
from tests.spool.conftest import DEADLINE_S
from tests.spool.support import Ledger, envelope, publish, scan


def descriptors_and_threads() -> tuple[int, int]:
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


@pytest.fixture
def nothing_leaks() -> Iterator[None]:
    before = descriptors_and_threads()
    yield
    deadline = time.monotonic() + DEADLINE_S
    while descriptors_and_threads() != before:
        assert time.monotonic() < deadline, (descriptors_and_threads(), before)
        os.sched_yield()


@pytest.fixture(params=["notified", "polling", "watch limit reached"])
def way_to_notice(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    def no_watch(path: str) -> int:
        raise OSError(28, "No space left on device")  # what a used-up limit is called

    if request.param == "polling":  # a network file system: nothing is ever notified
        monkeypatch.setattr(waiting, "_watch", lambda path, watch=waiting._watch: watch(str(tmp_path)))
    elif request.param == "watch limit reached":
        monkeypatch.setattr(waiting, "_watch", no_watch)
    return str(request.param)


def at_rest(spool: Spool, ledger: Ledger) -> None:
    scan(spool, ledger)
    scan(spool, ledger)


@pytest.mark.usefixtures("way_to_notice", "nothing_leaks")
class TestWait:
    def test_a_file_published_meanwhile_ends_it(self, root: Path, spool: Spool, ledger: Ledger) -> None:
        at_rest(spool, ledger)
        producer = threading.Timer(0.05, publish, (root, "a.json", envelope(1)))
        producer.start()
        assert spool.wait(DEADLINE_S, threading.Event())
        producer.join()
        assert scan(spool, ledger).accepted == 1

    def test_it_ends_at_its_timeout(self, spool: Spool, ledger: Ledger) -> None:
        at_rest(spool, ledger)
        begin = time.monotonic()
        assert not spool.wait(0.2, threading.Event())
        assert time.monotonic() - begin >= 0.2

    def test_it_ends_when_told_to_stop(self, spool: Spool, ledger: Ledger) -> None:
        at_rest(spool, ledger)
        stop = threading.Event()
        stopper = threading.Timer(0.05, stop.set)
        stopper.start()
        assert not spool.wait(DEADLINE_S, stop)
        stopper.join()

    def test_a_file_published_between_scan_and_wait_is_not_missed(
        self, root: Path, spool: Spool, ledger: Ledger
    ) -> None:
        at_rest(spool, ledger)
        publish(root, "a.json", envelope(1))
        assert spool.wait(DEADLINE_S, threading.Event())


def test_an_unfinished_scan_is_nothing_to_wait_after(root: Path, spool: Spool, ledger: Ledger) -> None:
    for number in range(3):
        publish(root, f"{number}.json", envelope(number))
    assert not scan(spool, ledger, budget_s=0.0).finished
    assert spool.wait(0.0, threading.Event())


@pytest.mark.usefixtures("nothing_leaks")
def test_many_waits_leak_nothing(spool: Spool, ledger: Ledger) -> None:
    at_rest(spool, ledger)
    for _ in range(100):
        assert not spool.wait(0.001, threading.Event())
