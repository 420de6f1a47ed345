"""Spool admission: ``models/spool_admission`` driven through real consumers.

Consumers are processes of their own that run ``Spool.scan`` into a real ``Store``; spool, lock, store and
files are the product's. The environment is this process: it publishes with ``Spool.submit``, replaces by
rename, kills with SIGKILL, and makes the store or a move fail with the error that a full or broken disk
gives. While every consumer stands at a gate nothing moves, so what is read here from the directories, from
``/proc/locks`` and from the store is one consistent state.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance.engine.gates import At, Dead, Gate, Idle, Nursery, Participant, Passed, Position
from conformance.engine.module import variables
from conformance.engine.replay import Divergence, Invariant, Refused, State, gate_of
from conformance.engine.values import Function, Value, function
from smtspool.actions import Step, observed_by
from smtspool.errors import InfrastructureError
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
IDENTITY = ("dev", "ino", "mode", "size", "mtime_ns")
# What a scan that did not get the lock comes back with.
UNSERVED = {"Busy": {"busy"}, "RefuseLock": {"LockRefused"}}
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


def consume(gate: Gate, *, spool: str, store: str, name: str, batch: int) -> None:
    """A consumer: makes a pass when it is called, through gates."""
    looks = 0

    def watch(event: str, _: object) -> None:
        nonlocal looks
        looks += event in ("os.listdir", "os.scandir")

    sys.addaudithook(watch)
    with Spool.open(spool) as source, Store.open(Path(store)) as sink, observed_by(_Seam(gate)):

        def scan() -> dict[str, Any]:
            before = looks
            try:
                report = asdict(source.scan(sink.ingest, consumer=name, budget_s=3600.0, batch=batch))
            except InfrastructureError as error:
                report = {"outcome": type(error).__name__}
            return {**report, "looks": looks - before}

        gate.serve({"scan": scan})


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
    failed: bool = False


class SpoolSystem:
    """One spool, one store, and their consumers.

    ``variant`` decides what the model does not tell apart: whether the folders hold files of the same names
    from before (odd numbers), and with which kind of bad file and which way of replacing the producer begins.
    """

    def __init__(
        self,
        nursery: Nursery,
        consumers: tuple[str, ...],
        files: tuple[str, ...],
        contents: tuple[str, ...],
        *,
        lockfile: str = "regular",
        batch: int = BATCH,
        variant: int = 0,
        patience_s: float = 10.0,
    ) -> None:
        self.files = files
        self.contents = contents
        self.consumers: dict[str, Participant] = {}
        self._nursery = nursery
        self._batch = batch
        self._variant = variant
        self._drafts = 0
        self._patience_s = patience_s
        self._passes = {name: Pass() for name in consumers}
        self._ids = {parse_file("x" + SUFFIX, CONTENTS[k])[0].id: k for k in sorted(GOOD)}
        self._closing = ExitStack()
        with self._closing:
            self.root = self._closing.enter_context(
                tempfile.TemporaryDirectory(prefix="conform-", dir=_fastest())
            )
            self.spool = f"{self.root}/spool"
            self.store = f"{self.root}/store"
            Spool.open(self.spool, create=True).close()
            Store.open(Path(self.store), create=True).close()
            database = sqlite3.connect(f"{self.store}/index.sqlite3", isolation_level=None)
            self._database = self._closing.enter_context(closing(database))
            if lockfile == "foreign":
                (Path(self.spool) / LOCK).symlink_to("elsewhere")
            self._past = self._lay_past() if variant % 2 else {}
            self._closing.callback(self._dismiss)
            for name in consumers:
                self._employ(name)
            self._closing = self._closing.pop_all()

    def _lay_past(self) -> dict[str, tuple[int, ...]]:
        """Settled files from before, under the names to come. Nothing may touch them."""
        old = [f"accepted/{file}{SUFFIX}" for file in self.files]
        old += [f"rejected/{file}{SUFFIX}{ending}" for file in self.files for ending in ("", ".error")]
        for name in old:
            Path(self.spool, name).write_bytes(b"from before")
        return {name: _identity(f"{self.spool}/{name}") or () for name in old}

    def _employ(self, name: str) -> None:
        """A process for the consumer ``name``, standing at its first gate."""
        params = {"spool": self.spool, "store": self.store, "name": name, "batch": self._batch}
        self.consumers[name] = self._nursery.spawn(name, params, patience_s=self._patience_s)
        self.consumers[name].call("scan")

    def _dismiss(self) -> None:
        for consumer in self.consumers.values():
            if consumer.position != Dead():
                consumer.kill()
            consumer.close()

    def close(self) -> None:
        """End all consumers and remove everything."""
        self._closing.close()

    # steps

    def perform(self, label: Function) -> None:
        """Take the step ``label`` for real."""
        name = str(label["name"])
        if name in ("Publish", "Replace"):
            step = self.publish if name == "Publish" else self.replace
            step(str(label["file"]), str(label["content"]))
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
        if passed.name == "TryLock" and passed.outcome != "Acquire":
            self._go_on(name, UNSERVED.get(str(passed.outcome), set()), may_look=False)
        elif self._passes[name].failed:
            self._go_on(name, {"InfrastructureError"})
        else:
            self._go_on(name, {"idle", "scanned"})
        return passed

    def fail(self, name: str, fault: str) -> None:
        """Let the step at whose gate a consumer stands fail."""
        at = self.consumers[name].position
        if not isinstance(at, At) or FAULT_AT_GATE.get(at.name) != fault:
            raise Refused(f"{name} stands at {at}")
        self.consumers[name].release(fail="ENOSPC" if fault == "FailStore" else "EIO")
        self._passes[name] = Pass(failed=True)
        self._go_on(name, {"InfrastructureError"})

    def crash(self, name: str) -> None:
        """Kill a consumer; another process takes its place."""
        self.consumers[name].kill()
        self._passes[name] = Pass()
        self._employ(name)

    def _go_on(self, name: str, outcomes: set[str], *, may_look: bool = True) -> None:
        """A service scans for ever: call the next scan where one has returned, as it should have."""
        consumer = self.consumers[name]
        if isinstance(consumer.position, Idle):
            report = consumer.position.result
            if report["outcome"] not in outcomes:
                raise Divergence(
                    f"the scan of {name} came back {report}, expected {sorted(outcomes)}", "report"
                )
            if not may_look and (report["looks"] or report.get("backlog") is not None):
                raise Divergence(f"{name} had no lock and looked into folders: {report}", "report")
            self._passes[name] = Pass()
            consumer.call("scan")
        if isinstance(consumer.position, Dead):
            raise Divergence(f"{name} died")

    def _observe(self, name: str, passed: Passed) -> None:
        """Keep what a consumer was seen doing, from its steps and from what was in the folders then."""
        seen = self._passes[name]
        file = str(passed.params.get("file", "")).removesuffix(SUFFIX)
        if passed.name == "List":
            seen.todo = self.waiting()
        elif passed.name == "Open":
            seen.todo = [other for other in seen.todo if other != file]
            content = self._content(f"incoming/{file}{SUFFIX}")
            seen.batch.append(Read(file, content, _identity(self._incoming(file))))
        elif passed.name == "Verify" and passed.outcome == "unstable":
            seen.batch.pop()
        elif passed.name == "WriteSidecar":
            seen.batch = [replace(r, explained=True) if r.file == file else r for r in seen.batch]
        elif passed.name == "Move":
            seen.batch = [read for read in seen.batch if read.file != file]

    def _draft(self, file: str, content: str) -> Path:
        """A file of the producer, not yet published; bad ones in turn as text, as a link and as a FIFO. Each
        has an mtime of its own, so that an inode number that the file system gives out again is no ABA,
        which F364 section 3.2 leaves out."""
        self._drafts += 1
        draft = Path(self.root) / f"{file}.draft"
        kind = (self._variant // 2 + self._drafts) % 3 if content not in GOOD else 0
        if kind == 0:
            draft.write_bytes(CONTENTS[content])
        elif kind == 1:
            (draft.parent / "elsewhere").write_bytes(CONTENTS["g"])
            draft.symlink_to(draft.parent / "elsewhere")
        else:
            os.mkfifo(draft)
        self._stamp(draft)
        return draft

    def waiting(self) -> list[str]:
        """The files in incoming/."""
        return [file for file in self.files if os.path.lexists(self._incoming(file))]

    def _stamp(self, path: str | Path) -> None:
        moment = 1_000_000_000 + self._drafts * 1_000_000_007
        os.utime(path, ns=(moment, moment), follow_symlinks=False)

    def publish(self, file: str, content: str) -> None:
        """Rename a new file into incoming/; :class:`Refused` where the name is taken."""
        draft = self._draft(file, content)
        with Directory.open(self.root) as mine, Directory.open(f"{self.spool}/incoming") as incoming:
            try:
                mine.rename(draft.name, incoming, file + SUFFIX)
            except FileExistsError as error:
                draft.unlink()
                raise Refused(str(error)) from error

    def replace(self, file: str, content: str) -> None:
        """Put other content under a name in incoming/, by rename or in place."""
        path = self._incoming(file)
        if not os.path.lexists(path):
            raise Refused(f"{file} is not in incoming/")
        draft = self._draft(file, content)
        plain = all(stat.S_ISREG(os.lstat(p).st_mode) for p in (path, draft))
        if plain and (self._variant // 2 + self._drafts) % 2:  # in place
            with open(path, "r+b") as target:
                target.truncate(target.write(draft.read_bytes()))
            self._stamp(path)
            draft.unlink()
        else:
            draft.replace(path)

    # the projection

    def project(self) -> dict[str, Value]:
        """The real state as values of the model's variables."""
        self._look()
        return {name: getattr(self, f"_project_{name}")() for name in VARIABLES}

    def _incoming(self, file: str) -> str:
        return f"{self.spool}/incoming/{file}{SUFFIX}"

    def _look(self) -> None:
        """Find every file: ``_homes`` from file to paths, ``_sidecars`` from file to names in rejected/."""
        self._homes: dict[str, list[str]] = {file: [] for file in self.files}
        self._sidecars: dict[str, list[str]] = {file: [] for file in self.files}
        for folder in FOLDERS:
            for entry in os.listdir(f"{self.spool}/{folder}"):
                path = f"{folder}/{entry}"
                if path in self._past:
                    if _identity(f"{self.spool}/{path}") != self._past[path]:
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
            {file: self._content(paths[0]) if paths else NOTHING for file, paths in self._homes.items()}
        )

    def _content(self, path: str) -> str:
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
            identity = json.load(sidecar)["identity"]
        same = _identity(f"{self.spool}/{home}") == tuple(identity[key] for key in IDENTITY)
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
                name: frozenset(r.file for r in seen.batch if _identity(self._incoming(r.file)) != r.identity)
                for name, seen in self._passes.items()
            }
        )

    def standing(self) -> frozenset[str]:
        """The gates where consumers stand, and the faults that may happen there."""
        return frozenset(text for consumer in self.consumers.values() for text in _gates(consumer.position))


def _identity(path: str) -> tuple[int, ...] | None:
    """What of a file's identity a rename leaves alone; None when there is no file."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return tuple(getattr(status, f"st_{key}") for key in IDENTITY)


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
        _all(s, "sidecar").get(file) == "fits" and _all(s, "content")[file] not in GOOD
        for file in _settled(s, "rejected")
    ),
    "SidecarHasItsFile": lambda s: all(
        _all(s, "where").get(file) in (frozenset({"rejected"}), frozenset({"incoming"}))
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
    kills = frozenset({"Crash"})
    excluded: Mapping[str, Callable[[Function, State], bool]] = {
        # A name published again after its file was settled is another file; see the module's header.
        "Publish": lambda label, state: _all(state, "where")[label["file"]] != frozenset({"incoming"}),
    }

    def __init__(self, nursery: Nursery, *, patience_s: float = 10.0) -> None:
        self._nursery = nursery
        self._patience_s = patience_s

    def start(self, initial: State, variant: int) -> SpoolSystem:
        """A fresh spool and store, with one process a consumer."""
        return SpoolSystem(
            self._nursery,
            tuple(str(name) for name in _all(initial, "pc")),
            tuple(str(name) for name in _all(initial, "where")),
            tuple(str(name) for name in _all(initial, "rows") if name != TORN),
            lockfile=str(initial["lockfile"]),
            variant=variant,
            patience_s=self._patience_s,
        )
