from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from smtspool.store import Store
from tests.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(directory: Path, clock: Clock) -> Iterator[Store]:
    """An open store that is found sound when the test is done with it."""
    with Store.open(directory, create=True, clock=clock) as opened:
        yield opened
    assert Store.fsck(directory) == []
