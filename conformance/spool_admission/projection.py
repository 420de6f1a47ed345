"""The real state of a spool, its store and its consumers, as values of the model's variables.

Every variable of the module has a method here, found by name, so a new variable cannot be forgotten. While
every consumer stands at a gate nothing changes, so directories, ``/proc`` and the store are read in one
consistent state.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from conformance.engine.gates import At, Participant
from conformance.engine.module import variables
from conformance.engine.values import Value, function
from conformance.spool_admission.environment import (
    CONTENTS,
    FOLDERS,
    GOOD,
    IDENTITY,
    LOCK,
    SUFFIX,
    Producer,
    identity,
)
from smtspool.files import is_temporary
from smtspool.query import parse_file

__all__ = ["MODULE", "NOBODY", "NOTHING", "TORN", "VARIABLES", "Pass", "Projection", "Read"]

MODULE = Path(__file__).parents[2] / "models" / "spool_admission" / "SpoolAdmission.tla"
VARIABLES = variables(MODULE)

NOTHING, NOBODY, TORN = "nothing", "nobody", "torn"

STEP_OF_GATE = {
    "TryLock": "idle",
    "List": "list",
    "Open": "open",
    "Verify": "verify",
    "Commit": "commit",
    "WriteSidecar": "sidecar",
    "Move": "move",
    "Release": "release",
}


@dataclass(frozen=True, slots=True)
class Read:
    """A file that a consumer has opened in the batch it is working on."""

    file: str
    content: str
    identity: tuple[int, ...] | None
    explained: bool = False


@dataclass(slots=True)
class Pass:
    """The observed steps of a consumer since it took the lock."""

    todo: list[str] = field(default_factory=list)
    batch: list[Read] = field(default_factory=list)
    failed: bool = False


class Projection:
    """Reads one spool. ``past`` are files of an earlier time, which no step may change."""

    def __init__(
        self,
        producer: Producer,
        database: sqlite3.Connection,
        consumers: Mapping[str, Participant],
        passes: Mapping[str, Pass],
        contents: tuple[str, ...],
        past: Mapping[str, tuple[int, ...]],
    ) -> None:
        self.files = producer.files
        self.spool = producer.spool
        self.consumers = consumers
        self.contents = contents
        self._producer = producer
        self._database = database
        self._passes = passes
        self._past = past
        self._ids = {parse_file("x" + SUFFIX, CONTENTS[k])[0].id: k for k in sorted(GOOD)}

    def project(self) -> dict[str, Value]:
        """The real state as values of the model's variables."""
        self._look()
        return {name: getattr(self, f"_project_{name}")() for name in VARIABLES}

    def _look(self) -> None:
        """Find every file: ``_homes`` from file to paths, ``_sidecars`` from file to names in rejected/."""
        self._homes: dict[str, list[str]] = {file: [] for file in self.files}
        self._sidecars: dict[str, list[str]] = {file: [] for file in self.files}
        for folder in FOLDERS:
            for entry in os.listdir(f"{self.spool}/{folder}"):
                path = f"{folder}/{entry}"
                if folder == "rejected" and is_temporary(entry):
                    continue  # the temporary file of a sidecar, which the model does not have
                if path in self._past:
                    if identity(f"{self.spool}/{path}") != self._past[path]:
                        self._homes[f"{path} is overwritten"] = [path]
                    continue
                is_sidecar = folder == "rejected" and entry.endswith(".error")
                found = self._sidecars if is_sidecar else self._homes
                # A taken name gets a suffix: a.smt2, a~1f2e3d4c.smt2.
                found.setdefault(
                    entry.removesuffix(".error").removesuffix(SUFFIX).partition("~")[0], []
                ).append(path)

    def _project_where(self) -> Value:
        return function(
            {file: frozenset(p.partition("/")[0] for p in paths) for file, paths in self._homes.items()}
        )

    def _project_content(self) -> Value:
        return function(
            {file: self.content(paths[0]) if paths else NOTHING for file, paths in self._homes.items()}
        )

    def content(self, path: str) -> str:
        full = f"{self.spool}/{path}"
        if not stat.S_ISREG(os.lstat(full).st_mode):
            return "bad"
        with open(full, "rb") as source:
            data = source.read()
        return next((name for name, known in CONTENTS.items() if known == data), TORN)

    def _project_sidecar(self) -> Value:
        return function({file: self._sidecar(file, told) for file, told in self._sidecars.items()})

    def _sidecar(self, file: str, told: list[str]) -> str:
        if len(told) != 1:
            return "several" if told else "none"
        home = self._homes[file][0] if self._homes.get(file) else ""
        if home.startswith("rejected/") and told[0] != f"{home}.error":
            return "unpaired"
        with open(f"{self.spool}/{told[0]}", "rb") as sidecar:
            told_of = json.load(sidecar)["identity"]
        same = identity(f"{self.spool}/{home}") == tuple(told_of[key] for key in IDENTITY)
        return "fits" if same else "misfits"

    def _project_rows(self) -> Value:
        rows: dict[Value, int] = dict.fromkeys([*self.contents, TORN], 0)
        for (raw,) in self._database.execute("SELECT id FROM queries"):
            rows[self._ids.get(raw.hex(), TORN)] += 1
        return function(rows)

    def _project_lockfile(self) -> Value:
        try:
            return "regular" if stat.S_ISREG(os.lstat(f"{self.spool}/{LOCK}").st_mode) else "foreign"
        except FileNotFoundError:
            return "regular"  # made by the first consumer that takes it

    def _project_holder(self) -> Value:
        try:
            inode = os.lstat(f"{self.spool}/{LOCK}").st_ino
        except FileNotFoundError:
            return NOBODY
        return next((name for name, who in self.consumers.items() if _holds_lock(who.pid, inode)), NOBODY)

    def _project_pc(self) -> Value:
        return function({name: self._pc(consumer) for name, consumer in self.consumers.items()})

    def _pc(self, consumer: Participant) -> Value:
        at = consumer.position
        return STEP_OF_GATE.get(at.name, at.name) if isinstance(at, At) else type(at).__name__

    def _project_todo(self) -> Value:
        return function({name: tuple(seen.todo) for name, seen in self._passes.items()})

    def _project_batch(self) -> Value:
        return function({name: tuple(map(_entry, seen.batch)) for name, seen in self._passes.items()})

    def _project_stale(self) -> Value:
        return function(
            {
                name: frozenset(
                    r.file for r in seen.batch if identity(self._producer.incoming(r.file)) != r.identity
                )
                for name, seen in self._passes.items()
            }
        )


def _holds_lock(pid: int | None, inode: int) -> bool:
    """True if a process has a locked descriptor of ``inode``, as the kernel tells it (``/proc/locks`` tells
    the same, a thousand times slower)."""
    with os.scandir(f"/proc/{pid}/fd") as descriptors:
        for entry in descriptors:
            with suppress(FileNotFoundError):
                if entry.stat().st_ino != inode:
                    continue
                if "FLOCK" in Path(f"/proc/{pid}/fdinfo/{entry.name}").read_text():
                    return True
    return False


def _entry(read: Read) -> Value:
    return function({"file": read.file, "content": read.content, "explained": read.explained})
