from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from smtspool.cluster import Capability, probe_directory
from tests.e2e.campaign import Place, placed


@pytest.fixture(scope="session")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Capability:
    """What a real probe saw of a real directory, which is ``Path(probed.root)``."""
    return probe_directory(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def shared(probed: Capability) -> Path:
    return Path(probed.root)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with placed(tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_left(probed: Capability) -> Iterator[None]:
    """Every test ends with the descriptors it began with, and leaves no file in the shared directory."""
    before = set(os.listdir("/proc/self/fd"))
    yield
    assert len(set(os.listdir("/proc/self/fd")) - before) == 0
    assert os.listdir(probed.root) == []
