"""Presence: who lives, and what it says of itself, read by anyone and without the database."""

from __future__ import annotations

import os
import tempfile
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from smtspool.errors import MisuseError
from smtspool.store import Presence, Seen, Store, present
from smtspool.store.presence import PLATE_BYTES
from tests.disks import fill, mounted
from tests.store.support import in_child


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "owners").mkdir()
    return tmp_path


@pytest.fixture
def full_disk(folder: Path) -> Iterator[Path]:
    """A file system with room for one plate."""
    with mounted(folder / "disk", "64k") as disk:
        (disk / "owners").mkdir()
        yield disk


def test_what_a_living_process_says_is_read_until_it_is_gone(folder: Path) -> None:
    presence = Presence(folder)
    assert present(folder) == [Seen(presence.token, True, None)]
    presence.show({"state": "starting", "why": "a long text " * 100})
    presence.show({"state": "é\udcff"})
    assert present(folder) == [Seen(presence.token, True, {"state": "é\udcff"})]
    presence.close()
    presence.close()
    assert present(folder) == []


def test_the_dead_are_seen_as_dead_with_their_last_words(folder: Path) -> None:
    def die() -> int:
        Presence(folder).show({"pid": os.getpid()})
        return 0

    assert in_child(die) == 0
    [seen] = present(folder)
    assert seen.alive is False and seen.plate is not None and seen.plate["pid"] != os.getpid()


def test_whoever_looks_is_in_nobodys_way(folder: Path) -> None:
    presence = Presence(folder)
    presence.close()
    (folder / "owners" / "dead.lock").touch()
    assert [one.alive for one in present(folder)] == [False]
    with Store.open(folder, create=True) as store:
        store.reap()
    assert present(folder) == []


def test_a_plate_is_never_read_half_written(folder: Path) -> None:
    presence = Presence(folder)
    texts = [letter * size for letter in "ab" for size in (10, 30_000)]
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            for text in texts:
                presence.show({"text": text})

    writer = threading.Thread(target=write)
    writer.start()
    seen = [plate for _ in range(2000) for plate in [present(folder)[0].plate] if plate is not None]
    done.set()
    writer.join()
    presence.close()
    assert seen and {plate["text"] for plate in seen} <= set(texts)


@pytest.mark.parametrize("damage", [b"", b"\xff" * 100, b"00000000 00000001\n{", b"x y\n{}", b"1 2 3\n"])
def test_what_is_no_plate_says_nothing(folder: Path, damage: bytes) -> None:
    presence = Presence(folder)
    (folder / "owners" / f"{presence.token}.lock").write_bytes(damage)
    assert present(folder) == [Seen(presence.token, True, None)]
    presence.close()


def test_a_plate_has_its_limit(folder: Path) -> None:
    presence = Presence(folder)
    with pytest.raises(MisuseError, match="room for"):
        presence.show({"text": "x" * PLATE_BYTES})
    presence.close()


def test_a_plate_is_written_on_a_full_disk(full_disk: Path) -> None:
    presence = Presence(full_disk)
    fill(full_disk)
    presence.show({"text": "x" * 30_000})
    assert present(full_disk)[0].plate == {"text": "x" * 30_000}
    presence.close()


def test_who_comes_when_the_disk_is_full_is_seen_and_speaks_once_there_is_room(full_disk: Path) -> None:
    fill(full_disk)
    presence = Presence(full_disk)
    with pytest.raises(OSError, match="No space left"):
        presence.show({"state": "starting"})
    assert present(full_disk) == [Seen(presence.token, True, None)]
    (full_disk / "filler").unlink()
    presence.show({"state": "starting"})
    assert present(full_disk) == [Seen(presence.token, True, {"state": "starting"})]
    presence.close()


def test_another_user_reads_it_without_a_right_to_write() -> None:
    with tempfile.TemporaryDirectory() as name:  # not below tmp_path, which only its owner may enter
        folder = Path(name)
        (folder / "owners").mkdir()
        folder.chmod(0o755)
        presence = Presence(folder)
        presence.show({"state": "serving"})

        def look() -> int:
            if os.geteuid() == 0:
                os.setuid(65534)
            return 0 if present(folder) == [Seen(presence.token, True, {"state": "serving"})] else 1

        assert in_child(look) == 0
        presence.close()


def test_a_file_that_may_not_be_opened_may_be_of_a_living_service(folder: Path) -> None:
    (folder / "owners" / "x.lock").symlink_to("nowhere")
    assert present(folder) == [Seen("x", None, None)]


def test_who_could_not_unregister_leaves_the_file_to_a_reaper(folder: Path) -> None:
    with Store.open(folder, create=True) as store:
        presence = Presence(folder)
        owner = store.register(presence)
        presence.close()
        assert [one.alive for one in present(folder)] == [False]
        assert Store.fsck(folder) == []
        store.reap()
        assert present(folder) == []
        owner.close()


def test_a_plate_that_is_nested_too_deeply_is_none(folder: Path) -> None:
    text = b"[" * 20_000
    plate = b"%08x %08x\n%s" % (zlib.crc32(text), len(text), text)
    (folder / "owners" / "odd.lock").write_bytes(plate)
    assert present(folder) == [Seen("odd", False, None)]
