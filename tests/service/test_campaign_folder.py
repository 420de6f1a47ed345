"""A campaign folder: everything there after one call, nothing lost by another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from smtspool.errors import InfrastructureError, MisuseError
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


@pytest.mark.parametrize("way", ["link/campaign", "linked", "link/../link/campaign"])
def test_links_in_what_somebody_typed_are_followed(tmp_path: Path, way: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "linked").symlink_to("real/campaign")
    created = Campaign.create(tmp_path / "link" / "campaign")
    assert created.root == tmp_path / "real" / "campaign"
    assert Campaign.open(tmp_path / way) == created
    assert Campaign.create(tmp_path / way) == created


def test_a_path_is_a_text_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Campaign.create("x").root == tmp_path / "x"
    assert Campaign.open("x").root == tmp_path / "x"


def test_a_store_that_is_set_may_be_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    (tmp_path / "campaign").mkdir()
    (tmp_path / "campaign" / "smtspool.toml").write_text(f'store = "{tmp_path}/link/store"\n')
    assert Campaign.create(tmp_path / "campaign").store == tmp_path / "disk" / "store"


def test_no_link_inside_is_followed(tmp_path: Path) -> None:
    campaign = Campaign.create(tmp_path / "campaign")
    campaign.spool.rename(tmp_path / "spool")
    campaign.spool.symlink_to(tmp_path / "spool")
    with pytest.raises(InfrastructureError, match="symbolic link"):
        Campaign.create(tmp_path / "campaign")


def test_a_link_that_leads_nowhere_makes_no_campaign_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "campaign").symlink_to("unmounted/campaign")
    with pytest.raises(MisuseError, match="unmounted/campaign, which does not exist"):
        Campaign.create(tmp_path / "campaign")
    assert not (tmp_path / "unmounted").exists()


def test_links_that_lead_round_in_a_circle_are_no_campaign(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    for use in (Campaign.create, Campaign.open):
        with pytest.raises((OSError, MisuseError)):
            use(tmp_path / "one")


def test_what_is_no_campaign_is_named_as_typed_and_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    said = f"{tmp_path}/link (it leads to {tmp_path}/real) is not a campaign folder"
    with pytest.raises(MisuseError, match=re.escape(said)):
        Campaign.open(tmp_path / "link")


def test_a_file_is_no_campaign(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MisuseError, match="file is not a campaign folder"):
        Campaign.open(tmp_path / "file")


def test_text_is_submitted_as_utf_8(campaign: Campaign) -> None:
    assert campaign.submit([("a.smt2", "; é"), ("b.smt2", b"; x")]) == ["a.smt2", "b.smt2"]
    assert (campaign.spool / "incoming" / "a.smt2").read_bytes() == "; é".encode()


@pytest.mark.parametrize("files", ["a.smt2", ["a.smt2"], ("a.smt2", b"; x"), [("a.smt2", 1)], [("a.smt2",)]])
def test_what_is_no_pair_of_name_and_content_is_a_type_error_in_words(campaign: Campaign, files: Any) -> None:
    with pytest.raises(TypeError, match="submit takes pairs"):
        campaign.submit(files)
    assert list((campaign.spool / "incoming").iterdir()) == []
