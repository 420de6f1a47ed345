from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from smtspool.errors import ClosedError
from smtspool.files import Directory
from smtspool.files import directory as implementation


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Directory]:
    with Directory.open(tmp_path) as opened:
        yield opened


@pytest.fixture(params=["renameat2", "link and unlink"])
def way_to_rename(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "link and unlink":
        monkeypatch.setattr(implementation, "_renameat2", None)  # as on a C library without it


def test_create_makes_every_missing_component(tmp_path: Path) -> None:
    with Directory.open(tmp_path / "a" / "b" / "c", create=True) as made:
        assert os.path.samestat(os.fstat(made.fd), (tmp_path / "a" / "b" / "c").stat())


def test_a_missing_component_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such directory; create it first.*/a'"):
        Directory.open(tmp_path / "a" / "b")


@pytest.mark.parametrize(
    "fails",
    [
        lambda here: here.open_file("none", os.O_RDONLY),
        lambda here: here.unlink("none"),
        lambda here: here.replace("none", here, "other"),
        lambda here: here.child("none"),
    ],
    ids=["open_file", "unlink", "replace", "child"],
)
def test_an_error_has_the_whole_path(here: Directory, fails: Callable[[Directory], object]) -> None:
    with pytest.raises(FileNotFoundError) as told:
        fails(here)
    assert told.value.filename == f"{here.path}/none"


def test_a_folder_that_cannot_be_made_is_named_with_its_path() -> None:
    with pytest.raises(OSError, match="'/proc/none'"):
        Directory.open("/proc/none/below", create=True)


@pytest.mark.parametrize("position", ["first", "middle", "last"])
def test_a_link_in_any_component_is_refused_with_its_name_and_a_remedy(tmp_path: Path, position: str) -> None:
    (tmp_path / "real" / "middle" / "last").mkdir(parents=True)
    if position == "first":
        (tmp_path / "first").symlink_to("real")
        path = tmp_path / "first" / "middle" / "last"
    else:
        above = tmp_path / "real" if position == "middle" else tmp_path / "real" / "middle"
        (above / position).rename(above / "moved")
        (above / position).symlink_to("moved")
        path = tmp_path / "real" / "middle" / "last"

    with pytest.raises(NotADirectoryError, match=r"a symbolic link to .* give the real path") as caught:
        Directory.open(path)
    assert Path(str(caught.value.filename)).name == position


def test_a_file_in_the_path_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError, match="not a directory"):
        Directory.open(tmp_path / "file" / "below")


def test_relative_paths_start_at_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Directory.open("./a//b/../c", create=True) as opened, Directory.open(".") as dot:
        assert os.path.samestat(os.fstat(opened.fd), (tmp_path / "a" / "c").stat())
        assert os.path.samestat(os.fstat(dot.fd), tmp_path.stat())


def test_the_anchor_stays_when_the_path_is_swapped_for_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with Directory.open(tmp_path / "root", create=True) as root:
        (tmp_path / "root").rename(tmp_path / "moved")
        (tmp_path / "root").symlink_to("elsewhere")
        os.close(root.open_file("x", os.O_CREAT | os.O_WRONLY))
    assert (tmp_path / "moved" / "x").exists()
    assert not (tmp_path / "elsewhere" / "x").exists()


def test_a_platform_without_o_nofollow_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "O_NOFOLLOW")
    with pytest.raises(OSError, match="no O_NOFOLLOW") as caught:
        Directory.open(tmp_path)
    assert caught.value.errno == errno.EOPNOTSUPP


def test_a_parent_that_grants_passage_but_no_listing_is_enough(tmp_path: Path) -> None:
    below = tmp_path / "passage" / "below"
    below.mkdir(parents=True)
    (tmp_path / "passage").chmod(0o111)
    with Directory.open(below) as opened:
        assert opened.names() == []


def test_names_that_are_not_utf8_survive(tmp_path: Path, here: Directory) -> None:
    (tmp_path / os.fsdecode(b"\xff\n.json")).write_bytes(b"")
    (name,) = here.names()
    here.rename(name, here, name + "2")
    assert [os.fsencode(name) for name in here.names()] == [b"\xff\n.json2"]


@pytest.mark.usefixtures("way_to_rename")
class TestRename:
    @pytest.mark.parametrize("taken", ["file", "directory", "dangling link"])
    def test_never_overwrites(self, tmp_path: Path, here: Directory, taken: str) -> None:
        (tmp_path / "from").write_text("from")
        if taken == "file":
            (tmp_path / "to").write_text("to")
        elif taken == "directory":
            (tmp_path / "to").mkdir()
        else:
            (tmp_path / "to").symlink_to("nowhere")
        before = here.stat("to")
        with pytest.raises(FileExistsError):
            here.rename("from", here, "to")
        assert os.path.samestat(here.stat("to"), before)
        assert (tmp_path / "from").read_text() == "from"

    @pytest.mark.parametrize("kind", ["file", "link", "fifo", "directory"])
    def test_moves_a_thing_as_it_is(self, tmp_path: Path, here: Directory, kind: str) -> None:
        if kind == "file":
            (tmp_path / "from").write_text("content")
        elif kind == "link":
            (tmp_path / "from").symlink_to("nowhere")
        elif kind == "fifo":
            os.mkfifo(tmp_path / "from")
        else:
            (tmp_path / "from" / "inner").mkdir(parents=True)
        before = here.stat("from")
        with here.child("below", create=True) as below:
            here.rename("from", below, "to")
            after = below.stat("to")
        assert os.path.samestat(before, after)
        assert stat.S_IFMT(before.st_mode) == stat.S_IFMT(after.st_mode)
        assert here.names() == ["below"]

    def test_a_missing_source_is_said(self, here: Directory) -> None:
        with pytest.raises(FileNotFoundError):
            here.rename("from", here, "to")

    def test_a_directory_does_not_replace_anything(self, tmp_path: Path, here: Directory) -> None:
        (tmp_path / "from").mkdir()
        (tmp_path / "to").mkdir()
        with pytest.raises(FileExistsError):
            here.rename("from", here, "to")
        assert sorted(here.names()) == ["from", "to"]


def test_a_rename_by_link_that_was_cut_off_is_finished_when_repeated(
    tmp_path: Path, here: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(implementation, "_renameat2", None)
    (tmp_path / "from").write_text("content")
    os.link(tmp_path / "from", tmp_path / "to")
    here.rename("from", here, "to")
    assert here.names() == ["to"]


def test_a_closed_directory_says_so_and_closes_once(tmp_path: Path) -> None:
    directory = Directory.open(tmp_path)
    directory.close()
    directory.close()
    with pytest.raises(ClosedError):
        directory.names()


def test_failed_opens_leak_no_descriptor(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for path in ("link/below", "missing/below", "missing"):
        with pytest.raises(OSError):
            Directory.open(tmp_path / path)
    assert len(os.listdir("/proc/self/fd")) == before
