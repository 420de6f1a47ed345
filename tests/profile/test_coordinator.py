"""Publishing: what becomes a generation, what does not, and what a disk that refuses leaves (F305 §3.3)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from smtspool.errors import ConfigError
from smtspool.profile import Coordinator, Policy, parse_artifact
from tests.profile.support import (
    RUNTIME,
    STATE,
    UNWRITABLE,
    Failing,
    document,
    domains,
    probed,
    rewrite,
    saw,
    served,
)

Restart = Callable[..., Coordinator]


def counted(coordinator: Coordinator, *names: str) -> list[int]:
    told = coordinator.snapshot().to_json()
    return [told[name] for name in names]


def test_the_archived_scenario_of_f305(restart: Restart, folder: Path, disk: Failing) -> None:
    first = restart()
    first.observe(document(saw(1)))
    assert domains(first.publish()) == {7: (1,)}

    rewrite(folder, records=[document(saw(2))])  # drift under an unchanged label

    second = restart()
    assert second.dirty
    assert counted(second, "recovery_replays", "recovery_replay_mismatches") == [1, 1]
    assert second.serve() is None
    assert domains(second.publish()) == {7: (2,)}
    assert not second.dirty

    second.observe(document(saw(3)))
    disk.before = {STATE}
    assert domains(second.publish(force=True)) == {7: (2, 3)}
    assert second.dirty
    assert domains(second.serve()) == {7: (2, 3)}

    disk.before = set()
    assert second.publish(force=True) is None  # no telemetry since
    assert not second.dirty
    assert counted(
        second,
        "generations_published",
        "recovery_replays",
        "recovery_replay_mismatches",
        "checkpoint_failures",
        "semantic_noops",
        "publication_failures",
    ) == [3, 1, 1, 1, 1, 0]
    assert not restart().dirty
    artifacts = os.listdir(folder / "generations")
    assert len(artifacts) == 3
    for name in artifacts:
        assert parse_artifact((folder / "generations" / name).read_bytes())[0] == name.removesuffix(".json")


def test_each_file_is_written_after_what_it_refers_to(restart: Restart, disk: Failing) -> None:
    one = restart()
    one.observe(document(saw(1)))
    one.publish()
    assert disk.written == ["artifact", RUNTIME, STATE]
    one.observe(document(saw(1)))
    one.publish(force=True)
    assert disk.written[3:] == [STATE]


def test_workers_observations_meet_and_only_a_new_domain_is_a_new_generation(restart: Restart) -> None:
    one = restart(interval_s=0.0)
    one.observe(document(saw(1, times=4)))
    assert one.publish() is None
    one.observe(document(saw(1, times=4)))
    first = one.publish()
    assert domains(first) == {7: (1,)}
    one.observe(document(saw(1)))
    assert one.publish() is None
    assert one.serve() == first
    one.observe(document(saw(2)))
    assert domains(one.publish()) == {7: (1, 2)}
    assert counted(one, "semantic_noops", "generations_published") == [1, 2]


def test_a_domain_that_is_none_any_more_is_withdrawn_and_the_last_one_by_a_tombstone(
    restart: Restart,
) -> None:
    one = restart()
    one.observe(document(saw(1), saw(5, site=8)))
    one.publish()
    one.observe(document(saw(2, 3, 4, 5)))
    assert domains(one.publish(force=True)) == {8: (5,)}
    one.observe(document(saw(6, 7, 8, 9, site=8)))
    tombstone = one.publish(force=True)
    assert tombstone is not None
    assert tombstone.profile_count == 0
    assert one.serve() == tombstone
    assert restart().serve() == tombstone


def test_nothing_observed_is_nothing_written(restart: Restart, folder: Path) -> None:
    one = restart()
    assert one.publish(force=True) is None
    assert not one.observe({"empirical_value_profiles": []})
    assert not one.dirty
    assert one.publish(force=True) is None
    assert os.listdir(folder) == []


def test_the_window_forgets_the_oldest(restart: Restart) -> None:
    one = restart(window=2)
    for value in (1, 2, 3):
        one.observe(document(saw(value)))
    assert domains(one.publish()) == {7: (2, 3)}
    assert len(one.records) == 2


def test_the_window_forgets_what_memory_cannot_hold(restart: Restart) -> None:
    one = restart(window=8)
    large = document(*UNWRITABLE[:3000])  # more than 8 MB as text
    for _ in range(6):
        one.observe(large)
    assert 2 <= len(one.records) <= 4
    assert sum(len(record.text) for record in one.records) <= 32 << 20
    assert one.snapshot().counters.records_observed == 6


def test_a_suppressed_domain_comes_back_when_the_evidence_has_aged_out(restart: Restart) -> None:
    one = restart(Policy(min_solver_queries=2, min_solver_time_us=0), window=2)
    one.observe(document(saw(1), feedback=[probed(1)[:-1]]))
    one.observe(document(saw(1), feedback=[probed(1)[:-1]]))
    assert one.publish(force=True) is None  # suppressed before it was ever published: there is nothing to say
    one.observe(document(saw(1)))
    assert domains(one.publish(force=True)) == {7: (1,)}


def test_cost_suppresses_only_above_the_floor(restart: Restart) -> None:
    one = restart(Policy(min_solver_queries=2), window=3)
    one.observe(document(saw(1), feedback=[probed(1, cost_us=400)]))
    one.observe(document(saw(1), feedback=[probed(1, cost_us=400)]))
    assert domains(one.publish(force=True)) == {7: (1,)}
    one.observe(document(saw(1), feedback=[probed(1, cost_us=400)]))
    withdrawn = one.publish(force=True)
    assert withdrawn is not None
    assert (withdrawn.profile_count, withdrawn.suppressed_count) == (0, 1)
    one.observe(document(saw(1)))
    assert domains(one.publish(force=True)) == {7: (1,)}
    assert counted(one, "suppression_generations", "profiles_suppressed") == [1, 1]


def test_publishing_is_throttled_and_catches_up_without_telemetry(disk: Failing) -> None:
    now = [0.5]
    one = Coordinator(disk, interval_s=10.0, clock=lambda: now[0])
    one.observe(document(saw(1)))
    assert one.publish() is not None  # the first, however young the clock
    one.observe(document(saw(2)))
    now[0] = 10.4
    assert one.publish() is None
    assert one.dirty
    now[0] = 10.5
    assert domains(one.publish()) == {7: (1, 2)}


def test_a_failed_attempt_waits_like_any_other(disk: Failing) -> None:
    now = [0.0]
    one = Coordinator(disk, interval_s=10.0, clock=lambda: now[0])
    disk.before = {RUNTIME}
    one.observe(document(saw(1)))
    assert one.publish() is None
    disk.before = set()
    now[0] = 9.0
    assert one.publish() is None
    now[0] = 10.0
    assert one.publish() is not None


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("file", ["artifact", RUNTIME])
def test_a_failed_publication_stays_dirty_serves_nothing_and_is_made_good(
    restart: Restart, disk: Failing, folder: Path, file: str, when: str
) -> None:
    one = restart()
    one.observe(document(saw(1)))
    old = one.publish()
    setattr(disk, when, {file})
    one.observe(document(saw(2)))
    assert one.publish(force=True) is None
    assert one.dirty
    assert one.serve() is None  # what was published before is not what the records say
    assert counted(one, "publication_failures", "checkpoint_failures") == [1, 0]
    assert old is not None
    assert one.snapshot().current_version == old.version

    setattr(disk, when, set())
    assert domains(one.publish(force=True)) == {7: (1, 2)}
    assert not one.dirty
    assert served(restart().serve()) == served(one.serve())


def test_a_runtime_that_landed_though_its_write_failed_is_not_left_there(
    restart: Restart, disk: Failing
) -> None:
    one = restart(window=1)
    one.observe(document(saw(1)))
    one.publish()
    one.observe(document(saw(2)))
    disk.after = {RUNTIME}
    one.publish(force=True)
    disk.after = set()
    one.observe(document(saw(1)))  # back to what was published, in memory
    assert domains(one.publish(force=True)) == {7: (1,)}
    assert not one.dirty
    again = restart(window=1)
    assert not again.dirty
    assert served(again.serve()) == served(one.serve())


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_failed_checkpoint_is_counted_and_retried_until_it_is_written(
    restart: Restart, disk: Failing, when: str
) -> None:
    one = restart()
    setattr(disk, when, {STATE})
    one.observe(document(saw(1)))
    generation = one.publish()
    assert generation is not None
    assert one.serve() == generation
    for failures in (2, 3):
        assert one.publish(force=True) is None
        assert one.dirty
        assert counted(one, "checkpoint_failures", "semantic_noops") == [failures, 0]
    setattr(disk, when, set())
    assert one.publish(force=True) is None
    assert not one.dirty
    assert counted(one, "checkpoint_failures", "semantic_noops", "publication_failures") == [3, 1, 0]
    assert one.publish(force=True) is None  # clean: nothing is tried
    assert counted(restart(), "checkpoint_failures", "semantic_noops") == [3, 1]


def test_a_folder_for_artifacts_that_cannot_be_made_is_a_failed_publication(
    restart: Restart, folder: Path
) -> None:
    (folder / "generations").write_text("in the way")
    one = restart()
    one.observe(document(saw(1)))
    assert one.publish() is None
    assert one.dirty
    assert counted(one, "publication_failures") == [1]
    (folder / "generations").unlink()
    assert one.publish(force=True) is not None


def test_a_build_that_raises_is_contained_and_counted(
    restart: Restart, caplog: pytest.LogCaptureFixture
) -> None:
    one = restart(window=2)
    one.observe(document(saw(1)))
    one.publish()
    one.observe(document(*UNWRITABLE))
    assert one.publish(force=True) is None
    assert one.dirty
    assert one.serve() is None
    assert counted(one, "publication_failures") == [1]
    assert "cannot be built from" in caplog.text

    again = restart(window=2)
    assert again.dirty
    assert again.serve() is None
    assert counted(again, "recovery_replays", "recovery_replay_mismatches") == [1, 1]
    again.observe(document(saw(1)))
    again.observe(document(saw(2)))
    assert domains(again.publish(force=True)) == {7: (1, 2)}


def test_eight_artifacts_are_kept_and_what_dead_writers_left_is_removed(
    restart: Restart, folder: Path
) -> None:
    one = restart(window=1)
    (folder / "generations").mkdir()
    for litter in (folder / ".0123.tmp", folder / "generations" / ".4567.tmp"):
        litter.write_text("half a file")
    for value in range(12):
        one.observe(document(saw(value)))
        one.publish(force=True)
    assert len(os.listdir(folder / "generations")) == 8
    assert sorted(os.listdir(folder)) == [RUNTIME, "generations", STATE]
    assert restart(window=1).serve() == one.serve()


def test_what_probers_consumed_is_summed(restart: Restart) -> None:
    one = restart()
    one.observe(document(saw(1), empirical_domain_attempts=3, empirical_domain_sat=True))
    one.observe(document(saw(1), empirical_domain_attempts=2**64 - 2))
    told = one.snapshot().to_json()
    assert told["empirical_domain_attempts"] == 2**64 - 1
    assert told["empirical_domain_sat"] == 0
    one.publish()
    assert restart().snapshot().to_json()["empirical_domain_attempts"] == 2**64 - 1


@pytest.mark.parametrize("window", [0, 10_001])
def test_a_window_out_of_range_is_refused(disk: Failing, window: int) -> None:
    with pytest.raises(ConfigError, match="window"):
        Coordinator(disk, window=window)
