"""Recovery: what a restart believes, and that it serves nothing else (F305 §3.2)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smtspool.files import Directory
from smtspool.profile import Coordinator, Policy
from smtspool.profile.candidate import materialise
from tests.profile.conftest import EAGER
from tests.profile.support import (
    RUNTIME,
    STATE,
    Document,
    Failing,
    document,
    documents,
    domains,
    rewrite,
    saw,
    served,
)
from tests.profile.test_profile_artifact import older, sealed

Restart = Callable[..., Coordinator]


@pytest.fixture
def published(restart: Restart) -> Coordinator:
    """One domain, on disk, and believed."""
    one = restart()
    one.observe(document(saw(1)))
    one.publish()
    return one


def doubts(coordinator: Coordinator) -> str:
    return " / ".join(coordinator.snapshot().doubts)


def replays(coordinator: Coordinator) -> tuple[int, int]:
    counters = coordinator.snapshot().counters
    return counters.recovery_replays, counters.recovery_replay_mismatches


def test_what_is_as_it_was_left_is_served_at_once_and_nothing_is_written(
    published: Coordinator, restart: Restart, folder: Path
) -> None:
    before = {path: path.stat() for path in folder.rglob("*")}
    again = restart()
    assert not again.dirty
    assert again.serve() == published.serve()
    assert again.records == published.records
    assert replays(again) == (1, 0)
    assert again.publish(force=True) is None
    assert {path: path.stat() for path in folder.rglob("*")} == before


def test_an_empty_folder_is_clean(restart: Restart, folder: Path) -> None:
    one = restart()
    assert not one.dirty
    assert one.serve() is None
    assert os.listdir(folder) == []


def test_drift_under_an_unchanged_label_is_found_by_replay_alone(
    published: Coordinator, restart: Restart, folder: Path
) -> None:
    rewrite(folder, records=[document(saw(2))])
    again = restart()
    assert replays(again) == (1, 1)
    assert again.serve() is None
    assert domains(again.publish(force=True)) == {7: (2,)}


def test_more_of_the_same_values_is_the_same(published: Coordinator, restart: Restart, folder: Path) -> None:
    """The artifact would have another digest; what a prober does would not differ (F305 §3.2)."""
    rewrite(folder, records=[document(saw(1, times=99))])
    again = restart()
    assert replays(again) == (1, 0)
    assert not again.dirty
    assert again.serve() == published.serve()


def test_records_that_lead_to_nothing_are_a_mismatch(
    published: Coordinator, restart: Restart, folder: Path
) -> None:
    rewrite(folder, records=[document(*[[site, 8, 7, 0, [[0, 7]]] for site in range(1, 9)])])
    again = restart()
    assert replays(again) == (1, 1)
    tombstone = again.publish(force=True)
    assert tombstone is not None
    assert tombstone.profile_count == 0


def damage_runtime(folder: Path) -> None:
    with (folder / RUNTIME).open("ab") as file:
        file.write(b"\n")


def damage_artifact(folder: Path) -> None:
    [artifact] = (folder / "generations").iterdir()
    artifact.write_bytes(artifact.read_bytes().replace(b'"count": 8', b'"count": 9'))


def a_folder_in_its_place(folder: Path) -> None:
    (folder / RUNTIME).unlink()
    (folder / RUNTIME).mkdir()


def a_link_in_its_place(folder: Path) -> None:
    (folder / RUNTIME).rename(folder / "elsewhere")
    (folder / RUNTIME).symlink_to("elsewhere")


def a_fifo_in_its_place(folder: Path) -> None:
    (folder / STATE).unlink()
    os.mkfifo(folder / STATE)


DAMAGE: dict[str, tuple[Callable[[Path], object], bool]] = {
    # name: (what happens, whether the same domains are published again)
    "a trailing byte in the runtime": (damage_runtime, True),
    "no runtime": (lambda folder: (folder / RUNTIME).unlink(), True),
    "an empty runtime": (lambda folder: (folder / RUNTIME).write_bytes(b""), True),
    "a runtime that is a link": (
        a_link_in_its_place,
        True,
    ),
    "a runtime that is a folder": (
        a_folder_in_its_place,
        False,  # it cannot be replaced until somebody removes it
    ),
    "a changed artifact": (damage_artifact, True),
    "no artifact": (lambda folder: rmtree(folder / "generations"), True),
    "no state": (lambda folder: (folder / STATE).unlink(), False),
    "a state that is cut": (lambda folder: os.truncate(folder / STATE, 100), False),
    "a state of another schema": (lambda folder: rewrite(folder, schema="v2"), False),
    "a state that is a FIFO": (a_fifo_in_its_place, False),
    "a malformed record": (lambda folder: rewrite(folder, records=[document(saw(1)), {}]), True),
    "records that did not fit": (lambda folder: rewrite(folder, records_complete=False), True),
    "another window": (lambda folder: rewrite(folder, window=5), True),
    "another label": (lambda folder: rewrite(folder, current_artifact_sha256="d" * 64), True),
    "no label": (lambda folder: rewrite(folder, current_artifact_sha256=""), True),
    "a state under another policy": (
        lambda folder: rewrite(folder, policy=replace(EAGER, min_solver_queries=99).to_json()),
        True,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("happens", "again_the_same"), DAMAGE.values(), ids=DAMAGE.keys())
def test_whatever_is_damaged_nothing_is_served_until_it_is_rebuilt(
    published: Coordinator,
    restart: Restart,
    folder: Path,
    happens: Callable[[Path], object],
    again_the_same: bool,
) -> None:
    happens(folder)
    again = restart()
    assert again.dirty
    assert doubts(again)
    assert again.serve() is None
    again.publish(force=True)
    assert served(again.serve()) == (served(published.serve()) if again_the_same else ())
    if not (folder / RUNTIME).is_dir():
        assert not again.dirty
        assert doubts(again) == ""
        clean = restart()
        assert not clean.dirty
        assert served(clean.serve()) == served(again.serve())


def test_a_damaged_runtime_without_a_domain_is_replaced_by_a_tombstone(
    restart: Restart, folder: Path
) -> None:
    (folder / RUNTIME).write_bytes(b"anything")
    one = restart()
    assert one.dirty
    tombstone = one.publish(force=True)
    assert tombstone is not None
    assert tombstone.profile_count == 0
    assert (folder / RUNTIME).read_bytes() == tombstone.content


def test_a_failed_rebuild_serves_nothing(
    published: Coordinator, restart: Restart, folder: Path, disk: Failing
) -> None:
    rewrite(folder, records=[document(saw(2))])
    disk.before = {RUNTIME}
    again = restart()
    for _ in range(3):
        again.publish(force=True)
        assert again.dirty
        assert again.serve() is None
    disk.before = set()
    assert domains(again.publish(force=True)) == {7: (2,)}


def test_a_throttled_rebuild_serves_nothing(published: Coordinator, disk: Failing, folder: Path) -> None:
    rewrite(folder, records=[document(saw(2))])
    now = [0.0]
    again = Coordinator(disk, policy=EAGER, window=8, interval_s=60.0, clock=lambda: now[0])
    disk.before = {"artifact"}
    again.publish()
    disk.before = set()
    now[0] = 59.0
    assert again.publish() is None
    assert again.serve() is None
    now[0] = 60.0
    assert domains(again.publish()) == {7: (2,)}


@pytest.mark.parametrize(
    "changed",
    [
        Policy(min_solver_queries=2, min_observations=7),
        Policy(min_solver_queries=2, max_distinct_values=5),
        Policy(min_solver_queries=3),
        Policy(min_solver_queries=2, min_validated_ratio_ppm=1),
        Policy(min_solver_queries=2, min_solver_time_us=999),
    ],
    ids=["observations", "distinct", "queries", "ratio", "cost"],
)
def test_a_changed_policy_is_a_new_generation_though_the_domains_are_the_same(
    published: Coordinator, restart: Restart, changed: Policy
) -> None:
    again = restart(changed)
    assert again.dirty
    assert again.serve() is None
    assert replays(again) == (1, 0)
    renewed = again.publish(force=True)
    assert renewed is not None
    assert renewed.version != published.snapshot().current_version
    assert served(renewed) == served(published.serve())
    assert not restart(changed).dirty


def test_a_stricter_policy_withdraws_and_a_looser_one_admits(
    published: Coordinator, restart: Restart
) -> None:
    stricter = restart(Policy(min_observations=9))
    tombstone = stricter.publish(force=True)
    assert tombstone is not None
    assert tombstone.profile_count == 0
    assert domains(restart().publish(force=True)) == {7: (1,)}


def test_records_that_came_to_nothing_are_looked_at_again(restart: Restart) -> None:
    strict = restart(Policy(min_observations=9))
    strict.observe(document(saw(1)))
    assert strict.publish() is None
    again = restart()
    assert again.dirty
    assert domains(again.publish(force=True)) == {7: (1,)}


@pytest.mark.parametrize("version", [1, 2])
def test_a_generation_of_an_older_version_is_read_and_renewed(
    restart: Restart, folder: Path, version: int
) -> None:
    data = sealed(older(version))
    _, generation = materialise(data)
    (folder / "generations").mkdir()
    (folder / "generations" / f"{generation.artifact_sha256}.json").write_bytes(data)
    (folder / RUNTIME).write_bytes(generation.content)
    one = restart()
    assert one.snapshot().current_version == generation.version
    assert one.dirty
    assert one.serve() is None
    assert one.publish(force=True) is not None


def test_a_newer_runtime_over_an_older_state_goes_back_to_what_the_records_say(
    restart: Restart, folder: Path, disk: Failing
) -> None:
    one = restart()
    one.observe(document(saw(1)))
    one.publish()
    disk.before = {STATE}
    one.observe(document(saw(2)))
    one.publish(force=True)
    disk.before = set()
    again = restart()  # the process died before it could try again
    assert again.dirty
    assert replays(again) == (1, 1)
    assert again.serve() is None
    assert domains(again.publish(force=True)) == {7: (1,)}


def test_a_disk_that_gives_only_errors_is_survived(published: Coordinator, folder: Path) -> None:
    again = Coordinator(_Broken(-1, str(folder)))
    assert again.serve() is None
    again.observe(document(saw(1)))
    assert again.publish() is None
    assert again.dirty


class _Broken(Directory):
    """A directory whose every file gives EIO."""

    __slots__ = ()

    def open_file(self, name: str, flags: int, mode: int = 0o666) -> int:
        raise OSError(5, "Input/output error", name)

    def child(self, name: str, *, create: bool = False) -> Directory:
        raise OSError(5, "Input/output error", name)


@settings(max_examples=50)
@given(st.lists(documents(), min_size=1, max_size=8), st.integers(1, 6))
def test_replay_comes_to_what_was_published(given_: list[Document], window: int) -> None:
    """Whatever the records: a restart believes the disk, byte for byte, and nothing has to be rebuilt."""
    with TemporaryDirectory() as name, Directory.open(name) as directory:
        one = Coordinator(directory, policy=EAGER, window=window)
        for each in given_:
            one.observe(each)
            one.publish(force=True)
        again = Coordinator(directory, policy=EAGER, window=window)
        assert again.records == one.records
        assert served(again.serve()) == served(one.serve())
        if one.snapshot().current_version:
            assert not again.dirty
            assert replays(again) == (1, 0)
            assert again.serve() == one.serve()
            assert json.loads((Path(name) / STATE).read_text())["current_artifact_sha256"]
