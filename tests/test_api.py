"""The public API: what ``import smtspool`` gives, and what it takes."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import smtspool
from smtspool import AdmissionError, Campaign, ConfigError, Reason, Service, Settings, Status
from tests.service.support import equation

ENGINES = ("bitwuzla", "z3")
NAMES = sorted(set(smtspool.__all__) - {"__version__"})


def test_the_names_are_there_to_be_found_and_come_with_help() -> None:
    assert dir(smtspool) == NAMES
    for name in NAMES:
        assert inspect.getdoc(getattr(smtspool, name)), name


def test_help_shows_them_in_a_fresh_interpreter() -> None:
    command = [sys.executable, "-W", "error", "-c", "import smtspool; help(smtspool)"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert all(name in shown for name in NAMES)


def test_a_script_may_be_bytes() -> None:
    [answer] = smtspool.check(equation(1, against=2).encode(), engines=ENGINES)
    assert answer.status is Status.UNSAT


@pytest.mark.parametrize("text", [b"\xff", "\udcff"])
def test_what_is_no_text_is_refused(text: str | bytes) -> None:
    with pytest.raises(AdmissionError) as caught:
        smtspool.check(text, engines=ENGINES)
    assert caught.value.reason is Reason.ENCODING


@pytest.mark.parametrize("wrong", [Path("a.smt2"), 7, None])
def test_what_is_no_script_is_a_type_error_in_words(wrong: object) -> None:
    with pytest.raises(TypeError, match="the script is a str or bytes, not"):
        smtspool.check(wrong)  # type: ignore[arg-type]


def test_one_engine_by_itself_is_a_type_error_in_words() -> None:
    with pytest.raises(TypeError, match="engines is a sequence of names"):
        smtspool.check(equation(1), engines="z3")


def test_settings_are_loaded_by_folder_or_by_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = Campaign.create(tmp_path / "campaign")
    (campaign.root / "smtspool.toml").write_text("jobs = 3\n")
    monkeypatch.setenv("SMTSPOOL_ORDER", "fifo")
    for place in (campaign, campaign.root, str(campaign.root)):
        loaded = Settings.load(place)
        assert (loaded.jobs, loaded.order) == (3, "fifo")
    assert Settings.load().order == "fifo"
    (campaign.root / "smtspool.toml").write_text("jobs = -1\n")
    with pytest.raises(ConfigError, match="jobs must be between"):
        Settings.load(campaign)


def test_a_campaign_from_first_to_last(tmp_path: Path) -> None:
    campaign = Campaign.create(str(tmp_path / "campaign"))
    (campaign.root / "smtspool.toml").write_text('engines = ["bitwuzla", "z3"]\njobs = 1\n')
    assert campaign.submit([("a.smt2", equation(1).encode())]) == ["a.smt2"]
    with Service(str(campaign.root), once=True) as service:
        assert service.settings.jobs == 1
        service.join()
    [result] = campaign.results()
    assert result.answer.status is Status.SAT
    assert list(campaign.results(after=result.number)) == []
