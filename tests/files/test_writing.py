from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from smtspool.files import Directory, temporary_name, write_durable


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Directory]:
    with Directory.open(tmp_path) as opened:
        yield opened


def test_the_content_arrives_whole_and_nothing_else_stays(tmp_path: Path, here: Directory) -> None:
    data = os.urandom(3 << 20)
    write_durable(here, "x", data)
    assert (tmp_path / "x").read_bytes() == data
    assert here.names() == ["x"]


def test_replacing_is_whole_or_not_at_all(tmp_path: Path, here: Directory) -> None:
    write_durable(here, "x", b"old")
    write_durable(here, "x", b"new")
    assert (tmp_path / "x").read_bytes() == b"new"


def test_without_replace_a_taken_name_stays_as_it_is(tmp_path: Path, here: Directory) -> None:
    write_durable(here, "x", b"old")
    with pytest.raises(FileExistsError):
        write_durable(here, "x", b"new", replace=False)
    assert (tmp_path / "x").read_bytes() == b"old"
    assert here.names() == ["x"]


def test_a_link_of_that_name_is_replaced_and_not_followed(tmp_path: Path, here: Directory) -> None:
    (tmp_path / "target").write_bytes(b"mine")
    (tmp_path / "x").symlink_to("target")
    write_durable(here, "x", b"new")
    assert (tmp_path / "target").read_bytes() == b"mine"
    assert not (tmp_path / "x").is_symlink()


def test_a_full_disk_leaves_the_old_content_and_no_temporary_file(tmp_path: Path, here: Directory) -> None:
    write_durable(here, "x", b"old")
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError):
            write_durable(here, "x", bytes(8192))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert (tmp_path / "x").read_bytes() == b"old"
    assert here.names() == ["x"]


def test_temporary_names_are_fresh_and_hidden() -> None:
    names = {temporary_name() for _ in range(1000)}
    assert len(names) == 1000
    assert all(name.startswith(".") and name.endswith(".tmp") for name in names)
