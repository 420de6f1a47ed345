"""Settings: later layers win, every value knows where it came from, nothing wrong passes."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smtspool.errors import ConfigError
from smtspool.service import Settings, default_toml, load


def written(folder: Path, text: str) -> Path:
    (folder / "smtspool.toml").write_text(text)
    return folder


def origins(directory: Path | None, **layers: object) -> dict[str, str]:
    _, sources = load(directory, **layers)  # type: ignore[arg-type]
    return {source.name: source.origin for source in sources}


def test_without_any_layer_everything_is_default() -> None:
    settings, sources = load(environment={})
    assert settings == Settings()
    assert {source.origin for source in sources} == {"default"}


def test_the_file_wins_over_the_defaults(tmp_path: Path) -> None:
    settings, _ = load(written(tmp_path, "jobs = 3\n"), environment={})
    assert settings.jobs == 3


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    settings, _ = load(written(tmp_path, "jobs = 3\n"), environment={"SMTSPOOL_JOBS": "4"})
    assert settings.jobs == 4


def test_a_flag_wins_over_the_environment() -> None:
    settings, _ = load(environment={"SMTSPOOL_JOBS": "4"}, flags={"jobs": 5})
    assert settings.jobs == 5


def test_an_absent_flag_is_none_and_wins_over_nothing() -> None:
    settings, _ = load(environment={"SMTSPOOL_JOBS": "4"}, flags={"jobs": None})
    assert settings.jobs == 4


def test_each_value_knows_where_it_came_from(tmp_path: Path) -> None:
    found = origins(
        written(tmp_path, 'order = "fifo"\n'),
        environment={"SMTSPOOL_BATCH": "7"},
        flags={"confirm_unsat": True},
    )
    assert found["order"] == str(tmp_path / "smtspool.toml")
    assert found["batch"] == "SMTSPOOL_BATCH"
    assert found["confirm_unsat"] == "flag"
    assert found["jobs"] == "default"


def test_the_generated_file_says_nothing_and_uncommented_says_the_defaults(tmp_path: Path) -> None:
    assert tomllib.loads(default_toml()) == {}
    uncommented = re.sub(r"^#(?=\w+ = )", "", default_toml(), flags=re.MULTILINE)
    settings, sources = load(written(tmp_path, uncommented), environment={})
    assert settings == Settings()
    assert {source.origin for source in sources} == {str(tmp_path / "smtspool.toml")}


def test_every_setting_stands_in_the_generated_file_with_a_comment() -> None:
    for source in load(environment={})[1]:
        assert re.search(rf"^# .+\n(# .+\n)*#{source.name} = ", default_toml(), flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("1", True), ("ON", True), ("no", False), ("0", False)]
)
def test_the_environment_reads_booleans(text: str, value: bool) -> None:
    settings, _ = load(environment={"SMTSPOOL_CONFIRM_UNSAT": text})
    assert settings.confirm_unsat is value


def test_the_environment_reads_lists() -> None:
    settings, _ = load(environment={"SMTSPOOL_ENGINES": "z3, yices=yices-smt2 --incremental"})
    assert settings.engines == ("z3", "yices=yices-smt2 --incremental")


def test_a_whole_number_will_do_for_a_number(tmp_path: Path) -> None:
    settings, _ = load(written(tmp_path, "lease_seconds = 30\n"), environment={})
    assert settings.lease_seconds == 30.0
    assert isinstance(settings.lease_seconds, float)


def test_variables_of_the_test_suite_are_no_settings() -> None:
    assert load(environment={"SMTSPOOL_CORPUS": "/corpus"})[0] == Settings()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("job = 3", "unknown setting 'job'"),
        ("jobs = '3'", "jobs must be a whole number"),
        ("jobs = true", "jobs must be a whole number"),
        ("jobs = 2.0", "jobs must be a whole number"),
        ("jobs = 0", "jobs must be between 1 and 256"),
        ("jobs = 257", "jobs must be between 1 and 256"),
        ("lease_seconds = nan", "lease_seconds must be between"),
        ("lease_seconds = inf", "lease_seconds must be between"),
        ("poll_seconds = -1", "poll_seconds must be between"),
        ("order = 'random'", "order must be one of dfs, bfs, priority, fifo"),
        ("engines = []", "engines must name at least one engine"),
        ("engines = 'z3'", "engines must be a list of texts"),
        ("engines = [1]", "engines must be a list of texts"),
        ("engines = ['z4']", "no engine 'z4' is bundled"),
        ("engines = ['z3', 'z3=z3 -in']", "each engine needs a name of its own: z3, z3"),
        ("confirm_unsat = 1", "confirm_unsat must be true or false"),
        ("jobs = ", "is not valid TOML"),
        pytest.param("jobs = " + "9" * 5_000, "is not valid TOML", id="more digits than are read"),
        pytest.param("jobs = 0x" + "f" * 5_000, "jobs cannot be", id="more digits than are printed"),
        pytest.param("poll_seconds = " + "9" * 400, "poll_seconds cannot be", id="more than a float can be"),
        ("[jobs]", "jobs must be a whole number"),
    ],
)
def test_a_wrong_line_is_refused_with_its_file(tmp_path: Path, line: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        load(written(tmp_path, line + "\n"), environment={})
    assert "smtspool.toml" in str(caught.value)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "smtspool.toml").write_bytes(b"jobs = \xff\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load(tmp_path, environment={})


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_file_that_is_no_file_is_refused_and_not_waited_for(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "smtspool.toml")
    with pytest.raises(ConfigError, match="not a regular file"):
        load(tmp_path, environment={})


@pytest.mark.parametrize(
    ("variable", "text", "complaint"),
    [
        ("SMTSPOOL_JOB", "3", "unknown setting 'job'"),
        ("SMTSPOOL_JOBS", "many", "jobs must be a whole number"),
        ("SMTSPOOL_JOBS", "0", "jobs must be between"),
        ("SMTSPOOL_LEASE_SECONDS", "nan", "lease_seconds must be between"),
        ("SMTSPOOL_CONFIRM_UNSAT", "maybe", "confirm_unsat must be true or false"),
        ("SMTSPOOL_ENGINES", " , ", "at least one engine"),
        ("SMTSPOOL_ENGINES", "z3,z4", "no engine 'z4' is bundled"),
        ("SMTSPOOL_ORDER", "", "order must be one of"),
    ],
)
def test_a_wrong_variable_is_refused_by_its_name(variable: str, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        load(environment={variable: text})
    assert variable in str(caught.value)


@pytest.mark.parametrize("wrong", [{"jobs": 0}, {"order": "x"}, {"timeout_ms": -5}, {"engines": ()}])
def test_settings_made_in_python_are_checked_too(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Settings(**wrong)


@pytest.mark.parametrize(
    ("flags", "typed"),
    [
        ({"jobs": 0}, "--jobs: "),
        ({"engines": ["none"]}, "--engine: "),
        ({"timeout_ms": 1 << 40}, "--timeout: "),
        ({"metrics_port": -1}, "--metrics-port: "),
    ],
)
def test_a_wrong_flag_is_named_as_it_is_typed(flags: dict[str, Any], typed: str) -> None:
    with pytest.raises(ConfigError, match=f"^{typed}"):
        load(flags=flags)
