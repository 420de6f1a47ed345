"""Races of the real engines under kills: nothing lost, nothing left, every line a step of the model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from conformance import recording as recordings
from conformance.cancellation.windows import SOLVING, check, steps, windows
from conformance.engine.trace import Recorded, TraceError
from conformance.protocols import check_file
from conformance.race.stress import stress
from smtspool.query import Query, parse_smt2
from smtspool.service import traced
from smtspool.solve import Cancellation, CancelReason, ForkServer, Hedge, HedgePolicy, Portfolio, parse_engine

SEED = int(os.environ.get("CONFORMANCE_SEED", "4"))
RACES = 300


def query(value: int) -> Query:
    text = f"(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= x (_ bv{value} 8)))(check-sat)"
    return parse_smt2(text)[0]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dozen races of two engines; every third is cancelled from outside as soon as it begins."""
    file = tmp_path_factory.mktemp("races") / "trace.ndjson"
    servers = [ForkServer(parse_engine(name)) for name in ("bitwuzla", "z3")]
    with (
        servers[0],
        servers[1],
        traced(file),
        Portfolio(servers, policy=HedgePolicy(Hedge.TOGETHER), name="here:") as portfolio,
    ):
        for number in range(12):
            token = Cancellation()
            if number % 3 == 0:
                token.cancel(CancelReason.USER)
            portfolio.solve(query(number), timeout_s=20, cancel=token)
    return file


def lines_of(file: Path) -> list[Recorded]:
    return recordings.lines_of(file.read_text(), SOLVING)


def check_text(file: Path, lines: Sequence[str]) -> tuple[bool, str]:
    """What ``trace check`` says of a recording with these lines."""
    changed = file.with_name("changed.ndjson")
    changed.write_text("".join(lines))
    (checked,) = check_file(changed)
    return checked.accepted, checked.text


@pytest.mark.slow
def test_races_of_three_engines_lose_no_cancellation_and_leave_nothing() -> None:
    totals = stress(SEED, races=RACES, a_round=RACES // 2)
    assert totals.races == RACES
    assert totals.kills > 5 and totals.cancels > 30 and totals.kinds > 50
    assert {"sat sat", "unsat unsat", "hard unknown"} <= set(totals.statuses)
    assert {"lost-race", "user", "sat", "unsat"} <= set(totals.attempts)
    assert {"deadline", "unknown"} & set(totals.attempts), "an idle machine's engines give up by themselves"


def test_a_recording_of_races_is_explained(recording: Path) -> None:
    accepted, text = check_text(recording, recording.read_text().splitlines(keepends=True))
    assert accepted and "all explained" in text
    checked = check(lines_of(recording))
    assert checked.windows > checked.kinds > 3


def test_windows_that_differ_in_names_only_are_one_kind(recording: Path) -> None:
    lines = lines_of(recording)
    renamed = [
        replace(line, who="1/" + line.who, params={**line.params, "query": f"no {line.params['query']}"})
        if "query" in line.params
        else replace(line, who="1/" + line.who)
        for line in lines
    ]
    assert {steps(window) for window in windows(lines)} == {steps(window) for window in windows(renamed)}


@pytest.mark.slow
def test_a_lost_cancellation_is_found_and_named(recording: Path) -> None:
    lines = recording.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if '"Settle"' in line and '"user"' in line)
    lost = [*lines[:at], lines[at].replace('"user"', '"answered"'), *lines[at + 1 :]]
    accepted, text = check_text(recording, lost)
    assert not accepted and f"no step of the model explains line {at + 1}: " in text


@pytest.mark.slow
@pytest.mark.parametrize("action", ["Register", "Spawn", "Settle", "Retire"])
def test_a_line_that_is_missing_is_missed(recording: Path, action: str) -> None:
    lines = recording.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if f'"{action}"' in line)
    accepted, text = check_text(recording, [*lines[:at], *lines[at + 1 :]])
    assert not accepted and "no step of the model explains" in text


def test_a_recording_of_nothing_that_a_model_has_is_an_error(recording: Path) -> None:
    head, first, *_ = recording.read_text().splitlines(keepends=True)
    with pytest.raises(TraceError, match="no step of cancellation or race or spool_admission"):
        check_text(recording, [head, first.replace('"race"', '"rice"')])
