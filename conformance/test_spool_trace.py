"""Recorded runs of real consumers are behaviours of the model; damaged recordings are not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from conformance.engine.trace import TraceError
from conformance.spool import CONTENTS
from conformance.spool_stress import BATCH, Stress, stress
from conformance.spool_trace import check, damage, explain, lines_of
from smtspool.service import traced
from smtspool.spool import Spool
from smtspool.store import Store

SEED = int(os.environ.get("CONFORMANCE_SEED", "364"))


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """One consumer, a good and a bad file, and a pass that finds nothing."""
    with (
        Spool.open(tmp_path / "spool", create=True) as spool,
        Store.open(tmp_path / "store", create=True) as store,
    ):
        spool.submit("a.smt2", CONTENTS["g"])
        spool.submit("b.smt2", CONTENTS["bad"])
        spool.submit("c.smt2", CONTENTS["h"])
        with traced(tmp_path / "trace.ndjson"):
            for _ in range(2):
                spool.scan(store.ingest, consumer="p", budget_s=60.0, batch=2)
    return (tmp_path / "trace.ndjson").read_text()


def test_a_recording_is_explained_whole(recording: str) -> None:
    lines = lines_of(recording)
    (verdict,) = check([lines], batch=2)
    assert verdict.accepted, explain(lines, verdict)


def test_another_batch_size_does_not_explain_it(recording: str) -> None:
    lines = lines_of(recording)
    (verdict,) = check([lines], batch=1)
    assert not verdict.accepted
    assert "line " in explain(lines, verdict)


@pytest.mark.slow
def test_every_systematic_damage_is_rejected(recording: str) -> None:
    lines = lines_of(recording)
    damaged = damage(lines)
    whole, *verdicts = check([lines, *damaged.values()], batch=2)
    assert whole.accepted
    survivors = {name for name, verdict in zip(damaged, verdicts, strict=True) if verdict.accepted}
    assert len(damaged) > 80
    # A recording may end anywhere: without its last line, a pass was simply not over yet.
    assert survivors == {f"line {lines[-1].number} (Release) dropped"}


@pytest.mark.slow
def test_stress_with_kills_is_a_behaviour_and_converges(tmp_path: Path) -> None:
    run = stress(tmp_path, SEED, consumers=3, files=24, kills=5)
    _converged(run)
    lines = lines_of(run.trace.read_text())
    (verdict,) = check([lines], batch=BATCH)
    assert verdict.accepted, f"CONFORMANCE_SEED={SEED}\n{explain(lines, verdict)}"
    assert run.killed == 8
    assert {line.action for line in lines} >= {
        "TryLock",
        "Open",
        "Verify",
        "Commit",
        "WriteSidecar",
        "Move",
        "Crash",
    }


def _converged(run: Stress) -> None:
    """Every file in exactly one place, accepted files stored, rejected ones with their sidecar."""
    folders = {name: set(os.listdir(run.spool / name)) for name in ("incoming", "accepted", "rejected")}
    assert not folders["incoming"]
    bad = {name for name in folders["rejected"] if not name.endswith(".error")}
    assert {f"{name}.error" for name in bad} == folders["rejected"] - bad
    assert len(bad) + len(folders["accepted"]) == run.published
    contents = {(run.spool / "accepted" / name).read_bytes() for name in folders["accepted"]}
    assert contents <= {CONTENTS["g"], CONTENTS["h"]}
    with Store.open(run.store) as store:
        assert store.counts().pending == len(contents)


def _edited(recording: str, edit: str) -> str:
    lines = recording.splitlines(keepends=True)
    if edit == "empty":
        return ""
    if edit == "cut":
        return recording[:-5]
    if edit == "head only":
        return lines[0]
    if edit == "no head":
        return "".join(lines[1:])
    if edit == "foreign":
        return "".join([json.dumps({"schema": "another-trace-v9"}) + "\n", *lines[1:]])
    if edit == "standing still":
        return "".join([*lines[:3], lines[2], *lines[3:]])
    assert edit == "no clock"
    document = json.loads(lines[2])
    del document["clock"]
    return "".join([*lines[:2], json.dumps(document) + "\n", *lines[3:]])


@pytest.mark.parametrize(
    "edit", ["empty", "cut", "head only", "no head", "foreign", "standing still", "no clock"]
)
def test_a_recording_that_is_not_whole_is_an_error(recording: str, edit: str) -> None:
    with pytest.raises(TraceError):
        lines_of(_edited(recording, edit))
