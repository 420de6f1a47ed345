from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from smtspool.files import Directory
from smtspool.profile import Coordinator, Policy
from tests.profile.support import Failing

EAGER = Policy(min_observations=8, min_solver_queries=2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "profile"
    path.mkdir()
    return path


@pytest.fixture
def disk(folder: Path) -> Iterator[Failing]:
    """The folder, on a disk that can be told to refuse."""
    with Directory.open(folder) as directory, Failing(os.dup(directory.fd), str(folder)) as failing:
        yield failing


@pytest.fixture
def restart(disk: Failing) -> Callable[..., Coordinator]:
    """A coordinator that recovers what the one before has left."""

    def make(policy: Policy = EAGER, window: int = 8, **options: object) -> Coordinator:
        return Coordinator(disk, policy=policy, window=window, **options)  # type: ignore[arg-type]

    return make
