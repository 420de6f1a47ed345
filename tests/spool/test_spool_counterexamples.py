"""F364 §5: each row of its table of counterexamples, with real threads, processes, signals and files."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smtspool.actions import Step, observed_by
from smtspool.errors import LockRefused
from smtspool.files import Identity
from smtspool.query import QueryFile, parse_file
from smtspool.spool import Outcome, Spool
from tests.spool.conftest import DEADLINE_S
from tests.spool.support import BROKEN, Ledger, assert_in_order, envelope, files, publish, scan, sidecar

Consumer = Callable[..., "subprocess.Popen[str]"]


class Rendezvous:
    """Holds the first thread that passes until a second one is through."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.proceed = threading.Event()

    def hold_first(self) -> None:
        if not self.arrived.is_set():
            self.arrived.set()
            assert self.proceed.wait(DEADLINE_S)


def old_scan(root: Path, ingest: Callable[[Path], object]) -> tuple[int, int]:
    """The algorithm before F364, deliberately: no lock, and every failure is blamed on the file."""
    imported = failed = 0
    for path in sorted((root / "incoming").glob("*.json")):
        try:
            ingest(path)
            path.rename(root / "accepted" / path.name)
            imported += 1
        except (ValueError, OSError) as error:
            (root / "rejected" / f"{path.name}.error").write_text(f"ValueError: {error}")
            path.rename(root / "rejected" / path.name)
            failed += 1
    return imported, failed


def test_the_old_algorithm_ingests_twice_and_leaves_a_misleading_sidecar(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    publish(root, "query.json", envelope(1))
    meeting = Rendezvous()

    def ingest(path: Path) -> None:
        queries = parse_file(path.name, path.read_bytes())
        ledger.commit([QueryFile(path.name, b"", 0, 0.0, queries)])
        meeting.hold_first()

    with ThreadPoolExecutor() as threads:
        first = threads.submit(old_scan, root, ingest)
        assert meeting.arrived.wait(DEADLINE_S)
        second = threads.submit(old_scan, root, ingest)
        assert second.result(DEADLINE_S) == (1, 0)
        meeting.proceed.set()
        assert isinstance(first.exception(DEADLINE_S), FileNotFoundError)

    assert ledger.calls == 2
    assert files(root)["rejected"] == {"query.json.error"}


def test_the_same_schedule_ingests_once_and_the_second_consumer_is_told_busy(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    publish(root, "query.json", envelope(1))
    meeting = Rendezvous()
    ledger.inside = meeting.hold_first

    with ThreadPoolExecutor() as threads, Spool.open(root) as other:
        first = threads.submit(scan, spool, ledger)
        assert meeting.arrived.wait(DEADLINE_S)
        second = threads.submit(scan, other, ledger, consumer="c2")
        assert second.result(DEADLINE_S).outcome is Outcome.BUSY
        meeting.proceed.set()
        assert first.result(DEADLINE_S).accepted == 1

    assert ledger.calls == 1
    assert files(root) == {"incoming": set(), "accepted": {"query.json"}, "rejected": set()}


def test_a_busy_lock_has_no_side_effect(root: Path, spool: Spool, ledger: Ledger, consumer: Consumer) -> None:
    publish(root, "bad.json", BROKEN)
    publish(root, "query.json", envelope(1))
    holder = consumer("--pause", "List")
    assert holder.stdout is not None and holder.stdout.readline() == "paused\n"
    steps = []

    class Recorder:
        def before(self, step: Step) -> None: ...

        def after(self, step: Step) -> None:
            steps.append((step.name, step.outcome))

    before = {path: Identity.of(path.lstat()) for path in root.rglob("*")}
    with observed_by(Recorder()):
        report = scan(spool, ledger)

    assert report.outcome is Outcome.BUSY
    assert report.backlog is None
    assert steps == [("TryLock", "Busy")]
    assert ledger.calls == 0
    assert {path: Identity.of(path.lstat()) for path in root.rglob("*")} == before


def test_the_lock_of_a_killed_consumer_is_taken_over(
    root: Path, spool: Spool, ledger: Ledger, consumer: Consumer
) -> None:
    publish(root, "query.json", envelope(1))
    holder = consumer("--pause", "List")
    assert holder.stdout is not None and holder.stdout.readline() == "paused\n"
    assert scan(spool, ledger).outcome is Outcome.BUSY

    holder.send_signal(signal.SIGKILL)
    assert holder.wait(DEADLINE_S) == -signal.SIGKILL

    report = scan(spool, ledger)
    assert (report.accepted, report.rejected, report.created) == (1, 0, 1)
    assert report.lock_wait_ns > 0
    assert_in_order(root)


def test_links_and_fifos_are_neither_followed_nor_waited_for(
    root: Path, spool: Spool, ledger: Ledger, tmp_path: Path
) -> None:
    target = tmp_path / "outside.json"
    target.write_bytes(envelope(2))
    publish(root, "good.json", envelope(1))
    (root / "incoming" / "link.json").symlink_to(target)
    os.mkfifo(root / "incoming" / "fifo.json")

    report = scan(spool, ledger)

    assert (report.accepted, report.rejected, ledger.stored) == (1, 2, 1)
    assert (root / "rejected" / "link.json").is_symlink()
    assert (root / "rejected" / "fifo.json").is_fifo()
    assert target.read_bytes() == envelope(2)
    assert (sidecar(root, "link.json")["reason"], sidecar(root, "fifo.json")["reason"]) == (
        "symlink",
        "not-regular",
    )


def test_a_path_that_changes_its_inode_while_it_is_read_stores_nothing(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    publish(root, "query.json", envelope(1))

    class ReplaceBeforeVerify:
        def before(self, step: Step) -> None:
            if step.name == "Verify":
                publish(root, "query.json", envelope(2))

        def after(self, step: Step) -> None: ...

    with observed_by(ReplaceBeforeVerify()):
        report = scan(spool, ledger)

    assert (report.deferred, report.accepted, report.rejected, report.backlog) == (1, 0, 0, 1)
    assert ledger.calls == 0
    assert files(root) == {"incoming": {"query.json"}, "accepted": set(), "rejected": set()}


@pytest.mark.parametrize("kind", ["symlink", "dangling symlink", "fifo", "directory"])
def test_a_lock_that_is_not_a_file_is_refused_with_inputs_untouched(
    root: Path, spool: Spool, ledger: Ledger, tmp_path: Path, kind: str
) -> None:
    publish(root, "query.json", envelope(1))
    target = tmp_path / "target"
    lock = root / ".ingest.lock"
    if kind == "fifo":
        os.mkfifo(lock)
    elif kind == "directory":
        lock.mkdir()
    else:
        lock.symlink_to(target)
        if kind == "symlink":
            target.write_text("mine")

    with pytest.raises(LockRefused, match=r"\.ingest\.lock is unusable"):
        scan(spool, ledger)

    assert ledger.calls == 0
    assert files(root) == {"incoming": {"query.json"}, "accepted": set(), "rejected": set()}
    assert target.exists() == (kind == "symlink")
    if kind == "symlink":
        assert target.read_text() == "mine"


def test_an_interrupt_between_commit_and_move_is_recovered_by_replay(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    publish(root, "query.json", envelope(1))

    def commit(files: Sequence[QueryFile]) -> list[bool]:
        ledger.commit(files)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spool.scan(commit, consumer="c1", budget_s=1e9)
    assert files(root)["incoming"] == {"query.json"}

    report = scan(spool, ledger)
    assert (report.accepted, report.created, report.replayed, ledger.stored) == (1, 0, 1, 1)
