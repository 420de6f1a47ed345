"""Design page 3, "Crash points": a real SIGKILL at every step of a scan, then the next pass converges."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from smtspool.spool import Spool
from tests.spool.conftest import DEADLINE_S
from tests.spool.support import BROKEN, Ledger, assert_in_order, envelope, files, publish, scan, sidecar

NAMES = ("a.json", "b.json", "c.json", "d.json")  # good, broken, a link, good
POINTS = (
    "TryLock",
    "List",
    *(f"{step} {name}" for name in NAMES for step in ("Open", "Verify")),
    "inside-commit",
    "behind-commit",
    "Commit",
    "WriteSidecar b.json",
    "WriteSidecar c.json",
    *(f"Move {name}" for name in NAMES),
    "Release",
)


def fill(root: Path) -> None:
    publish(root, "a.json", envelope(1))
    publish(root, "b.json", BROKEN)
    (root / "incoming" / "c.json").symlink_to("a.json")
    publish(root, "d.json", envelope(2))


@pytest.mark.parametrize("point", POINTS)
def test_a_consumer_killed_after(
    point: str, root: Path, spool: Spool, ledger: Ledger, consumer: Callable[..., subprocess.Popen[str]]
) -> None:
    fill(root)

    assert consumer("--kill", point).wait(DEADLINE_S) == -signal.SIGKILL

    left = files(root)
    assert not left["accepted"] or ledger.stored == 2
    for name in NAMES:
        assert sum(name in names for names in left.values()) == 1
    assert all(f"{name}.error" in left["rejected"] for name in NAMES if name in left["rejected"])

    scan(spool, ledger)
    assert ledger.stored == 2
    assert_in_order(root)
    assert files(root)["accepted"] == {"a.json", "d.json"}
    assert files(root)["rejected"] == {"b.json", "b.json.error", "c.json", "c.json.error"}
    assert sidecar(root, "b.json")["reason"] == "json"


def test_a_leftover_sidecar_under_a_fresh_suffix_is_completed_and_not_duplicated(
    root: Path, spool: Spool, ledger: Ledger, consumer: Callable[..., subprocess.Popen[str]]
) -> None:
    publish(root, "b.json", BROKEN)
    scan(spool, ledger)
    publish(root, "b.json", BROKEN + b"{")
    assert consumer("--kill", "WriteSidecar b.json").wait(DEADLINE_S) == -signal.SIGKILL
    (leftover,) = files(root)["rejected"] - {"b.json", "b.json.error"}

    scan(spool, ledger)

    assert files(root)["rejected"] == {"b.json", "b.json.error", leftover.removesuffix(".error"), leftover}
    assert_in_order(root)


@pytest.mark.parametrize("event", ["vanishes", "turns good"])
def test_a_leftover_sidecar_whose_file(
    event: str, root: Path, spool: Spool, ledger: Ledger, consumer: Callable[..., subprocess.Popen[str]]
) -> None:
    publish(root, "b.json", BROKEN)
    assert consumer("--kill", "WriteSidecar b.json").wait(DEADLINE_S) == -signal.SIGKILL
    assert files(root)["rejected"] == {"b.json.error"}
    if event == "vanishes":
        (root / "incoming" / "b.json").unlink()
    else:
        publish(root, "b.json", envelope(1))

    scan(spool, ledger)

    assert files(root)["rejected"] == set()
    assert_in_order(root)


@pytest.mark.slow
def test_consumers_killed_at_random_moments_lose_and_double_nothing(
    root: Path, spool: Spool, ledger: Ledger, consumer: Callable[..., subprocess.Popen[str]]
) -> None:
    chance = random.Random(364)
    good = broken = kills = 0
    for _ in range(40):
        for _ in range(30):
            good += 1
            publish(root, f"good-{good:05}.json", envelope(good))
        for _ in range(10):
            broken += 1
            publish(root, f"broken-{broken:05}.json", BROKEN)
        child = consumer("--pause", "TryLock")
        assert child.stdout is not None and child.stdin is not None
        assert child.stdout.readline() == "paused\n"
        child.stdin.close()
        try:
            child.wait(chance.uniform(0.0, 0.03))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(DEADLINE_S)
            kills += 1
    assert kills > 0

    scan(spool, ledger)

    assert ledger.stored == good
    assert_in_order(root)
    assert len(files(root)["accepted"]) == good
    assert len(files(root)["rejected"]) == 2 * broken
    assert len(os.listdir(root)) == 4
