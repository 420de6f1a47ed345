"""A machine that fails: full disks, locked databases, bad files. The service waits, and loses nothing."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smtspool.spool import Spool
from smtspool.store import Store
from tests.disks import fill, mounted
from tests.e2e.campaign import Place
from tests.service.support import ODD_ENGINE, PATIENCE_S, equation, locked, query, until


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    with mounted(tmp_path / "small", "64k") as folder:
        yield folder


def finished(child: subprocess.Popen[str]) -> str:
    _, complaints = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0, complaints
    assert "Traceback" not in complaints
    return complaints


def test_a_full_disk_under_out_is_waited_for(place: Place, small_disk: Path) -> None:
    campaign = place.create(("a.smt2", equation(1)))
    filler = fill(small_disk)
    subprocess.run(["mount", "--bind", small_disk, campaign.out / "results"], check=True)
    try:
        child = place.start("serve", place.root, "--once")
        until(lambda: place.counters().get("publication_failures", 0) > 0, "a failed publication")
        assert place.answers() == {query(1).id: "sat"}
        filler.unlink()
        assert "No space left" in finished(child)
        assert (campaign.out / "results" / f"{query(1).id}.json").is_file()
    finally:
        subprocess.run(["umount", "-l", campaign.out / "results"], check=True)


def test_a_store_locked_by_somebody_else_is_waited_for(place: Place) -> None:
    campaign = place.create(*[(f"{n}.smt2", equation(n)) for n in range(40)])
    child = place.start("serve", place.root, "--once")
    until(lambda: place.counts().done, "the first answers")
    with locked(campaign), pytest.raises(subprocess.TimeoutExpired):
        child.communicate(timeout=4.0)
    finished(child)
    assert len(place.answers()) == 40
    assert place.counters().get("stale", 0) == 0
    assert place.run("fsck", place.root).stdout == "clean\n"


@pytest.fixture
def store_disk(place: Place) -> Iterator[Path]:
    """A campaign with one query, and its store on a file system of 2 MiB."""
    with mounted(place.folder / "disk", "2m") as disk:
        place.root.mkdir()
        (place.root / "smtspool.toml").write_text(f'store = "{disk}"\n')
        place.create(("a.smt2", equation(1)))
        yield disk


def told(child: subprocess.Popen[str], what: str) -> None:
    assert child.stderr is not None
    while what not in child.stderr.readline():
        assert child.poll() is None, what


def test_a_start_on_a_full_disk_waits_and_says_so_in_the_words_of_later(
    place: Place, store_disk: Path
) -> None:
    filler = fill(store_disk)
    child = place.start("serve", place.root, "--once")
    told(child, "start: ")
    filler.unlink()
    log = finished(child)
    assert "start: works again" in log and "serving" in log
    with Store.open(store_disk) as store:
        assert store.counts().sat == 1
    assert place.run("fsck", place.root).stdout == "clean\n"
    assert list((store_disk / "owners").iterdir()) == []


def test_a_start_that_waits_can_be_ended(place: Place, store_disk: Path) -> None:
    filler = fill(store_disk)
    child = place.start("serve", place.root)
    told(child, "start: ")
    child.terminate()
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 143
    filler.unlink()
    assert place.run("fsck", place.root).stdout == "clean\n"
    assert list((store_disk / "owners").iterdir()) == []
    place.assert_no_process_left()


def status(place: Place) -> dict[str, Any]:
    [document] = place.documents("status", place.root, "--json")
    return document


def test_a_disk_that_is_full_while_it_serves_is_seen_by_whoever_looks(place: Place, store_disk: Path) -> None:
    child = place.start("serve", place.root)
    until(lambda: status(place)["counts"]["sat"] == 1, "the answer")
    filler = fill(store_disk)
    with Spool.open(place.root / "spool") as spool:
        spool.submit("b.smt2", equation(2, name="y").encode())
    until(lambda: any(one["failing"] for one in status(place)["services"]), "the failure")
    now = status(place)
    assert now["unreadable"] is None and now["counts"]["sat"] == 1
    severe = [trouble["what"] for trouble in now["trouble"] if trouble["severe"]]
    assert any(" failing for " in what and "full" in what for what in severe), severe
    assert "the disk is full below store" in severe
    filler.unlink()
    until(lambda: status(place)["counts"]["sat"] == 2, "the second answer", 2 * PATIENCE_S)
    until(lambda: not any(one["failing"] for one in status(place)["services"]), "its end")
    troubles = [trouble["what"] for trouble in status(place)["trouble"]]
    [over] = [what for what in troubles if " works again: " in what]
    assert "full" in over
    child.terminate()
    child.communicate(timeout=PATIENCE_S)
    assert status(place)["services"] == []


def test_a_service_that_was_killed_with_work_left_is_missed(place: Place) -> None:
    place.create(("a.smt2", equation(1, name="slow", against=2)), ("b.smt2", equation(2, name="slow")))
    child = place.start("serve", place.root, "-e", ODD_ENGINE, "-t", "1000", "--jobs", "1")
    until(lambda: place.counts().leased, "a lease")
    assert [one["alive"] for one in status(place)["services"]] == [True]
    child.kill()
    child.communicate(timeout=PATIENCE_S)
    now = status(place)
    [trouble] = [trouble["what"] for trouble in now["trouble"] if trouble["severe"]]
    assert (
        trouble.startswith("no service is running, and there is work for one: 2 queries;")
        and now["eta_seconds"] is None
    )
    assert any(f"pid {child.pid} on " in one["what"] and "died" in one["what"] for one in now["trouble"])
    assert "! no service is running" in place.run("status", place.root, "--once").stdout


def test_a_start_at_a_locked_store_waits(place: Place) -> None:
    campaign = place.create(("a.smt2", equation(1)))
    with locked(campaign):
        child = place.start("serve", place.root, "--once")
        told(child, "start: ")
    assert "start: works again" in finished(child)
    assert place.answers() == {query(1).id: "sat"}


@pytest.mark.parametrize("name", ["accepted", "rejected", "incoming"])
def test_a_missing_folder_of_the_spool_is_made(place: Place, name: str) -> None:
    campaign = place.create()
    (campaign.spool / name).rmdir()
    child = place.start("serve", place.root)
    told(child, "serving")
    place.run("submit", place.root, place.file("a.smt2", equation(1)))
    until(lambda: place.counts().done == 1, "the answer")
    child.terminate()
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 143


def test_any_number_of_services_may_be_given_one_port(place: Place) -> None:
    place.create()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        children = [place.start("serve", place.root, "--metrics-port", port) for _ in range(2)]
        for child in children:
            assert child.stderr is not None
            assert "metrics on http://127.0.0.1:" in child.stderr.readline()
            assert "serving" in child.stderr.readline()
    for child in children:
        child.terminate()
        child.communicate(timeout=PATIENCE_S)
        assert child.returncode == 143


def test_bad_files_never_stop_the_pass(place: Place) -> None:
    campaign = place.create(
        ("a-bad.json", b'{"schema": '),
        ("b-bad.smt2", b"\xff\xfe"),
        ("c-good.smt2", equation(1)),
        ("d-bad.txt", b"what is this?"),
        ("e-good.smt2", equation(2, against=3)),
    )
    incoming = campaign.spool / "incoming"
    (incoming / "f.smt2").symlink_to("/etc/passwd")
    (incoming / "g.smt2").mkdir()
    os.mkfifo(incoming / "h.smt2")
    (incoming / os.fsdecode(b"i-\xff.smt2")).write_text(equation(4))
    log = place.run("serve", place.root, "--once").stderr
    assert "rejected (json): a-bad.json:1:" in log and "rejected (symlink): f.smt2: " in log
    assert sorted(place.answers().values()) == ["sat", "sat", "unsat"]
    assert place.in_spool("incoming") == set()
    rejected = {name for name in place.in_spool("rejected") if not name.endswith(".error")}
    assert rejected == {"a-bad.json", "b-bad.smt2", "d-bad.txt", "f.smt2", "g.smt2", "h.smt2"}
    assert place.in_spool("rejected") == rejected | {f"{name}.error" for name in rejected}


def test_files_that_come_while_it_serves_are_answered(place: Place) -> None:
    place.create()
    child = place.start("serve", place.root)
    place.run("submit", place.root, place.file("a.smt2", equation(1)))
    until(lambda: place.counts().done == 1, "the first answer")
    place.run("submit", place.root, place.file("b.smt2", equation(2)))
    until(lambda: place.counts().done == 2, "the second answer")
    child.terminate()
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 143
