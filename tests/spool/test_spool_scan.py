from __future__ import annotations

import fcntl
import os
import random
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from smtspool.actions import Step, observed_by
from smtspool.errors import InfrastructureError
from smtspool.query import Limits, Query
from smtspool.spool import Outcome, ScanReport, Spool
from tests.spool.support import BROKEN, Ledger, assert_in_order, envelope, files, publish, scan


class Trace:
    """Every step with its file and outcome."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def before(self, step: Step) -> None: ...

    def after(self, step: Step) -> None:
        file = step.params.get("file", step.params.get("files", ""))
        self.steps.append(" ".join(str(part) for part in (step.name, file, step.outcome) if part))

    def names(self) -> list[str]:
        return [step.split()[0] for step in self.steps]


def test_an_empty_spool_is_idle_and_not_busy(spool: Spool, ledger: Ledger) -> None:
    report = scan(spool, ledger)
    assert report == ScanReport(Outcome.IDLE, backlog=0, lock_wait_ns=report.lock_wait_ns)
    assert ledger.calls == 0


def test_the_steps_of_a_scan_are_those_of_the_model_in_its_order(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    publish(root, "b.json", BROKEN)
    publish(root, "a.json", envelope(1))
    trace = Trace()
    with observed_by(trace):
        scan(spool, ledger)
    assert trace.steps == [
        "TryLock Acquire",
        "List",
        "Open a.json",
        "Verify a.json good",
        "Open b.json",
        "Verify b.json bad",
        "Commit ('a.json',)",
        "WriteSidecar b.json",
        "Move a.json moved",
        "Move b.json moved",
        "Release",
    ]


def test_a_report_adds_up(root: Path, spool: Spool, ledger: Ledger) -> None:
    publish(root, "one.json", envelope(1))
    publish(root, "same.json", envelope(1))
    publish(root, "two.json", envelope(2))
    publish(root, "bad.json", BROKEN)
    report = scan(spool, ledger)
    assert (report.outcome, report.finished, report.backlog) == (Outcome.SCANNED, True, 0)
    assert (report.accepted, report.rejected, report.deferred) == (3, 1, 0)
    assert (report.created, report.replayed, ledger.stored) == (2, 1, 2)
    assert report.bytes == 2 * len(envelope(1)) + len(envelope(2))
    assert len(report.latency) == 3


def test_temporary_names_of_producers_are_not_touched(root: Path, spool: Spool, ledger: Ledger) -> None:
    for name in (".q.json.Ab12Cd", "q.json.tmp", ".tmp"):
        (root / "incoming" / name).write_bytes(envelope(1))
    assert scan(spool, ledger).outcome is Outcome.IDLE
    assert spool.backlog() == 0
    assert files(root)["incoming"] == {".q.json.Ab12Cd", "q.json.tmp", ".tmp"}


def test_files_are_taken_in_the_order_of_their_names(root: Path, spool: Spool, ledger: Ledger) -> None:
    names = [f"{number:03}.json" for number in range(20)]
    for number, name in random.Random(1).sample(list(enumerate(names)), len(names)):
        publish(root, name, envelope(number))
    trace = Trace()
    with observed_by(trace):
        scan(spool, ledger, batch=7)
    assert [step.split()[1] for step in trace.steps if step.startswith("Move")] == names
    assert trace.names().count("List") == 1
    assert trace.names().count("Commit") == ledger.calls == 3


def test_every_batch_is_committed_before_its_first_move(root: Path, spool: Spool, ledger: Ledger) -> None:
    for number in range(6):
        publish(root, f"{number}.json", envelope(number))
    waiting = []
    ledger.inside = lambda: waiting.append(len(files(root)["incoming"]))
    scan(spool, ledger, batch=2)
    assert waiting == [6, 4, 2]


def test_a_batch_is_also_bounded_by_its_text(root: Path, spool: Spool, ledger: Ledger) -> None:
    for number in range(6):
        publish(root, f"{number}.json", envelope(number))
    scan(spool, ledger, batch_bytes=1)
    assert ledger.calls == 6


def test_a_script_of_many_queries_is_one_file_and_one_transaction(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    body = "".join(f"(push 1)(assert (= x #x{n:02x}))(check-sat)(pop 1)" for n in range(50))
    publish(root, "many.smt2", f"(set-logic QF_BV)(declare-const x (_ BitVec 8)){body}".encode())
    report = scan(spool, ledger, batch=10)
    assert (report.accepted, report.created, ledger.calls) == (1, 50, 1)


def test_a_pass_out_of_budget_goes_on_after_its_last_name(root: Path, spool: Spool, ledger: Ledger) -> None:
    for number in range(10):
        publish(root, f"{number}.json", envelope(number))
    now = iter(range(1000))

    def clock() -> float:
        return float(next(now))

    first = scan(spool, ledger, budget_s=5.0, clock=clock)
    assert (first.finished, first.accepted, first.backlog) == (False, 4, 6)
    publish(root, "!first-by-name.json", envelope(11))
    second = scan(spool, ledger, budget_s=5.0, clock=clock)
    assert not second.finished
    assert "!first-by-name.json" in files(root)["incoming"]
    while not scan(spool, ledger, budget_s=5.0, clock=clock).finished:
        pass
    assert files(root)["incoming"] == set()
    assert_in_order(root)


def test_a_resumed_pass_comes_round_to_what_arrived_behind_it(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    publish(root, "m.json", envelope(1))
    publish(root, "n.json", envelope(2))
    assert not scan(spool, ledger, budget_s=0.0).finished
    publish(root, "a.json", envelope(3))
    report = scan(spool, ledger)
    assert (report.accepted, report.backlog, report.finished) == (2, 0, True)
    assert spool.backlog() == 0


def test_a_budget_of_nothing_still_makes_progress(root: Path, spool: Spool, ledger: Ledger) -> None:
    for number in range(3):
        publish(root, f"{number}.json", envelope(number))
    reports = [scan(spool, ledger, budget_s=0.0) for _ in range(3)]
    assert [report.accepted for report in reports] == [1, 1, 1]
    assert [report.finished for report in reports] == [False, False, True]


def test_latency_ends_when_the_commit_is_durable(root: Path, spool: Spool, ledger: Ledger) -> None:
    publish(root, "a.json", envelope(1))
    wall = [(root / "incoming" / "a.json").stat().st_ctime + 5.0]

    def commit_slowly(queries: Sequence[Query]) -> Sequence[bool]:
        wall[0] += 7.0
        return ledger.commit(queries)

    report = spool.scan(commit_slowly, consumer="p", budget_s=60.0, wall=lambda: wall[0])
    assert report.latency == (pytest.approx(12.0, abs=1e-3),)


def test_latency_is_of_the_waiting_and_not_of_the_file(root: Path, spool: Spool, ledger: Ledger) -> None:
    publish(root, "a.json", envelope(1))
    os.utime(root / "incoming" / "a.json", (0, 0))  # copied with the time of an old original
    came = (root / "incoming" / "a.json").stat().st_ctime
    assert scan(spool, ledger, wall=lambda: came + 5.0).latency == (pytest.approx(5.0, abs=1e-3),)
    publish(root, "b.json", envelope(2))
    came = (root / "incoming" / "b.json").stat().st_ctime
    report = scan(spool, ledger, serving_since=came + 3600.0, wall=lambda: came + 3602.0)
    assert report.latency == (pytest.approx(2.0, abs=1e-3),)  # nobody served before


def test_a_file_whose_writer_is_not_done_is_left_for_the_next_pass(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    publish(root, "a.json", envelope(1))
    publish(root, "b.json", envelope(2))
    went: list[tuple[str, str | None]] = []

    class Opened:
        def before(self, step: Step) -> None: ...

        def after(self, step: Step) -> None:
            if step.name in ("Open", "Verify"):
                went.append((step.name, step.outcome))

    ignored = signal.signal(signal.SIGIO, signal.SIG_IGN)  # sent to the holder when its lease is to be broken
    with (root / "incoming" / "a.json").open("r+b") as writing, observed_by(Opened()):
        fcntl.fcntl(writing, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        report = scan(spool, ledger)
        fcntl.fcntl(writing, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    signal.signal(signal.SIGIO, ignored)
    assert went == [("Open", "unstable"), ("Open", None), ("Verify", "good")]
    assert (report.accepted, report.deferred, report.backlog) == (1, 1, 1)
    assert scan(spool, ledger).accepted == 1


def test_an_unstable_file_is_left_and_does_not_stop_the_rest(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    publish(root, "a.json", envelope(1))
    publish(root, "b.json", envelope(2))

    class AppendBeforeVerify:
        def before(self, step: Step) -> None:
            if step.name == "Verify" and step.params["file"] == "a.json":
                with (root / "incoming" / "a.json").open("ab") as growing:
                    growing.write(b" ")

        def after(self, step: Step) -> None: ...

    with observed_by(AppendBeforeVerify()):
        report = scan(spool, ledger)
    assert (report.accepted, report.deferred, report.backlog) == (1, 1, 1)
    assert scan(spool, ledger).accepted == 1
    assert ledger.stored == 2


@pytest.mark.parametrize("moment", ["Open", "Verify", "Commit", "Move"])
def test_a_producer_may_remove_its_file(root: Path, spool: Spool, ledger: Ledger, moment: str) -> None:
    publish(root, "a.json", envelope(1))
    publish(root, "b.json", envelope(2))

    class RemoveBefore:
        def before(self, step: Step) -> None:
            if step.name == moment and step.params.get("file", "a.json") == "a.json":
                (root / "incoming" / "a.json").unlink()

        def after(self, step: Step) -> None: ...

    with observed_by(RemoveBefore()):
        report = scan(spool, ledger)
    assert files(root)["accepted"] == {"b.json"}
    assert ledger.stored == (2 if moment in ("Commit", "Move") else 1)
    assert report.accepted == ledger.stored
    assert_in_order(root)


@pytest.mark.parametrize(("before", "after"), [(envelope(1), envelope(2)), (BROKEN, envelope(2))])
def test_a_file_replaced_after_it_was_read_is_read_again_and_not_moved_unread(
    root: Path, spool: Spool, ledger: Ledger, before: bytes, after: bytes
) -> None:
    publish(root, "a.json", before)

    class ReplaceBeforeMove:
        def before(self, step: Step) -> None:
            if step.name == "Move":
                publish(root, "a.json", after)

        def after(self, step: Step) -> None: ...

    with observed_by(ReplaceBeforeMove()):
        report = scan(spool, ledger)
    assert (report.accepted, report.rejected, report.deferred) == (0, 0, 1)
    assert files(root) == {"incoming": {"a.json"}, "accepted": set(), "rejected": set()}

    scan(spool, ledger)
    assert (root / "accepted" / "a.json").read_bytes() == after
    assert ledger.stored == (2 if before == envelope(1) else 1)
    assert_in_order(root)


def test_a_name_accepted_before_gets_a_fresh_suffix(root: Path, spool: Spool, ledger: Ledger) -> None:
    for number in range(3):
        publish(root, "a.json", envelope(number))
        scan(spool, ledger)
    accepted = files(root)["accepted"]
    assert len(accepted) == 3
    assert all(name.startswith("a") and name.endswith(".json") for name in accepted)
    assert {(root / "accepted" / name).read_bytes() for name in accepted} == {envelope(n) for n in range(3)}


def test_an_open_spool_follows_folders_that_were_made_anew(root: Path, spool: Spool, ledger: Ledger) -> None:
    for name in ("incoming", "accepted", "rejected"):
        (root / name).rename(root / f"old-{name}")
    assert scan(spool, ledger).outcome is Outcome.IDLE
    publish(root, "a.json", envelope(1))
    assert scan(spool, ledger).accepted == 1


@pytest.mark.parametrize("name", ["incoming", "accepted", "rejected"])
def test_a_folder_that_is_a_link_is_refused_by_name(
    root: Path, spool: Spool, ledger: Ledger, tmp_path: Path, name: str
) -> None:
    publish(root, "a.json", envelope(1))
    (root / name).rename(tmp_path / "elsewhere")
    (root / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InfrastructureError, match=f"symbolic link.*{name}"):
        scan(spool, ledger)
    with pytest.raises(InfrastructureError, match=f"symbolic link.*{name}"):
        Spool.open(root)
    assert ledger.calls == 0


def test_a_missing_spool_is_said_and_not_made(root: Path) -> None:
    with pytest.raises(InfrastructureError, match="create it first"):
        Spool.open(root)
    assert not root.exists()


@pytest.mark.parametrize("name", ["incoming", "accepted", "rejected"])
def test_a_missing_folder_is_made_by_a_scan_also_by_the_first(
    root: Path, spool: Spool, ledger: Ledger, name: str
) -> None:
    (root / name).rmdir()
    with Spool.open(root) as opened:
        assert opened.backlog() == 0
        scan(opened, ledger)
        publish(root, "a.json", envelope(1))
        assert scan(opened, ledger).accepted == 1
    assert (root / name).is_dir()


def test_no_file_is_written_outside_the_spool(
    root: Path, spool: Spool, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "/nowhere")
    publish(root, "b.json", BROKEN)
    spool.submit("a.json", envelope(1))
    report = scan(spool, ledger)
    assert (report.accepted, report.rejected) == (1, 1)


def test_the_limit_of_a_file_is_exact(root: Path, ledger: Ledger) -> None:
    size = len(envelope(1))
    with Spool.open(root, create=True, limits=Limits(file=size)) as spool:
        publish(root, "fits.json", envelope(1))
        publish(root, "over.json", envelope(2) + b" ")
        report = scan(spool, ledger)
    assert (report.accepted, report.rejected) == (1, 1)


def test_a_pass_leaks_no_descriptor(root: Path, spool: Spool, ledger: Ledger) -> None:
    def boom(queries: Sequence[Query]) -> list[bool]:
        raise OSError("disk on fire")

    scan(spool, ledger)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(20):
        publish(root, f"{number}.json", envelope(number))
        publish(root, f"bad-{number}.json", BROKEN)
        with pytest.raises(InfrastructureError):
            spool.scan(boom, consumer="c1", budget_s=1e9)
    scan(spool, ledger)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_batch_is_settled_in_time_for_one_who_is_killed_often(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    for number in range(4):
        publish(root, f"{number}.json", envelope(number))
    slow = (number * 0.04 for number in range(100))
    scan(spool, ledger, clock=lambda: next(slow))
    assert ledger.calls == 2, "two files in a tenth of a second, two files a commit"
