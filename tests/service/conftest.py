from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from smtspool.service import Campaign
from smtspool.store import Store


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign.create(tmp_path / "campaign")


@pytest.fixture
def store(campaign: Campaign) -> Iterator[Store]:
    with Store.open(campaign.store) as opened:
        yield opened
