"""Many consumers on one spool, killed at random moments, recorded by the product's own recorder.

Consumers are whole processes that run freely, without gates. The harness publishes files, kills a consumer
whenever the recording has grown by a random number of lines, starts another, and waits until incoming/ is
empty.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from conformance.recording import SCHEMA, note
from conformance.spool_admission.environment import CONTENTS
from smtspool.service import traced
from smtspool.spool import Outcome, Spool
from smtspool.store import Store

__all__ = ["BATCH", "Stress", "stress"]

BATCH = 4


def _consume(spool: Path, store: Path, trace: Path) -> None:
    """Scan until killed, as a service does: again at once while there is something, else a little later."""
    note(trace, "spool_admission", os.getpid(), 0, "Start")
    never = threading.Event()
    with Spool.open(spool) as source, Store.open(store) as sink, traced(trace):
        while True:
            # With a clock that stands still, a batch ends by its size alone, as in the model.
            report = source.scan(
                sink.admit, consumer=str(os.getpid()), budget_s=1.0, batch=BATCH, clock=lambda: 0.0
            )
            if report.outcome is not Outcome.SCANNED:
                never.wait(0.05)


class Stress:
    """One run, in ``folder``. ``rng`` decides every random choice."""

    def __init__(self, folder: Path, rng: random.Random, *, consumers: int, deadline_s: float) -> None:
        self.spool, self.store, self.trace = folder / "spool", folder / "store", folder / "trace.ndjson"
        self._rng = rng
        self._consumers = consumers
        self._deadline = time.monotonic() + deadline_s
        self._running: list[subprocess.Popen[bytes]] = []
        self.killed = 0
        self.published = 0
        self.trace.write_text(json.dumps({"schema": SCHEMA}) + "\n")

    def run(self, *, files: int, kills: int) -> str:
        """Publish, kill, converge; returns the recording."""
        Store.open(self.store, create=True).close()
        with Spool.open(self.spool, create=True) as producer:
            try:
                for _ in range(self._consumers):
                    self._start()
                self._until(lambda: len(self._started()) == self._consumers, "all consumers to start")
                for kill in range(kills):
                    for number in range(files * kill // kills, files * (kill + 1) // kills):
                        content = self._rng.choice(["g", "h", "bad"])
                        producer.submit(f"{number:04}.smt2", CONTENTS[content])
                        self.published += 1
                    self._kill_after(self._rng.randint(3, 25))
                    self._start()
                self._until(lambda: producer.backlog() == 0, "incoming/ to be empty")
            finally:
                while self._running:
                    self._kill(self._running[0])
        return self.trace.read_text()

    def converged(self) -> bool:
        """Every file in exactly one place, accepted files stored, rejected ones with their sidecar."""
        folders = {name: set(os.listdir(self.spool / name)) for name in ("incoming", "accepted", "rejected")}
        bad = {name for name in folders["rejected"] if not name.endswith(".error")}
        contents = {(self.spool / "accepted" / name).read_bytes() for name in folders["accepted"]}
        with Store.open(self.store) as store:
            stored = store.counts().pending
        return (
            not folders["incoming"]
            and {f"{name}.error" for name in bad} == folders["rejected"] - bad
            and len(bad) + len(folders["accepted"]) == self.published
            and contents <= {CONTENTS["g"], CONTENTS["h"]}
            and stored == len(contents)
        )

    def _start(self) -> None:
        command = [sys.executable, "-m", __name__, str(self.spool), str(self.store), str(self.trace)]
        path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, env={**os.environ, **path}))

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        self._running.remove(process)
        self.killed += 1
        note(self.trace, "spool_admission", process.pid, 1_000_000_000, "Crash")

    def _kill_after(self, lines: int) -> None:
        """Kill a consumer once the recording has that many lines more."""
        size = self.trace.stat().st_size
        self._until(lambda: self.trace.stat().st_size > size + lines * 200, "the recording to grow")
        self._kill(self._rng.choice(self._started()))

    def _started(self) -> list[subprocess.Popen[bytes]]:
        """The consumers that have recorded a line."""
        recorded = self.trace.read_text()
        return [process for process in self._running if f'"pid": {process.pid},' in recorded]

    def _until(self, reached: Callable[[], bool], what: str) -> None:
        while not reached():
            if time.monotonic() > self._deadline:
                raise TimeoutError(f"waited in vain for {what}")
            for process in self._running:
                if process.poll() is not None:
                    raise RuntimeError(f"a consumer ended by itself with {process.returncode}")
            time.sleep(0.0005)  # between two looks at the condition


def stress(
    folder: Path, seed: int, *, consumers: int, files: int, kills: int, deadline_s: float = 60.0
) -> Stress:
    """One whole run."""
    run = Stress(folder, random.Random(seed), consumers=consumers, deadline_s=deadline_s)
    run.run(files=files, kills=kills)
    return run


if __name__ == "__main__":
    _consume(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
