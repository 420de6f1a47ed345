"""Recorded runs of real consumers are behaviours of the model; damaged recordings are not."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from conformance.spool_admission.environment import CONTENTS
from conformance.spool_admission.trace import check, check_recorded, damage, lines_of, unbound
from conformance.traces import explain, harmless, survivors
from smtspool.errors import InfrastructureError
from smtspool.files import Directory
from smtspool.query import QueryFile
from smtspool.service import traced
from smtspool.spool import Spool
from smtspool.store import Store


@contextmanager
def service(folder: Path) -> Iterator[tuple[Spool, Store]]:
    """A spool and a store, recorded."""
    with (
        Spool.open(folder / "spool", create=True) as spool,
        Store.open(folder / "store", create=True) as store,
        traced(folder / "trace.ndjson"),
    ):
        yield spool, store


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """One consumer, a good and a bad file, and a pass that finds nothing."""
    with service(tmp_path) as (spool, store):
        spool.submit("a.smt2", CONTENTS["g"])
        spool.submit("b.smt2", CONTENTS["bad"])
        spool.submit("c.smt2", CONTENTS["h"])
        for _ in range(2):
            spool.scan(store.admit, consumer="p", budget_s=60.0, batch=2)
    return (tmp_path / "trace.ndjson").read_text()


def test_a_recording_is_explained_whole(recording: str) -> None:
    lines = lines_of(recording)
    (verdict,) = check([lines], batch=2)
    assert verdict.accepted, explain(lines, verdict)


@pytest.fixture
def troubled(tmp_path: Path) -> Path:
    """Passes over files that vanish before they are opened and before they are moved, names that come again,
    a store that fails, and a time budget that is over after every file."""
    incoming = tmp_path / "spool" / "incoming"
    with service(tmp_path) as (spool, store):
        spool.submit_many([(f"{name}.smt2", CONTENTS["g"]) for name in "abcd"])

        def commit(files: Sequence[QueryFile]) -> Sequence[bool]:
            for name in vanishing:
                (incoming / name).unlink()
            vanishing.clear()
            return store.admit(files)

        def refuse(files: Sequence[QueryFile]) -> Sequence[bool]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        vanishing = ["a.smt2", "b.smt2"]
        spool.scan(commit, consumer="p", budget_s=60.0, batch=1)
        spool.submit_many([("a.smt2", CONTENTS["bad"]), ("b.smt2", CONTENTS["h"]), ("c.smt2", CONTENTS["g"])])
        with pytest.raises(InfrastructureError):
            spool.scan(refuse, consumer="p", budget_s=60.0)
        for _ in range(3):
            spool.scan(commit, consumer="p", budget_s=0.0)
    return tmp_path / "trace.ndjson"


def test_what_may_happen_to_a_service_is_explained(troubled: Path) -> None:
    went = {(line.action, line.outcome, line.error is None) for line in lines_of(troubled.read_text())}
    assert went >= {("Open", "gone", True), ("Move", "gone", True), ("Commit", None, False)}
    checked = check_recorded(lines_of(troubled.read_text()))
    assert checked.accepted, checked.text


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Passes that end between two steps: a folder that cannot be synced ahead of the first move, behind the
    last, and one that cannot be opened."""
    sync = Directory.sync
    failing: set[str] = set()

    def sync_or_fail(self: Directory) -> None:
        if Path(self.path).name in failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(self)

    monkeypatch.setattr(Directory, "sync", sync_or_fail)
    with service(tmp_path) as (spool, store):
        for folder, name, content in (("rejected", "a.smt2", "bad"), ("accepted", "b.smt2", "g")):
            spool.submit_many([(name, CONTENTS[content]), ("z.smt2", CONTENTS["h"])])
            failing.add(folder)
            with pytest.raises(InfrastructureError):
                spool.scan(store.admit, consumer="p", budget_s=60.0, batch=1)
            failing.clear()
        moved = tmp_path / "elsewhere"
        (tmp_path / "spool" / "rejected").rename(moved)
        (tmp_path / "spool" / "rejected").write_bytes(b"not a folder")
        with pytest.raises(InfrastructureError):
            spool.scan(store.admit, consumer="p", budget_s=60.0)
        (tmp_path / "spool" / "rejected").unlink()
        moved.rename(tmp_path / "spool" / "rejected")
        spool.scan(store.admit, consumer="p", budget_s=60.0)
    return tmp_path / "trace.ndjson"


def test_a_pass_that_fails_between_two_steps_is_explained(interrupted: Path) -> None:
    lines = lines_of(interrupted.read_text())
    ways = [
        before.action
        for before, line in pairwise(lines)
        if (line.action, line.outcome) == ("Release", "failed")
    ]
    assert ways == ["WriteSidecar", "Move", "TryLock"]
    checked = check_recorded(lines)
    assert checked.accepted, checked.text
    # One that was over could not have ended there.
    clean = [replace(line, outcome=None) if line.action == "Release" else line for line in lines]
    (verdict,) = check([unbound(clean)], batch=None)
    assert not verdict.accepted


@pytest.fixture
def withdrawn(tmp_path: Path) -> Path:
    """A file that is deferred because it changes while it is read, taken back before the next pass, and
    published again; and passes that go past it, or end ahead of it."""
    incoming = tmp_path / "spool" / "incoming"
    with service(tmp_path) as (spool, store):

        def replaced(files: Sequence[QueryFile]) -> Sequence[bool]:
            (tmp_path / "other").write_bytes(CONTENTS["h"])
            (tmp_path / "other").rename(incoming / "b.smt2")
            return store.admit(files)

        spool.submit_many([(f"{name}.smt2", CONTENTS["g"]) for name in "abc"])
        spool.scan(replaced, consumer="p", budget_s=60.0)
        (incoming / "b.smt2").unlink()
        spool.submit_many([(f"{name}.smt2", CONTENTS["bad"]) for name in "ad"])
        spool.scan(store.admit, consumer="p", budget_s=60.0)
        spool.submit_many([(f"{name}.smt2", CONTENTS["h"]) for name in "bce"])
        for _ in range(2):
            spool.scan(store.admit, consumer="p", budget_s=0.0)
        spool.submit("a.smt2", CONTENTS["g"])
        spool.scan(store.admit, consumer="p", budget_s=60.0)
    return tmp_path / "trace.ndjson"


def test_a_deferred_file_that_is_withdrawn_is_explained(withdrawn: Path) -> None:
    lines = lines_of(withdrawn.read_text())
    assert ("Move", "replaced") in {(line.action, line.outcome) for line in lines}
    opened = [line.params["file"][0] for line in lines if line.action == "Open"]
    assert opened == [*"abc", *"ad", *"b", *"c", *"ea"]
    checked = check_recorded(lines)
    assert checked.accepted, checked.text


def test_a_file_that_was_not_deferred_cannot_be_withdrawn(withdrawn: Path) -> None:
    lines = lines_of(withdrawn.read_text())
    moves = [line for line in lines if (line.action, line.outcome) == ("Move", "moved")]
    verdicts = check([unbound([line for line in lines if line is not gone]) for gone in moves], batch=None)
    assert not any(verdict.accepted for verdict in verdicts)


def test_a_killed_service_and_its_successor_are_explained(recording: str, tmp_path: Path) -> None:
    head, *lines = recording.splitlines(keepends=True)
    later = [{**json.loads(line), "pid": 1, "clock": json.loads(line)["clock"] + 1e6} for line in lines]
    moved = next(index for index, line in enumerate(lines) if '"Move"' in line)
    file = tmp_path / "killed.ndjson"
    # The first died before its first Move; the files that it left are opened again.
    file.write_text(head + "".join(lines[:moved]) + "".join(json.dumps(line) + "\n" for line in later))
    checked = check_recorded(lines_of(file.read_text()))
    assert checked.accepted, checked.text
    # It cannot have died there and moved a file later.
    file.write_text(head + "".join([*lines[:moved], *lines[moved + 1 :]]))
    assert not check_recorded(lines_of(file.read_text())).accepted


def test_another_batch_size_does_not_explain_it(recording: str) -> None:
    lines = lines_of(recording)
    (verdict,) = check([lines], batch=1)
    assert not verdict.accepted
    assert "line " in explain(lines, verdict)


@pytest.mark.slow
def test_every_systematic_damage_is_rejected(recording: str) -> None:
    lines = lines_of(recording)
    damaged = damage(lines)
    assert len(damaged) > 80
    survived = survivors(lines, damaged, partial(check, batch=2))
    # A file that was replaced ahead of its move, and that the next pass does not find, was taken back.
    assert survived == harmless(lines, damaged, [r"\(Move\) goes replaced not moved"])
