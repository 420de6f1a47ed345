"""``serve --trace`` records, ``trace check`` explains each line by the model or names the first it cannot."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from smtspool.service import Campaign
from smtspool.spool import Spool
from tests.e2e.campaign import COMMAND, Place

QUERY = "(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= x #x{:02x}))(check-sat)"


@pytest.fixture
def recording(place: Place) -> Path:
    """Two runs of the service over good and bad files; a name comes again, and no pass may last."""
    campaign = place.create(*((f"{n:02}.smt2", QUERY.format(n)) for n in range(6)), ("bad.smt2", "(assert"))
    file = place.folder / "trace.ndjson"
    place.run("serve", campaign.root, "--once", "--trace", file, SMTSPOOL_BATCH="16")
    with Spool.open(Campaign.open(campaign.root).spool) as spool:
        spool.submit_many((f"{n:02}.smt2", QUERY.format(n).encode()) for n in range(5, 35))
    hasty = {"SMTSPOOL_BATCH": "1", "SMTSPOOL_SCAN_BUDGET_SECONDS": "0.01"}
    place.run("serve", campaign.root, "--once", "--trace", file, **hasty)
    return file


@pytest.mark.slow
def test_what_the_service_does_is_explained(place: Place, recording: Path) -> None:
    steps = recording.read_text().count('"consumer"')
    told = place.run("trace", "check", recording).stdout
    assert f"{steps} lines, all explained" in told
    assert re.search(r"solving: \d+ lines in \d+ windows of \d+ kinds, all explained", told)
    assert recording.read_text().count('"action": "List"') >= 3, "the second run was cut into passes"


@pytest.mark.slow
def test_a_line_that_is_missing_in_the_middle_is_missed(place: Place, recording: Path) -> None:
    lines = recording.read_text().splitlines(keepends=True)
    commit = next(index for index, line in enumerate(lines) if '"Commit"' in line)
    recording.write_text("".join(lines[:commit] + lines[commit + 1 :]))
    told = place.run("trace", "check", recording, code=5).stdout
    assert "no step of the model explains the next" in told
    assert "enabled there: Commit\n" in told


@pytest.mark.slow
def test_what_is_no_whole_recording_is_an_error(place: Place, recording: Path) -> None:
    whole = recording.read_text()
    for text, why in (
        ("", "is empty"),
        (whole[:-9], "is cut"),
        (whole.replace("smtspool-trace-v1", "another", 1), "not a recording of"),
        (whole.splitlines(keepends=True)[0], "has no step"),
    ):
        recording.write_text(text)
        assert why in place.run("trace", "check", recording, code=2).stderr
    assert "No such file" in place.run("trace", "check", "nowhere", code=74).stderr


def test_without_a_checkout_the_command_says_where_to_run_it(tmp_path: Path) -> None:
    package = tmp_path / "smtspool"
    shutil.copytree(Path(sys.modules["smtspool"].__file__ or "").parent, package)
    done = subprocess.run(
        [sys.executable, "-c", "from smtspool.cli import main; main()", "trace", "check", "t.ndjson"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "in a checkout of its sources" in done.stderr
    assert Path(COMMAND).exists()
