"""``smtspool profile``: what was learnt, and whether it may be believed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smtspool.service import Campaign, Settings
from smtspool.service.increments import Increments
from smtspool.service.profiling import Profiling
from smtspool.store import Store
from tests.e2e.campaign import Place

EXIT_MISUSE, EXIT_FINDINGS = 2, 5


def learn(place: Place, *values: int, times: int = 8) -> None:
    """What a service does with telemetry, without the engines that it would start."""
    if values:
        rows = [[7, 8, times * len(values), 0, [[value, times] for value in values]]]
        run = {"empirical_value_profile_context": "a" * 64, "empirical_value_profiles": rows}
        (place.root / "spool" / "telemetry" / "run.json").write_text(json.dumps(run))
    campaign = Campaign.open(place.root)
    profiling = Profiling(
        campaign, Settings(), Increments(), admits=True, open_store=lambda: Store.open(campaign.store)
    )
    profiling.begin()
    profiling.close()


def rewrite(path: Path, change: Any) -> None:
    members = json.loads(path.read_text())
    change(members)
    path.write_text(json.dumps(members))


@pytest.fixture
def learnt(place: Place) -> Place:
    place.run("init", place.root)
    learn(place, 3, 5)
    return place


@pytest.mark.parametrize("what", ["show", "verify"])
@pytest.mark.parametrize("served", [False, True], ids=["never served", "served without telemetry"])
def test_before_anything_was_learnt_it_says_what_to_do(place: Place, what: str, served: bool) -> None:
    place.run("init", place.root)
    if served:
        learn(place)
    said = place.run("profile", place.root, what, code=EXIT_MISUSE).stderr
    assert "spool/telemetry" in said


def test_runs_without_a_domain_are_no_finding(place: Place) -> None:
    place.run("init", place.root)
    learn(place, 3, times=1)
    assert place.run("profile", place.root, "verify").stdout == "state.json: sound\n"


@pytest.mark.parametrize("missing", [["current.runtime"], ["state.json"], ["current.runtime", "generations"]])
def test_a_missing_file_that_another_speaks_of_is_a_finding(learnt: Place, missing: list[str]) -> None:
    folder = learnt.root / "store" / "profile"
    for name in missing:
        (folder / name).rename(learnt.folder / name)
    documents = learnt.documents("profile", learnt.root, "verify", "--json", code=EXIT_FINDINGS)
    assert {one["file"] for one in documents if one["fault"]} == set(missing)


def test_what_was_learnt_is_shown(learnt: Place) -> None:
    assert "3 5" in learnt.run("profile", learnt.root, "show").stdout
    [document] = learnt.documents("profile", learnt.root, "--json")
    assert document["schema"] == "smtspool-profile-v1"
    assert document["domains"] == [{"context": "a" * 64, "site": 7, "bits": 8, "values": [3, 5]}]
    assert (document["dirty"], document["served"], document["generations_published"]) == (False, True, 1)


def test_records_that_lead_elsewhere_are_a_finding(learnt: Place) -> None:
    assert "1 records replayed" in learnt.run("profile", learnt.root, "replay").stdout
    state = learnt.root / "store" / "profile" / "state.json"
    rewrite(
        state, lambda members: members["records"][0]["empirical_value_profiles"][0][4][0].__setitem__(0, 4)
    )
    said = learnt.run("profile", learnt.root, "replay", code=EXIT_FINDINGS).stdout
    assert "the records lead elsewhere" in said
    assert "sound" in learnt.run("profile", learnt.root, "verify").stdout  # each file is, in itself


@pytest.mark.parametrize("file", ["current.runtime", "state.json", "artifact"])
def test_a_damaged_file_is_found_by_name_and_repaired_by_the_next_service(learnt: Place, file: str) -> None:
    folder = learnt.root / "store" / "profile"
    path = next((folder / "generations").iterdir()) if file == "artifact" else folder / file
    path.write_bytes(path.read_bytes()[:-20])
    documents = learnt.documents("profile", learnt.root, "verify", "--json", code=EXIT_FINDINGS)
    assert path.name in {one["file"].split("/")[-1] for one in documents if one["fault"]}
    learnt.run("serve", learnt.root, "--once")
    learnt.run("profile", learnt.root, "verify")
    learnt.run("profile", learnt.root, "replay")


def test_looking_changes_nothing(learnt: Place) -> None:
    folder = learnt.root / "store" / "profile"
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    for what in ("show", "replay", "verify"):
        learnt.run("profile", learnt.root, what)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
