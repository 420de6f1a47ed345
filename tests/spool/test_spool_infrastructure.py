"""F365: what the machine fails at ends the scan, keeps every unmoved file, frees the lock, and is retried."""

from __future__ import annotations

import errno
import os
import resource
import signal
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from smtspool.actions import Step, observed_by
from smtspool.errors import InfrastructureError
from smtspool.files import Directory, Draft, sync_drafts
from smtspool.query import Limits, Query
from smtspool.spool import ScanReport, Spool
from smtspool.spool.quarantine import Quarantine, Rejection
from tests.spool.support import BROKEN, Ledger, assert_in_order, envelope, files, in_child, publish, scan


def assert_next_scan_converges(root: Path, spool: Spool, ledger: Ledger) -> None:
    scan(spool, ledger)
    assert ledger.stored == 2
    assert files(root)["accepted"] == {"a.json", "c.json"}
    assert files(root)["rejected"] == {"b.json", "b.json.error"}
    assert_in_order(root)


@pytest.fixture(autouse=True)
def filled(root: Path, spool: Spool) -> None:
    publish(root, "a.json", envelope(1))
    publish(root, "b.json", BROKEN)
    publish(root, "c.json", envelope(2))


@pytest.mark.parametrize(
    "failure", [sqlite3.OperationalError("database is locked"), RuntimeError("store"), KeyboardInterrupt()]
)
def test_what_commit_raises_arrives_as_it_is_and_nothing_was_moved(
    root: Path, spool: Spool, ledger: Ledger, failure: BaseException
) -> None:
    def commit(queries: Sequence[Query]) -> list[bool]:
        raise failure

    with pytest.raises(type(failure)) as caught:
        spool.scan(commit, consumer="c1", budget_s=1e9)
    assert caught.value is failure
    assert files(root) == {"incoming": {"a.json", "b.json", "c.json"}, "accepted": set(), "rejected": set()}
    assert_next_scan_converges(root, spool, ledger)


def test_a_full_disk_in_commit_arrives_with_its_cause(root: Path, spool: Spool, ledger: Ledger) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ledger.inside = full
    with pytest.raises(InfrastructureError, match="No space left") as caught:
        scan(spool, ledger)
    assert isinstance(caught.value.__cause__, OSError)
    assert ledger.stored == 0
    ledger.inside = lambda: None
    assert_next_scan_converges(root, spool, ledger)


@pytest.mark.parametrize("step", ["List", "Open", "Verify", "Commit", "WriteSidecar", "Move"])
@pytest.mark.parametrize("failure", [OSError(errno.EIO, "failing disk"), KeyboardInterrupt(), MemoryError()])
def test_a_failure_at_any_step_releases_the_lock_and_loses_nothing(
    root: Path, spool: Spool, ledger: Ledger, step: str, failure: BaseException
) -> None:
    class FailAt:
        def before(self, taken: Step) -> None:
            if taken.name == step:
                raise failure

        def after(self, taken: Step) -> None: ...

    expected = InfrastructureError if isinstance(failure, OSError) else type(failure)
    with observed_by(FailAt()), pytest.raises(expected):
        scan(spool, ledger)
    assert not files(root)["accepted"] or ledger.stored == 2
    assert_next_scan_converges(root, spool, ledger)


@pytest.mark.parametrize("spare", range(8))
def test_running_out_of_descriptors_is_survived(
    root: Path, spool: Spool, ledger: Ledger, tmp_path: Path, spare: int
) -> None:
    def work() -> None:
        with Ledger(tmp_path / "ledger.sqlite") as mine, Spool.open(root) as opened:
            used = len(os.listdir("/proc/self/fd")) - 1
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            lowest_free = os.dup(0)
            os.close(lowest_free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(lowest_free, used) + spare, hard))
            try:
                scan(opened, mine)
            except (InfrastructureError, sqlite3.OperationalError):
                assert spare < 7
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert len(os.listdir("/proc/self/fd")) - 1 == used
            scan(opened, mine)

    in_child(work)
    assert_in_order(root)
    assert ledger.stored == 2


def test_a_disk_too_full_for_a_sidecar_keeps_the_file(root: Path, spool: Spool, ledger: Ledger) -> None:
    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
        with Spool.open(root) as opened, pytest.raises(InfrastructureError, match="File too large"):
            opened.scan(lambda queries: [True] * len(queries), consumer="child", budget_s=1e9)

    in_child(work)
    assert files(root)["incoming"] == {"a.json", "b.json", "c.json"}
    assert files(root)["rejected"] == set()
    assert_next_scan_converges(root, spool, ledger)


@pytest.mark.parametrize("name", ["incoming", "accepted", "rejected"])
def test_a_folder_without_write_permission_ends_the_scan_and_not_the_queries(
    root: Path, spool: Spool, ledger: Ledger, name: str
) -> None:
    def work() -> None:
        if os.geteuid() == 0:
            os.setresuid(65534, 65534, 65534)
        with pytest.raises(InfrastructureError, match="Permission denied"):
            spool.scan(lambda queries: [True] * len(queries), consumer="child", budget_s=1e9)

    for other in ("incoming", "accepted", "rejected"):
        (root / other).chmod(0o555 if other == name else 0o777)
    (root / ".ingest.lock").touch()
    (root / ".ingest.lock").chmod(0o666)
    in_child(work)
    for other in ("incoming", "accepted", "rejected"):
        (root / other).chmod(0o777)
    assert {"a.json", "b.json", "c.json"} == {
        entry for names in files(root).values() for entry in names if not entry.endswith(".error")
    }
    assert_next_scan_converges(root, spool, ledger)


@pytest.fixture
def stuck(root: Path, spool: Spool) -> Callable[[Callable[[int], None]], None]:
    """Run work in a process that is not root, with a directory in incoming/ that it may not move: Linux does
    that only for who may write to the directory itself. The work is given the descriptor of incoming/."""
    for name in ("incoming", "accepted", "rejected"):
        (root / name).chmod(0o777)
    (root / ".ingest.lock").touch()
    (root / ".ingest.lock").chmod(0o666)
    incoming = os.open(root / "incoming", os.O_RDONLY)  # nobody may come here by its path

    def run(work: Callable[[int], None]) -> None:
        def unprivileged() -> None:
            if os.geteuid() == 0:
                os.setresuid(65534, 65534, 65534)
            os.mkdir("aa.json", 0o555, dir_fd=incoming)
            work(incoming)

        try:
            in_child(unprivileged)
        finally:
            os.close(incoming)

    return run


def passes(spool: Spool, number: int) -> list[ScanReport]:
    scans = partial(spool.scan, lambda queries: [True] * len(queries), consumer="child", budget_s=1e9)
    return [scans() for _ in range(number)]


def test_an_entry_that_cannot_be_moved_stops_nothing_else(
    root: Path, spool: Spool, stuck: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    def work(incoming: int) -> None:
        first, *later = passes(spool, 3)
        assert (first.accepted, first.rejected, first.deferred, first.backlog) == (2, 1, 1, 1)
        for report in later:
            assert (report.accepted, report.rejected, report.deferred, report.backlog) == (0, 0, 1, 1)
        assert caplog.text.count("aa.json") == 1, "it is told once"

    stuck(work)
    assert files(root) == {
        "incoming": {"aa.json"},
        "accepted": {"a.json", "c.json"},
        "rejected": {"b.json", "b.json.error"},
    }


def test_an_entry_that_could_not_be_moved_is_tried_again_when_it_has_changed(
    root: Path, spool: Spool, stuck: Callable[..., None]
) -> None:
    def work(incoming: int) -> None:
        sidecars: list[object] = []

        class Sidecars:
            def before(self, step: Step) -> None: ...

            def after(self, step: Step) -> None:
                sidecars.extend([step.params["file"]] if step.name == "WriteSidecar" else [])

        with observed_by(Sidecars()):
            passes(spool, 3)
            assert sidecars == ["aa.json", "b.json"], "not at every pass"
            os.chmod("aa.json", 0o755, dir_fd=incoming)
            (report,) = passes(spool, 1)
            assert (report.rejected, report.deferred, report.backlog) == (1, 0, 0)

    stuck(work)
    assert_in_order(root)


def test_the_sidecar_that_a_dead_consumer_left_for_an_entry_that_stays_is_removed(
    root: Path, spool: Spool, stuck: Callable[..., None]
) -> None:
    class Dies:
        def before(self, step: Step) -> None:
            if step.name == "Move":
                raise OSError(errno.EIO, "failing disk")

        def after(self, step: Step) -> None: ...

    def work(incoming: int) -> None:
        passes(spool, 1)
        with observed_by(Dies()), pytest.raises(InfrastructureError):
            passes(Spool(spool._root, Limits()), 1)
        with spool._root.child("rejected") as rejected:
            assert rejected.exists("aa.json.error")
        passes(spool, 1)

    stuck(work)
    assert files(root)["rejected"] == {"b.json", "b.json.error"}


def test_a_folder_that_lets_nothing_go_is_not_the_fault_of_what_is_in_it(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    def work() -> None:
        if os.geteuid() == 0:
            os.setresuid(65534, 65534, 65534)
        with pytest.raises(InfrastructureError, match="Permission denied"):
            passes(spool, 1)

    for good in ("a.json", "c.json"):
        (root / "incoming" / good).rename(root / good)
    (root / "rejected").chmod(0o777)
    (root / ".ingest.lock").touch()
    (root / ".ingest.lock").chmod(0o666)
    (root / "incoming").chmod(0o555)
    in_child(work)
    (root / "incoming").chmod(0o777)
    for good in ("a.json", "c.json"):
        (root / good).rename(root / "incoming" / good)
    assert_next_scan_converges(root, spool, ledger)


def test_what_came_along_and_cannot_be_put_back_is_not_taken_for_stuck(
    root: Path, spool: Spool, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Directory.rename

    def replace_then_rename(self: Directory, name: str, to: Directory, new_name: str) -> None:
        if name == "b.json" and Path(to.path).name == "rejected":
            publish(root, "b.json", envelope(3))
        elif name == "b.json":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        rename(self, name, to, new_name)

    for good in ("a.json", "c.json"):
        (root / "incoming" / good).unlink()
    monkeypatch.setattr(Directory, "rename", replace_then_rename)
    with pytest.raises(InfrastructureError, match="Permission denied"):
        scan(spool, ledger)
    assert files(root)["rejected"] == {"b.json", "b.json.error"}


def test_what_could_not_be_moved_is_forgotten_once_it_is_gone(
    root: Path, spool: Spool, stuck: Callable[..., None]
) -> None:
    def work(incoming: int) -> None:
        passes(spool, 1)
        assert list(spool._memory.stuck) == ["aa.json"]
        os.rmdir("aa.json", dir_fd=incoming)
        passes(spool, 1)
        assert not spool._memory.stuck

    stuck(work)
    assert_in_order(root)


def test_signals_during_a_scan_disturb_nothing(root: Path, spool: Spool, ledger: Ledger) -> None:
    heard: list[int] = []
    previous = signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        number = 10
        while len(heard) < 20:
            number += 1
            publish(root, f"{number}.json", envelope(number))
            scan(spool, ledger)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert ledger.stored == number - 8
    assert_in_order(root)


def test_a_rename_that_the_file_system_lacks_is_done_by_link(
    root: Path, spool: Spool, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smtspool.files.directory._renameat2", None)
    (root / "incoming" / "d").mkdir()
    report = scan(spool, ledger)
    assert (report.accepted, report.rejected) == (2, 2)
    publish(root, "a.json", envelope(3))
    assert scan(spool, ledger).accepted == 1
    assert len(files(root)["accepted"]) == 3
    assert_in_order(root)


def test_a_file_that_turns_up_inside_the_rename_is_put_back_unread(
    root: Path, spool: Spool, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Directory.rename
    replaced = []

    def replace_then_rename(self: Directory, name: str, to: Directory, new_name: str) -> None:
        if name == "a.json" and not replaced:
            replaced.append(name)
            publish(root, "a.json", envelope(3))
        rename(self, name, to, new_name)

    monkeypatch.setattr(Directory, "rename", replace_then_rename)
    report = scan(spool, ledger)
    assert (report.accepted, report.deferred) == (1, 1)
    assert (root / "incoming" / "a.json").read_bytes() == envelope(3)
    scan(spool, ledger)
    assert ledger.stored == 3
    assert_in_order(root)


def test_each_stage_is_durable_before_the_next(
    root: Path, spool: Spool, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    sync = Directory.sync

    def recorded(self: Directory) -> None:
        order.append(f"sync {Path(self.path).name}")
        sync(self)

    class Stages:
        def before(self, step: Step) -> None: ...

        def after(self, step: Step) -> None:
            if step.name in ("Commit", "WriteSidecar", "Move") and order[-1:] != [step.name]:
                order.append(step.name)

    def recorded_drafts(drafts: Sequence[Draft]) -> None:
        if drafts:
            order.append("sync drafts")
        sync_drafts(drafts)

    monkeypatch.setattr(Directory, "sync", recorded)
    monkeypatch.setattr("smtspool.spool.admission.sync_drafts", recorded_drafts)
    publish(root, "a.json", envelope(1))
    publish(root, "b.json", BROKEN)
    with observed_by(Stages()):
        scan(spool, ledger)
        assert order == [
            "Commit", "sync drafts", "WriteSidecar", "sync rejected",
            "Move", "sync accepted", "sync rejected",
        ]  # fmt: skip
        order.clear()
        publish(root, "c.json", BROKEN)
        scan(spool, ledger)
        assert order == ["sync drafts", "WriteSidecar", "sync rejected", "Move", "sync rejected"]
        order.clear()
        publish(root, "d.json", envelope(2))
        scan(spool, ledger)
        assert order == ["Commit", "Move", "sync accepted"]


def test_what_was_rejected_before_a_failure_is_counted(
    root: Path, spool: Spool, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Directory.rename

    def fail_for_d(self: Directory, name: str, to: Directory, new_name: str) -> None:
        if name == "d.json":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(self, name, to, new_name)

    counted: list[int] = []
    with monkeypatch.context() as patched, pytest.raises(InfrastructureError, match="Input/output error"):
        patched.setattr(Directory, "rename", fail_for_d)
        publish(root, "d.json", BROKEN)
        scan(spool, ledger, count_rejected=counted.append)
    assert counted == [1]
    scan(spool, ledger, count_rejected=counted.append)
    publish(root, "e.json", envelope(9))
    scan(spool, ledger, count_rejected=counted.append)
    assert counted == [1, 1], "d.json, and of a pass that rejects nothing, nothing"


def test_a_draft_that_got_no_name_is_gone_after_a_failure(
    root: Path, spool: Spool, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Quarantine.write_sidecar

    def fail_for_c(self: Quarantine, rejection: Rejection, draft: Draft) -> str:
        if rejection.name == "c.json":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return write(self, rejection, draft)

    monkeypatch.setattr(Quarantine, "write_sidecar", fail_for_c)
    publish(root, "b.json", BROKEN)
    publish(root, "c.json", BROKEN)
    before = set(os.listdir(root / "rejected"))
    with pytest.raises(InfrastructureError):
        scan(spool, ledger)
    assert set(os.listdir(root / "rejected")) - before == {"b.json.error"}
