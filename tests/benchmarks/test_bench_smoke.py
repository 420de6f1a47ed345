"""Every row runs at its tiny size and gives figures. How large they are is nobody's business here."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.measure import Bench, Size
from benchmarks.rows import ROWS

PEERS = {"queues": ("litequeue", "persistqueue", "huey"), "pysmt": ("pysmt",)}
QUICK = {"actions", "admission", "queue", "queues"}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ROWS]
)
def test_a_row_gives_figures(name: str, tmp_path: Path) -> None:
    for module in PEERS.get(name, ()):
        pytest.importorskip(module, reason=f"{module} is a peer: `make bench` installs it")
    rows = list(ROWS[name].run(Bench(Size.TINY, seed=1, work=tmp_path, corpus=None)))
    assert rows
    for row in rows:
        assert math.isfinite(row.figure)
        assert row.spread[0] <= row.spread[1] or "quartiles" in row.note
        assert row.against or row.theirs is None


def test_the_json_says_what_was_measured_and_on_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "bench.json"
    assert main(["actions", "--tiny", "--json", "--work", str(tmp_path), "--output", str(output)]) == 0
    document = json.loads(output.read_text())
    assert json.loads(capsys.readouterr().out) == document
    assert document["size"] == "tiny"
    assert document["seed"] == 1
    assert document["machine"]["packages"]["z3-solver"]
    assert document["machine"]["cpus"] >= 1
    assert [row["what"] for row in document["rows"]] == ["action, no observer"]
    assert document["rows"][0]["met"] in (True, False)


def test_the_table_has_a_line_for_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["actions", "--tiny", "--work", str(tmp_path), "--output", str(tmp_path / "bench.json")]) == 0
    printed = capsys.readouterr().out
    assert "action, no observer" in printed
    assert "\x1b" not in printed


def test_an_unknown_row_is_refused_with_the_names_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["speed"])
    assert "admission" in capsys.readouterr().err
