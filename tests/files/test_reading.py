"""F364 §3: a stable read, or nothing."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from smtspool.errors import AdmissionError, Reason
from smtspool.files import Directory, Identity, Unstable, open_entry, read_stable

MAX = 3 << 20


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Directory]:
    with Directory.open(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, MAX])
def test_a_regular_file_is_read_whole_up_to_the_limit(tmp_path: Path, here: Directory, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "x").write_bytes(content)
    data, identity = read_stable(here, "x", MAX)
    assert data == content
    assert identity == Identity.of((tmp_path / "x").stat())


def test_one_byte_past_the_limit_is_too_large(tmp_path: Path, here: Directory) -> None:
    (tmp_path / "x").write_bytes(bytes(MAX + 1))
    with pytest.raises(AdmissionError) as caught:
        read_stable(here, "x", MAX)
    assert caught.value.reason is Reason.TOO_LARGE


def test_a_huge_sparse_file_is_refused_without_reading_it(tmp_path: Path, here: Directory) -> None:
    (tmp_path / "x").touch()
    os.truncate(tmp_path / "x", 1 << 40)
    with pytest.raises(AdmissionError, match=f"{1 << 40} bytes"):
        read_stable(here, "x", MAX)


@pytest.mark.parametrize("kind", ["directory", "fifo", "socket", "device", "link", "dangling link"])
def test_what_is_no_regular_file_is_bad_input_and_never_waited_for(
    tmp_path: Path, here: Directory, kind: str
) -> None:
    path = tmp_path / "x.json"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    elif kind == "link":
        (tmp_path / "target").write_bytes(b"secret")
        path.symlink_to("target")
    elif kind == "dangling link":
        path.symlink_to("nowhere")
    if kind == "device":
        with Directory.open("/dev") as devices, pytest.raises(AdmissionError) as caught:
            read_stable(devices, "null", MAX)
    else:
        with pytest.raises(AdmissionError) as caught:
            read_stable(here, "x.json", MAX)
    assert caught.value.reason is (Reason.SYMLINK if "link" in kind else Reason.NOT_REGULAR)


def test_a_file_the_service_may_not_read_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"secret")
    (tmp_path / "x").chmod(0)
    tmp_path.chmod(0o711)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with Directory.open(tmp_path) as here:
                if os.geteuid() == 0:
                    os.setresuid(65534, 65534, 65534)
                read_stable(here, "x", MAX)
        except AdmissionError as refusal:
            status = 0 if refusal.reason is Reason.UNREADABLE else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def replace(path: Path, content: bytes) -> None:
    path.with_name("new").write_bytes(content)
    path.with_name("new").rename(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "replaced": lambda path: replace(path, b"other"),
    "replaced by equal content": lambda path: replace(path, b"content"),
    "removed": lambda path: path.unlink(),
    "grown": lambda path: path.write_bytes(b"content, and more"),
    "truncated": lambda path: os.truncate(path, 3),
    "rewritten in place": lambda path: path.write_bytes(b"CONTENT"),
    "chmod": lambda path: path.chmod(0o600),
    "replaced by a link": lambda path: (path.rename(path.with_name("old")), path.symlink_to("old")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_is_unstable_when_between_open_and_verify_it_is(
    tmp_path: Path, here: Directory, change: str
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"content")
    path.chmod(0o644)
    with open_entry(here, "x") as entry:
        CHANGES[change](path)
        with pytest.raises(Unstable):
            entry.read(MAX)


def test_a_link_that_turns_into_a_good_file_is_unstable_and_not_bad(tmp_path: Path, here: Directory) -> None:
    path = tmp_path / "x"
    path.symlink_to("nowhere")
    with open_entry(here, "x") as entry:
        path.unlink()
        path.write_bytes(b"content")
        with pytest.raises(Unstable):
            entry.read(MAX)


def test_growing_past_the_limit_is_unstable_and_stays_bounded(tmp_path: Path, here: Directory) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"content")
    with open_entry(here, "x") as entry:
        os.truncate(path, 1 << 40)
        with pytest.raises(Unstable):
            entry.read(MAX)


def test_a_file_under_a_write_lease_is_unstable(tmp_path: Path, here: Directory) -> None:
    (tmp_path / "x").write_bytes(b"content")
    previous = signal.signal(signal.SIGIO, lambda *_: None)  # the kernel tells the lease holder
    fd = os.open(tmp_path / "x", os.O_RDWR)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        with pytest.raises(Unstable):
            open_entry(here, "x")
    finally:
        os.close(fd)
        signal.signal(signal.SIGIO, previous)


def test_a_missing_file_is_an_oserror_of_its_own(here: Directory) -> None:
    with pytest.raises(FileNotFoundError):
        open_entry(here, "x")


def test_signals_do_not_disturb_a_read(tmp_path: Path, here: Directory) -> None:
    content = os.urandom(MAX)
    (tmp_path / "x").write_bytes(content)
    heard = []
    previous = signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        while len(heard) < 20:
            assert read_stable(here, "x", MAX)[0] == content
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_no_refusal_leaks_a_descriptor(tmp_path: Path, here: Directory) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    (tmp_path / "large").write_bytes(b"12")
    before = len(os.listdir("/proc/self/fd"))
    for name in ("fifo", "link", "large"):
        with pytest.raises(AdmissionError):
            read_stable(here, name, 1)
    assert len(os.listdir("/proc/self/fd")) == before
