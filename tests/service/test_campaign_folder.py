"""A campaign folder: everything there after one call, nothing lost by another."""

from __future__ import annotations

from pathlib import Path

import pytest

from smtspool.errors import MisuseError
from smtspool.service import Campaign, default_toml


def test_create_makes_everything(tmp_path: Path) -> None:
    campaign = Campaign.create(tmp_path / "deep" / "campaign")
    assert (campaign.root / "smtspool.toml").read_text() == default_toml()
    assert {path.name for path in campaign.spool.iterdir()} >= {"incoming", "accepted", "rejected"}
    assert {path.name for path in campaign.out.iterdir()} == {"results", "inputs"}
    assert (campaign.store / "index.sqlite3").is_file()


def test_create_keeps_what_is_there(tmp_path: Path) -> None:
    campaign = Campaign.create(tmp_path)
    (campaign.root / "smtspool.toml").write_text("jobs = 1\n")
    (campaign.spool / "incoming" / "a.smt2").write_text("(check-sat)")
    assert Campaign.create(tmp_path) == campaign
    assert (campaign.root / "smtspool.toml").read_text() == "jobs = 1\n"
    assert (campaign.spool / "incoming" / "a.smt2").exists()


def test_open_refuses_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="not a campaign folder; create one with: smtspool init"):
        Campaign.open(tmp_path)


def test_open_finds_what_create_made(tmp_path: Path) -> None:
    created = Campaign.create(tmp_path)
    assert Campaign.open(tmp_path) == created
