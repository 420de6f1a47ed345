"""A coordinator that runs freely and is killed at random moments, recorded by the product's own recorder.

Each process observes, publishes and is asked by another thread, without gates, until the recording has grown
by a random number of lines; then it is killed, its folder may be damaged, and another takes its place,
perhaps under another policy.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from conformance.engine.replay import Refused
from conformance.engine.trace import Recorded
from conformance.profile_recovery.environment import Catalogue, Folder
from conformance.profile_recovery.system import Bounds
from conformance.profile_recovery.trace import lines_of
from conformance.recording import SCHEMA, note
from smtspool.files import Directory
from smtspool.profile import Coordinator, Policy
from smtspool.service import traced

__all__ = ["BOUNDS", "stress"]

BOUNDS = Bounds("abc", window=8, policies={"p": (1, 1), "q": (2, 2), "r": (4, 1)})


def _coordinate(folder: str, trace: Path, policy: str, seed: int) -> None:
    """Observe and publish until killed, as a service does."""
    rng = random.Random(seed)
    catalogue = Catalogue(BOUNDS.values, BOUNDS.thresholds())
    note(trace, "profile_recovery", os.getpid(), 0, "Restart", policy=policy)
    with Directory.open(folder) as directory, traced(trace):
        thresholds = Policy(**asdict(catalogue.policies[policy].to_policy()))
        coordinator = Coordinator(directory, policy=thresholds, window=BOUNDS.window)

        def ask() -> None:
            pause = threading.Event()
            while True:
                coordinator.serve()
                pause.wait(0.002)

        threading.Thread(target=ask, name="prober", daemon=True).start()
        value = "a"
        while True:
            coordinator.publish(force=True)
            # Now and then another value, so that domains come about, and go.
            value = rng.choice(BOUNDS.values) if rng.random() < 0.2 else value
            for _ in range(rng.randint(0, 2)):
                coordinator.observe(catalogue.document(value))


class _Stress:
    """One run in ``folder``. ``rng`` decides every random choice."""

    def __init__(self, folder: Path, rng: random.Random, deadline_s: float) -> None:
        self._trace = folder / "trace.ndjson"
        self._rng = rng
        self._deadline = time.monotonic() + deadline_s
        self._catalogue = Catalogue(BOUNDS.values, BOUNDS.thresholds())
        self._folder = Folder(str(folder), self._catalogue, (), 1, rng.randrange(12))
        self._policy = "p"
        self._noted = 1_000_000_000
        self._trace.write_text(json.dumps({"schema": SCHEMA}) + "\n")

    def run(self, kills: int) -> list[Recorded]:
        """Start, kill, damage, and again; returns the recording, records told by their values."""
        for _ in range(kills):
            process = self._start()
            try:
                self._until_grown(self._rng.randint(1, 60), process)
            finally:
                process.kill()
                process.wait()
            self._note(process.pid, "Crash")
            self._disturb(process.pid)
        return [self._told(line) for line in lines_of(self._trace.read_text())]

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", __name__, self._folder.path, str(self._trace), self._policy]
        path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.Popen(
            [*command, str(self._rng.randrange(1 << 30))],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **path},
        )

    def _until_grown(self, lines: int, process: subprocess.Popen[bytes]) -> None:
        """Wait until the process has written its first line and the recording has so many more."""
        size = self._trace.stat().st_size
        while self._trace.stat().st_size <= size + 150 * lines:
            if time.monotonic() > self._deadline or process.poll() is not None:
                raise RuntimeError(f"the coordinator wrote too little; it ended with {process.poll()}")
            time.sleep(0.0005)  # between two looks at the condition

    def _note(self, pid: int, action: str, **params: Any) -> None:
        self._noted += 1
        note(self._trace, "profile_recovery", pid, self._noted, action, **params)

    def _disturb(self, pid: int) -> None:
        """Sometimes another policy, sometimes damage, often neither."""
        if self._rng.random() < 0.3:
            self._policy = self._rng.choice([name for name in BOUNDS.policies if name != self._policy])
            self._note(pid, "ChangePolicy", policy=self._policy)
        try:
            match self._rng.randrange(6):
                case 0:
                    self._folder.drift("b")
                    self._note(pid, "Drift", to=["b"])
                case 1:
                    self._folder.truncate()
                    self._note(pid, "Truncate")
                case 2:
                    self._folder.remove()
                    self._note(pid, "Remove")
        except Refused:
            return  # there is nothing to damage

    def _told(self, line: Recorded) -> Recorded:
        if line.action != "Observe":
            return line
        return replace(line, params={"record": self._catalogue.name(line.params["record"])})


def stress(folder: Path, seed: int, *, kills: int, deadline_s: float = 60.0) -> Sequence[Recorded]:
    """One whole run: its recording."""
    return _Stress(folder, random.Random(seed), deadline_s).run(kills)


if __name__ == "__main__":
    _coordinate(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
