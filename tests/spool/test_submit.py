from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smtspool.errors import InfrastructureError, MisuseError
from smtspool.spool import Outcome, Spool
from smtspool.spool.submission import ABANDONED_S
from tests.disks import mounted
from tests.spool.support import Ledger, envelope, files, scan


def test_what_is_submitted_is_scanned(root: Path, spool: Spool, ledger: Ledger) -> None:
    assert spool.submit("a.json", envelope(1)) == "a.json"
    assert spool.backlog() == 1
    assert scan(spool, ledger).accepted == 1
    assert spool.backlog() == 0


def test_a_taken_name_gets_a_fresh_suffix_and_both_survive(root: Path, spool: Spool, ledger: Ledger) -> None:
    names = spool.submit_many([("a.json", envelope(number)) for number in range(5)])
    assert len(set(names)) == 5
    assert files(root)["incoming"] == set(names)
    assert scan(spool, ledger).created == 5


def test_producers_that_submit_one_name_at_once_lose_nothing(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    with ThreadPoolExecutor(4) as threads:
        names = list(threads.map(lambda number: spool.submit("a.json", envelope(number)), range(40)))
    assert len(set(names)) == 40
    assert scan(spool, ledger).created == 40


def test_what_a_producer_left_for_a_day_is_swept(root: Path, spool: Spool, ledger: Ledger) -> None:
    left = [root / "incoming" / f".0123456789abcde{number}.tmp" for number in range(2)]
    for path in left:
        path.write_bytes(b"half")
    now = time.time()
    os.utime(left[0], (now, now - ABANDONED_S - 60))
    os.utime(left[1], (now, now - ABANDONED_S + 60))
    assert scan(spool, ledger).outcome is Outcome.IDLE
    assert [path.exists() for path in left] == [False, True], "a producer may be slow"


def test_temporary_files_of_other_programs_stay(root: Path, spool: Spool, ledger: Ledger) -> None:
    kept = [".a.json.Xy12", ".rsync.tmp", "a.tmp", f".{'g' * 16}.tmp"]
    for name in kept:
        (root / "incoming" / name).write_bytes(b"half")
        os.utime(root / "incoming" / name, (0, 0))
    assert scan(spool, ledger).outcome is Outcome.IDLE
    assert files(root)["incoming"] == set(kept)


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden.json", "a.tmp", "a/b.json", "/a.json", "a\0.json", "x" * 256, "é" * 128]
)
def test_a_name_that_no_scan_would_look_at_is_refused(root: Path, spool: Spool, name: str) -> None:
    with pytest.raises(MisuseError, match="cannot be submitted"):
        spool.submit(name, envelope(1))
    assert files(root)["incoming"] == set()


def test_the_longest_names_can_be_submitted_twice(root: Path, spool: Spool) -> None:
    name = "x" * 250 + ".json"
    assert spool.submit(name, envelope(1)) == name
    assert len(os.fsencode(spool.submit(name, envelope(2)))) == 255


def test_a_folder_that_vanished_for_good_is_infrastructure(root: Path, spool: Spool) -> None:
    for path in (root / "incoming", root / "accepted", root / "rejected", root):
        path.rmdir()
    with pytest.raises(InfrastructureError):
        spool.submit("a.json", envelope(1))


def test_a_disk_that_fills_says_how_many_were_published(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "1600k") as disk, Spool.open(disk / "spool", create=True) as spool:
        asked = [(f"{number}.json", envelope(number)) for number in range(600)]
        with pytest.raises(InfrastructureError, match=r"No space left .* 256 files were published .* again"):
            spool.submit_many(asked)
        assert spool.backlog() == 256
