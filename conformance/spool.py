"""Spool admission: ``models/spool_admission`` driven through real consumers.

Consumers are processes of their own that run ``Spool.scan`` into a real ``Store``; spool, lock, store and files
are the product's. The environment is this process: it publishes with ``Spool.submit``, replaces by rename,
kills with SIGKILL, and makes the store or a move fail with the error that a full or broken disk gives. While
every consumer stands at a gate nothing moves, so what is read here from the directories, from
``/proc/locks`` and from the store is one consistent state.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance.engine.gates import At, Dead, Gate, Idle, Nursery, Participant, Passed, Position
from conformance.engine.module import variables
from conformance.engine.replay import Divergence, Invariant, Refused, State, gate_of
from conformance.engine.values import Function, Value, function
from smtspool.actions import Step, observed_by
from smtspool.files import Directory
from smtspool.query import parse_file
from smtspool.spool import Spool
from smtspool.store import Store

MODULE = Path(__file__).parent.parent / "models" / "spool_admission" / "SpoolAdmission.tla"
VARIABLES = variables(MODULE)

__all__ = ["CONTENTS", "INVARIANTS", "SpoolAdapter", "SpoolSystem", "consume"]

SUFFIX = ".smt2"
LOCK = ".ingest.lock"
FOLDERS = ("incoming", "accepted", "rejected")
BATCH = 2  # BatchLimit

_QUERY = "(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= x #x{:02x}))(check-sat)\n"
CONTENTS: Mapping[str, bytes] = {
    "g": _QUERY.format(1).encode(),
    "h": _QUERY.format(2).encode(),
    "bad": b"(assert (= 1 1)\n",
}
GOOD = frozenset({"g", "h"})
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
# Faults happen at a gate: whoever stands there stands ready for them too.
FAULT_AT_GATE = {"Commit": "FailStore", "Move": "FailMove"}


# --- the consumer's process --------------------------------------------------------------------------


class _Seam:
    """The observer that puts a gate around every action."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def before(self, step: Step) -> None:
        self._gate.before(step.name, step.params)

    def after(self, step: Step) -> None:
        error = None if step.error is None else type(step.error).__name__
        self._gate.after(step.name, step.params, step.outcome, error)


def consume(
    gate: Gate, *, spool: str, store: str, name: str, batch: int, sabotage: str | None = None
) -> None:
    """A consumer: scans when it is called, through gates. ``sabotage`` names a fault to put into the code."""
    with (
        _sabotaged(sabotage),
        Spool.open(spool) as source,
        Store.open(Path(store)) as sink,
        observed_by(_Seam(gate)),
    ):

        def scan() -> dict[str, Any]:
            return asdict(source.scan(sink.ingest, consumer=name, budget_s=3600.0, batch=batch))

        gate.serve({"scan": scan})


@contextmanager
def _sabotaged(name: str | None) -> Iterator[None]:
    if name is None:
        yield
        return
    from conformance.spool_mutants import MUTANTS

    with MUTANTS[name].applied():
        yield


# --- the system --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Read:
    """A file that a consumer has opened in the batch it is working on."""

    file: str
    content: str
    identity: tuple[int, ...] | None
    explained: bool = False


@dataclass(slots=True)
class Pass:
    """What a consumer was seen doing since it took the lock."""

    todo: list[str] = field(default_factory=list)
    batch: list[Read] = field(default_factory=list)


class SpoolSystem:
    """One spool, one store, and their consumers."""

    def __init__(
        self,
        nursery: Nursery,
        consumers: tuple[str, ...],
        files: tuple[str, ...],
        contents: tuple[str, ...],
        *,
        lockfile: str = "regular",
        batch: int = BATCH,
        sabotage: str | None = None,
        patience_s: float = 10.0,
    ) -> None:
        self._nursery = nursery
        self.files = files
        self.contents = contents
        self.results: dict[str, Any] = {}
        self._batch = batch
        self._sabotage = sabotage
        self._patience_s = patience_s
        self.root = Path(tempfile.mkdtemp(prefix="conform-", dir=_fastest()))
        self.spool = f"{self.root}/spool"
        self._stamp = 1_000_000_000
        self.consumers: dict[str, Participant] = {}
        self._passes = {name: Pass() for name in consumers}
        self._ids = {parse_file("x" + SUFFIX, CONTENTS[k])[0].id: k for k in sorted(GOOD)}
        try:
            self._spool = Spool.open(self.spool, create=True)
            Store.open(self.root / "store", create=True).close()
            self._database = sqlite3.connect(self.root / "store" / "index.sqlite3", isolation_level=None)
            if lockfile == "foreign":
                (self.root / "spool" / LOCK).symlink_to("elsewhere")
            for name in consumers:
                self._employ(name)
        except BaseException:
            self.close()
            raise

    def _employ(self, name: str) -> None:
        """A process for the consumer ``name``, standing at its first gate."""
        params = {
            "spool": self.spool,
            "store": str(self.root / "store"),
            "name": name,
            "batch": self._batch,
            "sabotage": self._sabotage,
        }
        self.consumers[name] = self._nursery.spawn(name, params, patience_s=self._patience_s)
        self.consumers[name].call("scan")

    def close(self) -> None:
        """End all consumers and remove everything."""
        for consumer in self.consumers.values():
            if consumer.position != Dead():
                consumer.kill()
            consumer.close()
        with suppress(AttributeError):
            self._database.close()
        with suppress(AttributeError):
            self._spool.close()
        shutil.rmtree(self.root, ignore_errors=True)

    # steps

    def perform(self, label: Function) -> None:
        """Take the step ``label`` for real."""
        name = str(label["name"])
        if name in ("Publish", "Replace"):
            getattr(self, f"_{name.lower()}")(str(label["file"]), str(label["content"]))
        elif name == "Crash":
            self.crash(str(label["consumer"]))
        elif name in FAULT_AT_GATE.values():
            self.fail(str(label["consumer"]), name)
        else:
            self._expect(label, self.advance(str(label["consumer"])))

    def _expect(self, label: Function, passed: Passed) -> None:
        if passed.name != label["name"]:
            raise Divergence(f"took {passed.name} where the model takes {label}")
        if passed.error is not None and label.get("outcome") != "RefuseLock":
            raise Divergence(f"{passed.name} raised {passed.error}")
        if "outcome" in label and passed.outcome != label["outcome"]:
            raise Divergence(f"{passed.name} went {passed.outcome} where the model takes {label}")

    def advance(self, name: str) -> Passed:
        """Let a consumer take the step at whose gate it stands."""
        passed = self.consumers[name].release()
        assert passed is not None
        self._observe(name, passed)
        self._go_on(name)
        return passed

    def fail(self, name: str, fault: str) -> None:
        """Let the step at whose gate a consumer stands fail."""
        at = self.consumers[name].position
        if not isinstance(at, At) or FAULT_AT_GATE.get(at.name) != fault:
            raise Refused(f"{name} stands at {at}")
        self.consumers[name].release(fail="ENOSPC" if fault == "FailStore" else "EIO")
        self._passes[name] = Pass()
        self._go_on(name)

    def crash(self, name: str) -> None:
        """Kill a consumer; another process takes its place."""
        self.consumers[name].kill()
        self._passes[name] = Pass()
        self._employ(name)

    def _go_on(self, name: str) -> None:
        """A service scans for ever: call the next scan where one has returned."""
        consumer = self.consumers[name]
        if isinstance(consumer.position, Idle):
            self.results[name] = consumer.position.result
            consumer.call("scan")
        if isinstance(consumer.position, Dead):
            raise Divergence(f"{name} died")

    def _observe(self, name: str, passed: Passed) -> None:
        """Keep what a consumer was seen doing, from its steps and from what was in the folders then."""
        seen = self._passes[name]
        file = str(passed.params.get("file", "")).removesuffix(SUFFIX)
        if passed.name == "List":
            seen.todo = [other for other in self.files if os.path.lexists(self._path("incoming", other))]
        elif passed.name == "Open":
            seen.todo = [other for other in seen.todo if other != file]
            seen.batch.append(Read(file, self._content("incoming", file), self._identity("incoming", file)))
        elif passed.name == "Verify" and passed.outcome == "unstable":
            seen.batch.pop()
        elif passed.name == "WriteSidecar":
            seen.batch = [replace(r, explained=True) if r.file == file else r for r in seen.batch]
        elif passed.name == "Move":
            seen.batch = [read for read in seen.batch if read.file != file]

    def _write(self, file: str, content: str) -> Path:
        """A file of the producer, not yet published. Each has an mtime of its own, so that an inode number
        that the file system gives out again is no ABA (F364 §3.2 leaves those out)."""
        self._stamp += 1_000_000_007
        draft = self.root / f"{file}.draft"
        draft.write_bytes(CONTENTS[content])
        os.utime(draft, ns=(self._stamp, self._stamp))
        return draft

    def _publish(self, file: str, content: str) -> None:
        draft = self._write(file, content)
        with Directory.open(self.root) as mine, Directory.open(f"{self.spool}/incoming") as incoming:
            try:
                mine.rename(draft.name, incoming, file + SUFFIX)
            except FileExistsError as error:
                raise Refused(str(error)) from error

    def _replace(self, file: str, content: str) -> None:
        if not os.path.lexists(self._path("incoming", file)):
            raise Refused(f"{file} is not in incoming/")
        self._write(file, content).replace(self._path("incoming", file))

    # the projection

    def _path(self, folder: str, file: str) -> str:
        return f"{self.spool}/{folder}/{file}{SUFFIX}"

    def _content(self, folder: str, file: str) -> str:
        with open(self._path(folder, file), "rb") as source:
            data = source.read()
        return next((name for name, known in CONTENTS.items() if known == data), TORN)

    def _identity(self, folder: str, file: str) -> tuple[int, ...] | None:
        try:
            status = os.lstat(self._path(folder, file))
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns

    def project(self) -> dict[str, Value]:
        """The real state as values of the model's variables."""
        return {name: getattr(self, f"_project_{name}")() for name in VARIABLES}

    def _project_where(self) -> Value:
        found: dict[str, set[str]] = {file: set() for file in self.files}
        for folder in FOLDERS:
            for entry in os.listdir(f"{self.spool}/{folder}"):
                if not (folder == "rejected" and entry.endswith(".error")):
                    found.setdefault(entry.removesuffix(SUFFIX), set()).add(folder)
        return function({file: frozenset(folders) for file, folders in found.items()})

    def _folder(self, file: str) -> str | None:
        return next((folder for folder in FOLDERS if os.path.lexists(self._path(folder, file))), None)

    def _project_content(self) -> Value:
        homes = {file: self._folder(file) for file in self.files}
        return function(
            {file: NOTHING if home is None else self._content(home, file) for file, home in homes.items()}
        )

    def _project_sidecar(self) -> Value:
        return function({file: self._sidecar(file) for file in self.files})

    def _sidecar(self, file: str) -> str:
        try:
            with open(f"{self._path('rejected', file)}.error", "rb") as sidecar:
                told = json.load(sidecar)["identity"]
        except FileNotFoundError:
            return "none"
        home = self._folder(file)
        real = None if home is None else self._identity(home, file)
        return (
            "fits"
            if real == tuple(told[k] for k in ("dev", "ino", "mode", "size", "mtime_ns"))
            else "misfits"
        )

    def _project_rows(self) -> Value:
        rows: dict[Value, int] = dict.fromkeys([*self.contents, TORN], 0)
        for (raw,) in self._database.execute("SELECT id FROM queries"):
            rows[self._ids.get(raw.hex(), TORN)] += 1
        return function(dict(rows))

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
                    r.file for r in seen.batch if self._identity("incoming", r.file) != r.identity
                )
                for name, seen in self._passes.items()
            }
        )

    def standing(self) -> frozenset[str]:
        """The gates where consumers stand, and the faults that may happen there."""
        return frozenset(text for consumer in self.consumers.values() for text in _gates(consumer.position))


def _holds_lock(pid: int | None, inode: int) -> bool:
    """True if a process has a locked descriptor of ``inode``, as the kernel tells it (``/proc/locks`` tells the
    same, a thousand times slower)."""
    for entry in os.scandir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):
            if entry.stat().st_ino == inode:
                with open(f"/proc/{pid}/fdinfo/{entry.name}") as info:
                    if "FLOCK" in info.read():
                        return True
    return False


def _entry(read: Read) -> Value:
    return function({"file": read.file, "content": read.content, "explained": read.explained})


def _gates(position: Position) -> Iterator[str]:
    if not isinstance(position, At):
        yield str(position)
        return
    params: dict[Value, Value] = {"name": position.name}
    for key, value in position.params.items():
        params[key] = _short(value) if isinstance(value, str) else tuple(map(_short, value))
    yield gate_of(Function(params))
    if position.name in FAULT_AT_GATE:
        yield gate_of(Function({"name": FAULT_AT_GATE[position.name], "consumer": params["consumer"]}))


def _short(name: str) -> str:
    return name.removesuffix(SUFFIX)


def _fastest() -> str | None:
    """A memory file system where there is one: the protocol is the same and its syncs cost nothing."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# --- the adapter -------------------------------------------------------------------------------------


def _all(state: State, name: str) -> Mapping[Value, Value]:
    value = state[name]
    assert isinstance(value, Function)
    return value


def _settled(state: State, folder: str) -> list[Value]:
    return [file for file, folders in _all(state, "where").items() if folders == frozenset({folder})]


INVARIANTS: Mapping[str, Invariant] = {
    "SingleConsumer": lambda s: sum(at != "idle" for at in _all(s, "pc").values()) <= 1,
    "NoLoss": lambda s: all(
        len(folders) == (_all(s, "content")[file] != NOTHING)  # type: ignore[arg-type]
        for file, folders in _all(s, "where").items()
    ),
    "AcceptedIsStored": lambda s: all(
        _all(s, "rows")[_all(s, "content")[file]] != 0 for file in _settled(s, "accepted")
    ),
    "OneRowPerContent": lambda s: all(rows in (0, 1) for rows in _all(s, "rows").values()),
    "OnlyGoodIsStored": lambda s: all(k in GOOD for k, rows in _all(s, "rows").items() if rows != 0),
    "RejectedIsExplained": lambda s: all(
        _all(s, "sidecar")[file] == "fits" and _all(s, "content")[file] not in GOOD
        for file in _settled(s, "rejected")
    ),
    "SidecarHasItsFile": lambda s: all(
        _all(s, "where")[file] in (frozenset({"rejected"}), frozenset({"incoming"}))
        for file, told in _all(s, "sidecar").items()
        if told != "none"
    ),
    "LockMeansInside": lambda s: all((s["holder"] == c) == (at != "idle") for c, at in _all(s, "pc").items()),
}


class SpoolAdapter:
    """The bounded model's consumers, files and contents, as real ones."""

    name = "spool"
    invariants = INVARIANTS
    external = frozenset({"Publish", "Replace", "Crash"})
    excluded: Mapping[str, Callable[[Function, State], bool]] = {
        # A name published again after its file was settled is another file; see the module's header.
        "Publish": lambda label, state: _all(state, "where")[label["file"]] != frozenset({"incoming"}),
    }

    def __init__(self, nursery: Nursery, *, sabotage: str | None = None, patience_s: float = 10.0) -> None:
        self._nursery = nursery
        self._sabotage = sabotage
        self._patience_s = patience_s

    def start(self, initial: State) -> SpoolSystem:
        """A fresh spool and store, with one process a consumer."""
        return SpoolSystem(
            self._nursery,
            tuple(str(name) for name in _all(initial, "pc")),
            tuple(str(name) for name in _all(initial, "where")),
            tuple(str(name) for name in _all(initial, "rows") if name != TORN),
            lockfile=str(initial["lockfile"]),
            sabotage=self._sabotage,
            patience_s=self._patience_s,
        )
