"""What ``deploy/`` says of the product is true of it."""

from __future__ import annotations

import configparser
import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from smtspool import cli
from smtspool.service import Settings

ROOT = Path(__file__).parent.parent
CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text()
STEPS = re.findall(r"^([A-Z]+) +((?:.*\\\n)*.*)$", CONTAINERFILE, re.MULTILINE)


@pytest.fixture(scope="module")
def unit() -> configparser.SectionProxy:
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((ROOT / "deploy" / "smtspool@.service").read_text())
    return parser["Service"]


def test_the_unit_starts_what_exists_and_tells_systemd_how_it_is(unit: configparser.SectionProxy) -> None:
    program, command, *_ = unit["ExecStart"].split()
    assert Path(program).name == "smtspool"
    assert command in cli.COMMANDS
    assert unit["Type"] == "notify"
    assert int(unit["WatchdogSec"]) > 0
    assert unit["OOMPolicy"] == "continue"


def test_the_unit_s_user_is_made_by_the_file_beside_it(unit: configparser.SectionProxy) -> None:
    lines = (ROOT / "deploy" / "smtspool.sysusers").read_text().splitlines()
    assert [line.split()[1] for line in lines if line.startswith("u ")] == [unit["User"]]


def test_both_give_a_drain_its_time(unit: configparser.SectionProxy) -> None:
    assert int(unit["TimeoutStopSec"]) > Settings().drain_seconds
    assert f"--stop-timeout {unit['TimeoutStopSec']} " in CONTAINERFILE


def test_the_image_is_built_from_what_exists_and_from_nothing_else() -> None:
    sources = [word for step, rest in STEPS if step == "COPY" for word in rest.split()[:-1]]
    assert sources
    assert all((ROOT / source).exists() for source in sources)
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] not in ("", "#")]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == set(sources)
    hidden = [rule.removeprefix("**/") for rule in rules[1:] if not rule.startswith("!")]
    assert any(fnmatch("smtspool.egg-info", rule) for rule in hidden)


def test_the_container_is_nobody_s_root_and_says_whether_it_is_well() -> None:
    steps = dict(STEPS)
    assert int(steps["USER"]) > 0
    check = json.loads(steps["HEALTHCHECK"].partition("CMD ")[2])
    entry, command = json.loads(steps["ENTRYPOINT"]), json.loads(steps["CMD"])
    assert check[:1] == entry
    assert {check[1], command[0]} <= set(cli.COMMANDS)
    assert check[2] == command[1]
