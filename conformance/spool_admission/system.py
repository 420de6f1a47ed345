"""Spool admission: ``models/spool_admission`` driven through real consumers.

Consumers are processes of their own that run ``Spool.scan`` into a real ``Store``; spool, lock, store and
files are the product's. The environment is this process: it publishes by rename, replaces by rename or in
place, kills with SIGKILL, and makes the store or a move fail with the error that a full or broken disk gives.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from conformance.adapters import GraphAdapter
from conformance.engine.gates import At, Dead, Idle, Nursery, Participant, Passed, Position
from conformance.engine.replay import Divergence, Invariant, Refused, State, gate_of
from conformance.engine.values import Function, Value
from conformance.spool_admission.consumer import consume
from conformance.spool_admission.environment import CONTENTS, GOOD, LOCK, SUFFIX, Producer, identity
from conformance.spool_admission.projection import MODULE, NOTHING, TORN, Pass, Projection, Read
from conformance.states import each
from smtspool.spool import Spool
from smtspool.store import Store

__all__ = ["CONTENTS", "FAULT_AT_GATE", "INVARIANTS", "MODULE", "SpoolSystem", "adapter", "consume"]

BATCH = 2  # BatchLimit
# The outcomes of a scan that did not get the lock.
UNSERVED = {"Busy": {"busy"}, "RefuseLock": {"LockRefused"}}
# Faults happen at a gate, so they are possible for every consumer that stands there.
FAULT_AT_GATE = {"Commit": "FailStore", "Move": "FailMove"}


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
        self.consumers: dict[str, Participant] = {}
        self._nursery = nursery
        self._batch = batch
        self._patience_s = patience_s
        self._passes = {name: Pass() for name in consumers}
        self._closing = ExitStack()
        with self._closing:
            folder = tempfile.TemporaryDirectory(prefix="conform-", dir=_fastest())
            root = self._closing.enter_context(folder)
            self.producer = Producer(root, files, variant)
            self.spool, self.store = self.producer.spool, f"{root}/store"
            Spool.open(self.spool, create=True).close()
            Store.open(Path(self.store), create=True).close()
            database = sqlite3.connect(f"{self.store}/index.sqlite3", isolation_level=None)
            self._closing.enter_context(closing(database))
            if lockfile == "foreign":
                (Path(self.spool) / LOCK).symlink_to("elsewhere")
            past = self.producer.lay_past() if variant % 2 else {}
            self._projection = Projection(
                self.producer, database, self.consumers, self._passes, contents, past
            )
            self._closing.callback(self._dismiss)
            for name in consumers:
                self._employ(name)
            self._closing = self._closing.pop_all()

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
            step = self.producer.publish if name == "Publish" else self.producer.replace
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
        """Call the next scan after one has returned as expected, since a service scans for ever."""
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
        """Record a step of a consumer, and what was in the folders then."""
        seen = self._passes[name]
        file = str(passed.params.get("file", "")).removesuffix(SUFFIX)
        if passed.name == "List":
            seen.todo = self.producer.waiting()
        elif passed.name == "Open":
            seen.todo = [other for other in seen.todo if other != file]
            content = self._projection.content(f"incoming/{file}{SUFFIX}")
            seen.batch.append(Read(file, content, identity(self.producer.incoming(file))))
        elif passed.name == "Verify" and passed.outcome == "unstable":
            seen.batch.pop()
        elif passed.name == "WriteSidecar":
            seen.batch = [replace(r, explained=True) if r.file == file else r for r in seen.batch]
        elif passed.name == "Move":
            seen.batch = [read for read in seen.batch if read.file != file]

    def project(self) -> dict[str, Value]:
        """The real state as values of the model's variables."""
        return self._projection.project()

    def standing(self) -> frozenset[str]:
        """The gates where consumers stand, and the faults that may happen there."""
        return frozenset(text for consumer in self.consumers.values() for text in _gates(consumer.position))


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
    """A memory file system if there is one, on which the protocol is the same and syncs take no time."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# --- the adapter -------------------------------------------------------------------------------------


def _settled(state: State, folder: str) -> list[Value]:
    return [file for file, folders in each(state, "where").items() if folders == frozenset({folder})]


INVARIANTS: Mapping[str, Invariant] = {
    "SingleConsumer": lambda s: sum(at != "idle" for at in each(s, "pc").values()) <= 1,
    "NoLoss": lambda s: all(
        len(folders) == (each(s, "content")[file] != NOTHING)  # type: ignore[arg-type]
        for file, folders in each(s, "where").items()
    ),
    "AcceptedIsStored": lambda s: all(
        each(s, "rows")[each(s, "content")[file]] != 0 for file in _settled(s, "accepted")
    ),
    "OneRowPerContent": lambda s: all(rows in (0, 1) for rows in each(s, "rows").values()),
    "OnlyGoodIsStored": lambda s: all(k in GOOD for k, rows in each(s, "rows").items() if rows != 0),
    "RejectedIsExplained": lambda s: all(
        each(s, "sidecar").get(file) == "fits" and each(s, "content")[file] not in GOOD
        for file in _settled(s, "rejected")
    ),
    "SidecarHasItsFile": lambda s: all(
        each(s, "where").get(file) in (frozenset({"rejected"}), frozenset({"incoming"}))
        for file, told in each(s, "sidecar").items()
        if told != "none"
    ),
    "LockMeansInside": lambda s: all((s["holder"] == c) == (at != "idle") for c, at in each(s, "pc").items()),
}


SETTLED = (frozenset({"accepted"}), frozenset({"rejected"}))


def adapter(nursery: Nursery, patience_s: float) -> GraphAdapter:
    """The bounded model's consumers, files and contents, as real ones."""

    def start(initial: State, variant: int) -> SpoolSystem:
        return SpoolSystem(
            nursery,
            tuple(str(name) for name in each(initial, "pc")),
            tuple(str(name) for name in each(initial, "where")),
            tuple(str(name) for name in each(initial, "rows") if name != TORN),
            lockfile=str(initial["lockfile"]),
            variant=variant,
            patience_s=patience_s,
        )

    return GraphAdapter(
        invariants=INVARIANTS,
        external=frozenset({"Publish", "Replace", "Crash"}),
        # A name published again after its file was settled is another file; see the module's header.
        excluded={"Publish": lambda label, state: each(state, "where")[label["file"]] in SETTLED},
        start=start,
    )
