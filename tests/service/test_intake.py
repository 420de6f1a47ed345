"""Telemetry files: read stably, kept until their record is on disk, quarantined when they are none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from smtspool.service.intake import Intake
from tests.spool.support import in_child

GOOD = {
    "schema": 3,
    "empirical_value_profile_context": "a" * 64,
    "empirical_value_profiles": [[7, 8, 8, 0, [[1, 8]]]],
    "some_other_counter": 1.5,
}


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    (tmp_path / "spool").mkdir()
    return tmp_path / "spool"


@pytest.fixture
def intake(spool: Path) -> Iterator[Intake]:
    with Intake(spool) as opened:
        yield opened


def publish(spool: Path, name: str, data: bytes | None = None) -> Path:
    path = spool / "telemetry" / name
    hidden = path.with_name(f".{name}")
    hidden.write_bytes(json.dumps(GOOD).encode() if data is None else data)
    hidden.rename(path)
    return path


def names(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


class Window:
    """Where documents go."""

    def __init__(self) -> None:
        self.seen: list[Mapping[str, Any]] = []

    def __call__(self, document: Mapping[str, Any]) -> bool:
        self.seen.append(document)
        return True


def never() -> bool:
    return False


def test_a_file_is_observed_once_and_stays_until_it_is_removed(spool: Path, intake: Intake) -> None:
    window = Window()
    publish(spool, "one.json")
    assert intake.take(window, never)
    assert intake.take(window, never)
    assert window.seen == [GOOD]
    assert names(spool / "telemetry") == ["one.json"]
    intake.remove_taken()
    assert names(spool / "telemetry") == []
    assert intake.accepted == 1


def test_what_was_not_removed_is_observed_again_by_the_next(spool: Path) -> None:
    publish_later = Window()
    with Intake(spool) as first:
        publish(spool, "one.json")
        first.take(Window(), never)
    with Intake(spool) as second:
        second.take(publish_later, never)
    assert len(publish_later.seen) == 1


def test_a_file_that_is_replaced_before_it_is_removed_is_another_one(spool: Path, intake: Intake) -> None:
    window = Window()
    publish(spool, "one.json")
    intake.take(window, never)
    publish(spool, "one.json", json.dumps(GOOD | {"schema": 4}).encode())
    intake.remove_taken()
    assert names(spool / "telemetry") == ["one.json"]
    intake.take(window, never)
    assert [document["schema"] for document in window.seen] == [3, 4]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "json"),
        (b"[]", "json"),
        (b"{} {}", "json"),
        (b'{"a": NaN}', "json"),
        (b'{"a": 1, "a": 1}', "json"),
        (b"\xff", "encoding"),
        (b"{}", "schema"),
        (json.dumps(GOOD | {"empirical_value_profiles": [[7, 8, 9, 0, [[1, 8]]]]}).encode(), "schema"),
        (b" " * ((16 << 20) + 1), "too-large"),
    ],
)  # fmt: skip
def test_what_is_no_telemetry_is_quarantined_with_the_reason(
    spool: Path, intake: Intake, data: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    window = Window()
    publish(spool, "bad.json", data)
    publish(spool, "good.json")
    assert intake.take(window, never)
    assert len(window.seen) == 1
    assert names(spool / "telemetry") == ["good.json"]
    assert names(spool / "rejected-telemetry") == ["bad.json", "bad.json.error"]
    assert json.loads((spool / "rejected-telemetry" / "bad.json.error").read_text())["reason"] == reason
    assert intake.rejected == 1
    assert f"rejected ({reason}): bad.json" in caplog.text


@pytest.mark.parametrize("make", [
    lambda path: path.symlink_to("/etc/passwd"),
    lambda path: path.mkdir(),
    lambda path: os.mkfifo(path),
])  # fmt: skip
def test_what_is_no_file_is_quarantined_unread(
    spool: Path, intake: Intake, make: Callable[[Path], object]
) -> None:
    make(spool / "telemetry" / "odd.json")
    assert intake.take(Window(), never)
    assert names(spool / "telemetry") == []
    assert names(spool / "rejected-telemetry") == ["odd.json", "odd.json.error"]


def test_what_cannot_be_quarantined_stops_nothing_else(
    spool: Path, intake: Intake, caplog: pytest.LogCaptureFixture
) -> None:
    """A directory is moved only for who may write to it; nobody here is root."""
    for folder in (spool / "telemetry", spool / "rejected-telemetry"):
        folder.chmod(0o777)
    publish(spool, "good.json")
    telemetry = os.open(spool / "telemetry", os.O_RDONLY)

    def work() -> None:
        if os.geteuid() == 0:
            os.setresuid(65534, 65534, 65534)
        os.mkdir("a.json", 0o555, dir_fd=telemetry)
        window = Window()
        for _ in range(3):
            assert intake.take(window, never)
        assert (len(window.seen), intake.rejected) == (1, 0)
        assert caplog.text.count("a.json") == 1, "it is told once"
        os.chmod("a.json", 0o755, dir_fd=telemetry)
        for _ in range(2):
            assert intake.take(window, never)
        assert (intake.rejected, intake._quarantine._memory.stuck) == (1, {})

    in_child(work)
    os.close(telemetry)
    assert names(spool / "telemetry") == ["good.json"]
    assert names(spool / "rejected-telemetry") == ["a.json", "a.json.error"]


def test_temporary_names_are_left_to_their_producers(spool: Path, intake: Intake) -> None:
    (spool / "telemetry" / ".half.json").write_text("{")
    (spool / "telemetry" / "half.tmp").write_text("{")
    window = Window()
    assert intake.take(window, never)
    assert window.seen == []
    assert names(spool / "telemetry") == ["half.tmp"]


def test_it_stops_when_it_is_enough(spool: Path, intake: Intake) -> None:
    window = Window()
    for number in range(5):
        publish(spool, f"{number}.json")
    assert not intake.take(window, lambda: len(window.seen) >= 3)
    assert intake.take(window, never)
    assert len(window.seen) == 5


def test_one_service_at_a_time_takes(spool: Path, intake: Intake) -> None:
    publish(spool, "one.json")
    intake.take(Window(), never)
    window = Window()
    with Intake(spool) as other:
        assert other.take(window, never)
        assert window.seen == []
        intake.close()
        assert other.take(window, never)
        assert len(window.seen) == 1


def test_a_report_of_ours_is_telemetry(spool: Path, intake: Intake) -> None:
    intake.submit(json.dumps(GOOD).encode())
    window = Window()
    intake.take(window, never)
    assert window.seen == [GOOD]
