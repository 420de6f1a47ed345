"""The commands that only read, by who may not write: another user, and a file system mounted read-only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.campaign import Place, placed
from tests.service.support import PATIENCE_S, equation, until

NOBODY = 65534
STRANGER = Path(__file__).with_name("stranger.py")


@pytest.fixture
def place() -> Iterator[Place]:
    """A place that other users may enter, with an answered query, one that is not, and a refused file."""
    with tempfile.TemporaryDirectory() as name, placed(Path(name)) as made:
        Path(name).chmod(0o755)
        made.create(("a.smt2", equation(1)), ("b.smt2", "(check-sat"))
        made.run("serve", made.root, "--once")
        yield made


def read_as(place: Place, root: Path, user: int, *, served: bool = False) -> None:
    """Everything there is to read, and that nothing came of it but what a service does meanwhile."""
    (identity,) = place.answers()
    commands = (["status", "--json"], ["status", "--once"], ["results", "--json"], ["results", identity])
    export = place.folder / f"export-{user}-{place.root.name}"
    export.mkdir(mode=0o777, exist_ok=True)
    export.chmod(0o777)
    words = [[name, str(root), *more] for name, *more in (*commands, ["fsck"], ["config"])]
    words.append(["results", str(root), "--export", str(export)])
    before = files(place)
    reader = place.launch([sys.executable, str(STRANGER), str(user), json.dumps(words)])
    out, complaints = reader.communicate(timeout=PATIENCE_S)
    assert reader.returncode == 0, complaints
    status, screen, listed, answer, fsck, config, exported = json.loads(out)
    assert json.loads(status)["counts"]["sat"] == 1
    assert "answered" in screen
    assert json.loads(listed)["status"] == "sat"
    assert "define-fun" in answer
    assert fsck == "clean\n"
    assert "jobs" in config
    assert "exported" in exported or "input" in exported
    assert served or files(place) == before


def files(place: Place) -> set[str]:
    return {str(path.relative_to(place.root)) for path in place.root.rglob("*")}


@pytest.fixture
def stranger() -> int:
    if os.geteuid() != 0:
        pytest.skip("to become another user needs root")
    return NOBODY


def test_another_user_reads_a_campaign(place: Place, stranger: int) -> None:
    read_as(place, place.root, stranger)


def test_another_user_reads_a_campaign_that_is_served(place: Place, stranger: int) -> None:
    service = place.start("serve", place.root)
    until(lambda: list((place.root / "store" / "owners").iterdir()), "a registered owner")
    read_as(place, place.root, stranger, served=True)
    service.kill()
    service.wait(PATIENCE_S)
    read_as(place, place.root, stranger)


@contextmanager
def mounted_read_only(place: Place) -> Iterator[Path]:
    """The campaign once more, where nobody may write."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    mounted = place.folder / "mounted"
    mounted.mkdir()
    with ExitStack() as stack:
        subprocess.run(["mount", "--bind", place.root, mounted], check=True)
        stack.callback(subprocess.run, ["umount", "-l", mounted], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", mounted], check=True)
        yield mounted


@pytest.mark.parametrize("words", [("serve",), ("serve", "--once"), ("retry", ""), ("republish",)])
def test_what_writes_ends_on_a_read_only_mount_and_says_so(place: Place, words: tuple[str, ...]) -> None:
    command, *more = words
    with mounted_read_only(place) as mounted:
        complaint = place.run(command, mounted, *more, code=74).stderr
    assert "mounted read-only" in complaint, complaint
    assert "try again in" not in complaint


def test_a_service_of_another_user_ends_and_says_whose_the_store_is(place: Place, stranger: int) -> None:
    words = json.dumps([["serve", str(place.root), "--once"]])
    service = place.launch([sys.executable, str(STRANGER), str(stranger), words])
    _, complaints = service.communicate(timeout=PATIENCE_S)
    assert "LastingError" in complaints
    assert "which belongs to root" in complaints, complaints
    assert "try again in" not in complaints


def test_a_campaign_is_read_from_a_read_only_mount(place: Place) -> None:
    with mounted_read_only(place) as mounted:
        with pytest.raises(OSError, match="Read-only file system"):
            (mounted / "store" / "probe").touch()
        read_as(place, mounted, 0)
        service = place.start("serve", place.root)
        until(lambda: list((place.root / "store" / "owners").iterdir()), "a registered owner")
        read_as(place, mounted, 0, served=True)
        service.kill()
        service.wait(PATIENCE_S)
        read_as(place, mounted, 0)


def test_the_closed_folder_of_ones_own_is_read(place: Place) -> None:
    reader = os.geteuid() or NOBODY  # no mode of a folder keeps root from writing
    for path in (place.root, *place.root.rglob("*")):
        os.chown(path, reader, -1)
    store = place.root / "store"
    store.chmod(0o555)
    try:
        read_as(place, place.root, reader)
    finally:
        store.chmod(0o755)
