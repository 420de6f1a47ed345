"""A bundled engine is one row of one table: a copy of the package gets a fourth, and all of it knows."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import smtspool
from smtspool.solve import BUNDLED, ENGINES

ROOT = Path(__file__).parents[2]

# A row, and the module that it names: Z3 under another name, dear to solve with and cheap to check with.
ROW = 'ENGINES: tuple[Bundled, ...] = (\n    Bundled("fourth", "pip", "fourth:Fourth", Costs(7.5, 0.5)),'
MODULE = """
from .z3_wheel import Z3Engine

class Fourth(Z3Engine):
    pass
"""

# What a package with the fourth row says of its engines, wherever it says something of them.
ACCOUNT = """
import json, sys
import smtspool
from smtspool.cli import app  # the module of the options
from smtspool.service import versions
from smtspool.solve import BUNDLED, ForkServer, HedgePolicy, Portfolio, parse_engine
from smtspool.solve.hedging import _prior
from smtspool.solve.verification import Verifier
from smtspool.query import parse_smt2

[query] = parse_smt2("(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (bvult #x20 x))(check-sat)")
servers = [ForkServer(parse_engine(name)) for name in ("fourth", "bitwuzla")]
policy = HedgePolicy(mode="fixed")
with servers[0], servers[1], Portfolio(servers, policy=policy, confirm="engine") as portfolio:
    answer = portfolio.solve(query, timeout_s=60)
    checks = {name: cost.ms for name, cost in portfolio._verifier._costs.items()}
print(json.dumps({
    "bundled": BUNDLED,
    "settings": smtspool.Settings().engines,
    "check": smtspool.check.__kwdefaults__["engines"],
    "versions": list(versions()),
    "prior": _prior("fourth").usual,
    "check_ms": checks["fourth"],
    "answer": [answer.status, *sorted([answer.engine, answer.verified_by])],
    "home": smtspool.__file__,
}))
"""


@pytest.fixture(scope="module")
def with_a_fourth(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a Python whose ``smtspool`` has a fourth bundled engine."""
    home = tmp_path_factory.mktemp("fourth")
    copy = home / "smtspool"
    shutil.copytree(Path(smtspool.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    table = copy / "solve" / "bundled.py"
    before, head, rows = table.read_text().partition("ENGINES: tuple[Bundled, ...] = (")
    assert head
    table.write_text(before + ROW + rows)
    (copy / "solve" / "engines" / "fourth.py").write_text(MODULE)
    return {**os.environ, "PYTHONPATH": str(home)}


def output(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=120
    ).stdout


def test_a_row_and_a_module_are_an_engine(with_a_fourth: dict[str, str]) -> None:
    told = json.loads(output(with_a_fourth, "-c", ACCOUNT))
    assert told.pop("home").startswith(with_a_fourth["PYTHONPATH"])
    four = ["fourth", *BUNDLED]
    assert told == {
        "bundled": four,
        "settings": four,
        "check": four,
        "versions": ["smtspool", *four, "Python"],
        "prior": 7.5,
        "check_ms": 0.5,
        "answer": ["sat", "bitwuzla", "fourth"],
    }


def test_help_and_settings_file_name_it(with_a_fourth: dict[str, str], tmp_path: Path) -> None:
    shown = " ".join(output(with_a_fourth, "-m", "smtspool", "solve", "--help").split())
    assert f"fourth, {', '.join(BUNDLED)} or NAME=COMMAND" in shown
    output(with_a_fourth, "-m", "smtspool", "init", str(tmp_path / "campaign"))
    assert '"fourth"' in (tmp_path / "campaign" / "smtspool.toml").read_text()


def test_every_wheel_is_required() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {re.split(r"[<>=]", requirement)[0] for requirement in project["dependencies"]}
    assert {engine.package for engine in ENGINES} <= required


def test_no_other_module_lists_the_engines() -> None:
    code = Path(smtspool.__file__).parent
    table = code / "solve" / "bundled.py"
    texts = {path: path.read_text() for path in code.rglob("*.py") if path != table}
    listing = [path for path, text in texts.items() if all(f'"{name}"' in text for name in BUNDLED)]
    assert not listing


@pytest.mark.parametrize("page", ["README.md", "docs/operating.md", "docs/python.md", "docs/dependencies.md"])
def test_the_pages_that_list_the_engines_list_all(page: str) -> None:
    text = (ROOT / page).read_text().lower()
    assert [engine.name for engine in ENGINES if engine.name not in text] == []
