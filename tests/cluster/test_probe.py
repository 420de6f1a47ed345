"""The capability probe does nine real operations and leaves nothing (F327, F328)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from smtspool.cluster import FULL, Capability, Operation, ProbeFailed, Requirements, merged, probe_directory
from smtspool.files import Directory, FileLock

ALWAYS = frozenset({Operation.FILE_FSYNC, Operation.DIRECTORY_FSYNC})
LOCKS = frozenset({Operation.ADVISORY_LOCK_EXCLUSION, Operation.ADVISORY_LOCK_RELEASE})


def everything(*folders: Path) -> list[str]:
    return [name for folder in folders for name in os.listdir(folder)]


def test_an_ordinary_directory_can_do_everything_and_is_left_empty(tmp_path: Path) -> None:
    capability = probe_directory(tmp_path)
    assert capability.complete
    assert capability.operations == dict.fromkeys(Operation, True)
    assert (capability.root, capability.publication_root) == (str(tmp_path), str(tmp_path))
    assert capability.device == tmp_path.stat().st_dev
    assert capability.proof is None
    assert everything(tmp_path) == []


def test_only_what_is_required_is_tried(tmp_path: Path) -> None:
    capability = probe_directory(tmp_path, requirements=Requirements("least", ALWAYS))
    tried = {operation for operation, works in capability.operations.items() if works is True}
    assert tried == ALWAYS
    assert set(capability.operations.values()) == {True, None}
    assert not capability.complete
    operations: Any = capability.to_json()["operations"]
    assert operations["file_fsync"] is True
    assert operations["hard_link"] is None


def test_the_publication_directory_is_tried_too(tmp_path: Path) -> None:
    spool, out = tmp_path / "spool", tmp_path / "out"
    spool.mkdir()
    out.mkdir()
    assert probe_directory(spool, publication_root=out).publication_root == str(out)
    assert everything(spool, out) == []


def test_another_file_system_for_publication_is_found(tmp_path: Path) -> None:
    if Path("/dev/shm").stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("/dev/shm is on the file system of the temporary folder")
    with pytest.raises(ProbeFailed, match="publication replace") as failed:
        probe_directory(tmp_path, publication_root=Path("/dev/shm"))
    assert failed.value.operation is Operation.PUBLICATION_REPLACE
    assert everything(tmp_path) == []
    assert not [name for name in everything(Path("/dev/shm")) if f"smtspool-probe-{os.getpid()}" in name]


@pytest.mark.parametrize("missing", ["nothing", "nothing/below"])
def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path, missing: str) -> None:
    with pytest.raises(ProbeFailed, match="no such directory") as failed:
        probe_directory(tmp_path / missing)
    assert failed.value.operation is None
    assert everything(tmp_path) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(ProbeFailed, match="symbolic link"):
        probe_directory(tmp_path / "link")


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("inf"), float("nan")])
def test_a_timeout_that_is_none_is_refused_before_anything_is_made(tmp_path: Path, timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        probe_directory(tmp_path, timeout=timeout)
    assert everything(tmp_path) == []


def failing(error: BaseException) -> Callable[..., Any]:
    def call(*arguments: object, **named: object) -> Any:
        raise error

    return call


FAILURES: list[tuple[str, object, str]] = [
    ("os.fsync", os, "file_fsync"),
    ("sync", Directory, "directory_fsync"),
    ("replace", Directory, "same_directory_replace"),
    ("os.link", os, "hard_link"),
]


@pytest.mark.parametrize(("name", "where", "operation"), FAILURES, ids=[row[2] for row in FAILURES])
@pytest.mark.parametrize("error", [OSError(5, "injected"), KeyboardInterrupt()], ids=["error", "signal"])
def test_a_failing_operation_is_named_and_everything_is_removed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    where: object,
    operation: str,
    error: BaseException,
) -> None:
    real = getattr(where, name.removeprefix("os."))
    calls = [0]

    def once(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == 1:
            raise error
        return real(*arguments, **named)

    monkeypatch.setattr(where, name.removeprefix("os."), once)
    expected = ProbeFailed if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as failed:
        probe_directory(tmp_path)
    if isinstance(failed.value, ProbeFailed):
        assert failed.value.operation == operation
    monkeypatch.undo()
    assert everything(tmp_path) == []


def test_a_lock_that_excludes_nobody_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acquire = FileLock.try_acquire

    def lost_at_once(lock: FileLock) -> bool:
        acquired = acquire(lock)
        lock.release()
        return acquired

    monkeypatch.setattr(FileLock, "try_acquire", lost_at_once)
    with pytest.raises(ProbeFailed, match="two processes have the same lock"):
        probe_directory(tmp_path)
    assert everything(tmp_path) == []


def test_a_lock_that_is_never_released_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[FileLock] = []
    release = FileLock.release
    monkeypatch.setattr(FileLock, "release", lambda lock: kept.append(lock))
    with pytest.raises(ProbeFailed, match="a released lock is refused"):
        probe_directory(tmp_path)
    for lock in kept:
        release(lock)
    assert everything(tmp_path) == []


def test_the_other_process_has_a_deadline(tmp_path: Path) -> None:
    with pytest.raises(ProbeFailed, match="timed out"):
        probe_directory(tmp_path, timeout=0.001)
    assert everything(tmp_path) == []


def test_probes_of_one_directory_do_not_disturb_each_other(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert all(one.complete for one in pool.map(lambda _: probe_directory(tmp_path), range(8)))
    assert everything(tmp_path) == []


def test_the_command_shows_it(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("smtspool")), "probe", str(tmp_path)]
    shown = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(shown.stdout)["operations"] == dict.fromkeys(Operation, True)
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "advisory lock release" in shown.stdout
    refused = subprocess.run([*command[:2], str(tmp_path / "x")], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 74
    assert "no such directory" in refused.stderr
    assert "Traceback" not in refused.stderr


# -- requirements ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "Full", "-full", "f" * 65, "full state"])
def test_a_name_of_requirements_is_plain(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        Requirements(name, FULL.operations)


def test_requirements_without_a_sync_or_with_half_a_lock_are_refused() -> None:
    for missing in ALWAYS:
        with pytest.raises(ValueError, match="promise nothing"):
            Requirements("x", FULL.operations - {missing})
    for missing in LOCKS:
        with pytest.raises(ValueError, match="both or neither"):
            Requirements("x", FULL.operations - {missing})
    wrong: Any = frozenset({"file_fsync", "directory_fsync"})
    with pytest.raises(TypeError):
        Requirements("x", wrong)


def test_merged_requirements_are_what_any_requires() -> None:
    locks, links = (
        Requirements("locks", ALWAYS | LOCKS),
        Requirements("links", ALWAYS | {Operation.HARD_LINK}),
    )
    assert merged("both", locks, links).operations == ALWAYS | LOCKS | {Operation.HARD_LINK}
    assert len(FULL.operations) == 9


def test_a_capability_is_json(probed: Capability) -> None:
    assert json.loads(json.dumps(probed.to_json()))["schema"] == "smtspool-capability-v1"
