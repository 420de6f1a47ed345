"""Observing the inputs of a qualification never raises and never repeats (F356, F357)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from smtspool.cluster import TEXT_LIMIT, Capability, Observation, boot_id, heartbeat_error, observe_inputs


def fails(error: BaseException) -> Callable[[], Any]:
    def provider() -> Any:
        raise error

    return provider


def test_what_is_there_is_observed(probed: Capability) -> None:
    assert observe_inputs(lambda: probed, lambda: "host") == Observation(probed, "host", boot_id(), "")


def test_the_boot_id_is_the_kernels() -> None:
    assert boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert len(boot_id()) == 36


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 36, b"masked\n", b"0" * 36, (b"%s\n" % str(UUID(int=1)).encode()) * 2]
)
def test_a_boot_id_that_is_none_is_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "boot_id").write_bytes(content)
    assert boot_id(tmp_path / "boot_id") == ""


def test_a_boot_id_that_cannot_be_read_is_empty(tmp_path: Path) -> None:
    assert boot_id(tmp_path / "gone") == ""
    assert boot_id(tmp_path) == ""


def test_a_boot_id_that_raises_is_an_error(probed: Capability, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smtspool.cluster.observation.boot_id", fails(LookupError("no kernel")))
    seen = observe_inputs(lambda: probed, lambda: "host")
    assert (seen.boot, seen.error) == ("", "the boot id of this machine cannot be read: no kernel")


def test_both_are_asked_once_and_their_errors_are_joined_in_order() -> None:
    asked: list[str] = []

    def provider(name: str) -> Callable[[], Any]:
        def ask() -> Any:
            asked.append(name)
            raise LookupError(f"no {name}\n")

        return ask

    seen = observe_inputs(provider("probe"), provider("name"), local_error="lease lost")
    assert asked == ["probe", "name"]
    assert seen.capability is None
    assert seen.processor == ""
    assert seen.error == (
        "lease lost; the shared directory cannot be probed: no probe; the host has no name: no name"
    )


@pytest.mark.parametrize("wrong", [None, "capability", object])
def test_a_probe_that_gives_something_else_is_an_error(wrong: Any) -> None:
    assert observe_inputs(lambda: wrong, lambda: "host").error == "the probe gave no capability"


@pytest.mark.parametrize("wrong", ["", "a\0b", "x" * 256, b"host", None, "\udcff"])
def test_a_name_that_is_none_is_an_error(probed: Capability, wrong: Any) -> None:
    seen = observe_inputs(lambda: probed, lambda: wrong)
    assert (seen.processor, seen.error) == ("", "the name of this host is unusable")


def test_a_local_error_stays_and_must_be_a_text(probed: Capability) -> None:
    assert observe_inputs(lambda: probed, lambda: "h", local_error="why").error == "why"
    wrong: Any = 7
    assert (
        observe_inputs(lambda: probed, lambda: "h", local_error=wrong).error == "the local error is no text"
    )


def test_the_error_is_bounded(probed: Capability) -> None:
    seen = observe_inputs(fails(LookupError("x" * 9000)), fails(LookupError("y" * 9000)))
    assert len(seen.error) == TEXT_LIMIT


def test_signals_pass(probed: Capability) -> None:
    with pytest.raises(KeyboardInterrupt):
        observe_inputs(fails(KeyboardInterrupt()), lambda: "host")
    with pytest.raises(SystemExit):
        observe_inputs(lambda: probed, fails(SystemExit()))
    with pytest.raises(KeyboardInterrupt):
        heartbeat_error(fails(KeyboardInterrupt()))


def test_a_heartbeat_beats_once_and_says_how_many_leases_were_lost() -> None:
    beats: list[int] = []

    def beat() -> int:
        beats.append(1)
        return 3

    assert heartbeat_error(beat) == ""
    assert len(beats) == 1


@pytest.mark.parametrize("wrong", [-1, True, None, 1.0, [1]])
def test_a_heartbeat_that_does_not_count_has_failed(wrong: Any) -> None:
    assert heartbeat_error(lambda: wrong).startswith("work lease heartbeat failed: ")


def test_a_heartbeat_that_raises_is_a_bounded_error() -> None:
    assert heartbeat_error(fails(LookupError("disk\n\0"))) == "work lease heartbeat failed: disk"
    assert len(heartbeat_error(fails(OSError("x" * 9000)))) == TEXT_LIMIT
