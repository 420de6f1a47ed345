"""An owner that is killed or refused anywhere on its way in or out leaves nothing that fsck reports."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from smtspool.errors import InfrastructureError
from smtspool.store import Store, owners, presence
from tests.store.support import LEASE_S, in_child, query
from tests.store.test_owners import die_with_a_lease


def killed_at(line: int) -> Callable[[FrameType, str, Any], Any]:
    """A trace function that kills the process in front of the line of these modules that is executed then."""
    left = line

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in (owners.__file__, presence.__file__):
            return None
        if event == "line":
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


def come_and_go(directory: Path, line: int) -> Callable[[], int]:
    """Reap who died before, lease a query, give it back; killed in front of a line."""

    def work() -> int:
        with Store.open(directory) as store:
            sys.settrace(killed_at(line))
            store.reap()
            with store.register() as owner:
                store.claim(owner.name, LEASE_S, 1)
            sys.settrace(None)
        return 0

    return work


@pytest.mark.slow
def test_killed_at_any_line_it_leaves_nothing_to_report_and_all_is_put_back(tmp_path: Path) -> None:
    with Store.open(tmp_path / "start", create=True) as store:
        store.ingest([query(1), query(2)])
    die_with_a_lease(tmp_path / "start")
    (tmp_path / "start" / "owners" / "swept.lock").touch()
    line = 0
    while True:
        directory = tmp_path / str(line)
        shutil.copytree(tmp_path / "start", directory)
        if in_child(come_and_go(directory, line)) == 0:
            break
        assert Store.fsck(directory) == [], f"killed in front of line {line}"
        with Store.open(directory) as store:
            store.reap()
            assert store.counts().pending == 2, f"killed in front of line {line}"
        assert list((directory / "owners").iterdir()) == []
        shutil.rmtree(directory)
        line += 1
    assert line > 50  # the way was long enough to mean something


def refuse_writing() -> None:
    """As a full disk does: no file of this process grows."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))


def allow_writing() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@pytest.mark.parametrize("registered", [False, True], ids=["at its start", "at its end"])
def test_a_full_disk_leaves_no_owner_without_its_file(directory: Path, registered: bool) -> None:
    Store.open(directory, create=True).close()

    def refused() -> int:
        with Store.open(directory) as store:
            if registered:
                owner = store.register()
                refuse_writing()
                with pytest.raises(InfrastructureError, match="disk"):
                    owner.close()
            else:
                refuse_writing()
                with pytest.raises(InfrastructureError, match="disk"):
                    store.register()
            allow_writing()
        return 0

    assert in_child(refused) == 0
    assert Store.fsck(directory) == []
    with Store.open(directory) as store:
        store.reap()
    assert list((directory / "owners").iterdir()) == []


def test_who_registers_and_dies_while_others_sweep_keeps_its_file(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(directory, create=True) as store:
        glob = Path.glob

        def after_a_death(folder: Path, pattern: str) -> Any:
            monkeypatch.setattr(Path, "glob", glob)
            dying = store.register()
            dying._presence.close()
            return glob(folder, pattern)

        monkeypatch.setattr(Path, "glob", after_a_death)  # asked for when the owners have been listed
        store.reap()
        assert Store.fsck(directory) == []
        store.reap()
        assert list((directory / "owners").iterdir()) == []
