"""Real mounts of one directory, with and without shared locks: FUSE, two hosts by UTS and mount namespaces.

Two ``bindfs`` mounts of a directory show the same files. Each keeps its own locks, like clients of a network
file system whose lock service is off, unless it forwards them. Needs root, ``/dev/fuse`` and ``bindfs``.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.launch import Rank, not_run, run
from tests.e2e.campaign import Place, identities, sampled

pytestmark = pytest.mark.slow

FORWARDED = ("--enable-lock-forwarding", "--multithreaded")
Mounts = Callable[..., tuple[Path, Path]]


@pytest.fixture
def mounted(place: Place) -> Iterator[Mounts]:
    """Mounts a directory twice, with options of bindfs; the two mount points."""
    what = "two FUSE mounts of one directory"
    if os.geteuid() != 0:
        not_run(what, "only root may mount")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        not_run(what, "/dev/fuse is not usable")
    if shutil.which("bindfs") is None:
        not_run(what, "bindfs is not installed")
    with ExitStack() as stack:

        def mount(directory: Path, *options: str) -> tuple[Path, Path]:
            points = (place.folder / "mount-a", place.folder / "mount-b")
            for point in points:
                point.mkdir()
                done = subprocess.run(
                    ["bindfs", *options, str(directory), str(point)], capture_output=True, text=True
                )
                if done.returncode != 0:
                    not_run(what, f"mounting is not permitted: {done.stderr.strip()}")
                stack.callback(subprocess.run, ["umount", "--lazy", str(point)], check=True)
            return points

        yield mount


def shared_at(place: Place, mounts: tuple[Path, Path], path: Path) -> list[tuple[str, tuple[Path, Path]]]:
    """Both hosts, each with its mount at the same path."""
    path.mkdir(exist_ok=True)
    return [("hosta", (mounts[0], path)), ("hostb", (mounts[1], path))]


@pytest.mark.parametrize(("options", "shared"), [((), False), (FORWARDED, True)])
def test_the_mounts_are_what_they_are_said_to_be(
    place: Place, mounted: Mounts, options: tuple[str, ...], shared: bool
) -> None:
    (real := place.folder / "real").mkdir()
    first, second = mounted(real, *options)
    with (first / "lock").open("w") as one, (second / "lock").open("r+") as other:
        fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            refused = False
        except BlockingIOError:
            refused = True
    assert refused is shared


def test_mounts_with_locks_of_their_own_fail_at_contention(place: Place, mounted: Mounts) -> None:
    (real := place.folder / "real").mkdir()
    hosts = shared_at(place, mounted(real), path := place.folder / "shared")
    ranks = [Rank("qualify", path, "--json", host=name, mounted=[mount]) for name, mount in hosts]
    report = json.loads(run(place, *ranks, code=65).stdout)
    assert (report["clean"], report["verified"]) == (False, False)
    assert report["diagnostic"]["stage"] == "excluded"
    assert report["diagnostic"]["code"] == "refused"
    assert "locks are not shared between these mounts" in report["diagnostic"]["text"]
    assert report["proof"]["rounds"] == 0
    assert report["proof"]["transcript"] == ""
    assert report["capability"]["proof"] is None
    assert os.listdir(real) == []


def test_mounts_that_forward_their_locks_verify(place: Place, mounted: Mounts) -> None:
    (real := place.folder / "real").mkdir()
    hosts = shared_at(place, mounted(real, *FORWARDED), path := place.folder / "shared")
    ranks = [Rank("qualify", path, "--json", host=name, mounted=[mount]) for name, mount in hosts]
    report = json.loads(run(place, *ranks).stdout)
    assert (report["clean"], report["verified"]) == (True, True)
    assert report["capability"]["filesystem_type"] == "fuse"
    proof = report["proof"]
    assert [member["processor"] for member in proof["members"]] == ["hosta", "hostb"]
    assert (proof["rounds"], proof["contention_checks"]) == (2, 2)
    assert (proof["release_checks"], proof["identity_checks"]) == (2, 2)
    assert os.listdir(real) == []


def serving(place: Place, mounts: tuple[Path, Path]) -> list[Rank]:
    """A master on each mount of the campaign, its store outside of it."""
    return [
        Rank(
            *("serve", path, "--once", "-j", "1"),
            host=name,
            mounted=[mount],
            SMTSPOOL_STORE=str(place.folder / f"store-{name}"),
        )
        for path in [place.folder / "shared"]
        for name, mount in shared_at(place, mounts, path)
    ]


def test_masters_on_mounts_with_locks_of_their_own_admit_nothing(place: Place, mounted: Mounts) -> None:
    asked = sampled("crc8")
    place.create(*asked)
    done = run(place, *serving(place, mounted(place.root)), code=65)
    assert "locks are not shared between these mounts" in done.stderr
    assert place.in_spool("incoming") == {name for name, _ in asked}


def test_masters_on_mounts_that_forward_their_locks_answer_everything(place: Place, mounted: Mounts) -> None:
    asked = sampled("crc8")
    place.create(*asked)
    done = run(place, *serving(place, mounted(place.root, *FORWARDED)), SMTSPOOL_RENEW_SECONDS="0.5")
    assert done.stderr.count("EveryMaster; this one admits") == 2
    assert place.in_spool("accepted") == {name for name, _ in asked}
    published = {path.stem for path in (place.root / "out" / "results").glob("*.json")}
    assert published == identities(asked)
    for host in ("hosta", "hostb"):
        checked = place.run("fsck", "campaign", SMTSPOOL_STORE=str(place.folder / f"store-{host}"))
        assert checked.stdout == "clean\n"
