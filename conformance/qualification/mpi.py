"""The same fleets under a real ``mpiexec``: one process a rank, real messages, real ends.

``python -m conformance.qualification.mpi FOLDER PLAN`` is what each rank runs. PLAN is a JSON object:
``hosts`` has the name of each rank's host, ``renewals`` how many there are to be, and ``strike`` what is
raised, where and when: ``[rank, call, count, kind]``. Each rank writes its steps into a file of its own in
FOLDER.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from conformance.engine.trace import Recorded
from conformance.seam import error_of
from smtspool.actions import Step, observed_by

__all__ = ["Job", "job"]

MPIEXEC = Path(sys.executable).with_name("mpiexec")
_PATIENCE_S = 60.0


# --- one rank ------------------------------------------------------------------------------------------


class _Recorder:
    """Writes every step down, when it began and when it ended, before anything else can happen."""

    def __init__(self, path: Path) -> None:
        self._out = path.open("w")
        self._begun: list[float] = []

    def before(self, step: Step) -> None:
        """A step begins."""
        self._begun.append(time.monotonic())

    def after(self, step: Step) -> None:
        """A step ends; one within another is part of that. An Abort does not end: it is told ahead."""
        begun = self._begun.pop()
        if not self._begun:
            self.tell(step, begun, time.monotonic())

    def tell(self, step: Step, begun: float, ended: float) -> None:
        """One line, on the disk."""
        line = [step.name, step.params, step.outcome, error_of(step), begun, ended]
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()


class _Aborting(_Recorder):
    def before(self, step: Step) -> None:
        super().before(step)
        if step.name == "Abort":
            self.tell(step, self._begun[-1], time.monotonic())

    def after(self, step: Step) -> None:
        if step.name == "Abort":
            self._begun.pop()
        else:
            super().after(step)


class _Struck:
    """Stands in front of what a rank was given, and raises once."""

    def __init__(self, given: Any, strike: Sequence[Any]) -> None:
        self._given = given
        self._strike = strike
        self._left = int(strike[2])

    def __getattr__(self, name: str) -> Any:
        return (
            self.wrapped(name, getattr(self._given, name))
            if name == self._strike[1]
            else getattr(self._given, name)
        )

    def wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, which may raise instead."""

        def instead(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == -1:
                raise {"ordinary": LookupError, "control": KeyboardInterrupt}[self._strike[3]]("injected")
            return call(*arguments, **named)

        return instead


def _rank(folder: Path, plan: Mapping[str, Any]) -> None:
    from smtspool import cluster

    with cluster.world() as comm:
        rank = comm.Get_rank()
        strike = plan.get("strike")
        mine = strike if strike and strike[0] == rank else [rank, "", 0, "ordinary"]
        pause = _Struck(None, mine).wrapped("pause", time.sleep) if mine[1] == "pause" else time.sleep
        files: Any = _Struck(cluster.LockFiles(), mine)
        struck: Any = _Struck(comm, mine)
        shared = folder / "shared"
        master = cluster.Master(
            struck,
            cluster.Host(
                shared, lambda: cluster.probe_directory(shared), lambda: str(plan["hosts"][rank]), files=files
            ),
            startup=cluster.QualificationAttempt(timeout=plan["timeout"]),
            plan=cluster.RenewalPlan(interval=0.05, timeout=plan["timeout"], jitter=0.0),
            grace=plan["timeout"],
            time=cluster.Time(pause=pause),
        )
        with observed_by(_Aborting(folder / f"rank-{rank}.ndjson")):
            _serve(master, plan["renewals"])


def _serve(master: Any, renewals: int) -> None:
    master.start()
    said = False
    while master.fatal is None and not master.ended:
        master.turn()
        books = master.controller.ledger if master.controller else None
        if not said and master.fatal is None and (books is None or books.successes >= renewals):
            said = True
            master.done()
        time.sleep(0.001)
    if master.fatal is not None:
        master.shutdown(lambda: None)


# --- the whole job -------------------------------------------------------------------------------------


class Job:
    """What came of a job: its exit code, what it said, how long it took, and what its ranks recorded."""

    def __init__(self, code: int, said: str, seconds: float, folder: Path, size: int) -> None:
        self.code = code
        self.said = said
        self.seconds = seconds
        self.lines = [line for rank in range(size) for line in _lines(folder, rank)]
        self.left = [path.name for path in (folder / "shared").iterdir()]


def _lines(folder: Path, rank: int) -> list[Recorded]:
    path = folder / f"rank-{rank}.ndjson"
    texts = path.read_text().splitlines() if path.exists() else []
    return [
        Recorded(number, f"rank {rank}", number, ended, name, params, outcome, error, begun)
        for number, (name, params, outcome, error, begun, ended) in enumerate(map(json.loads, texts), 1)
    ]


def job(
    folder: Path, hosts: Sequence[str], *, renewals: int = 0, timeout: float = 20.0, strike: Any = None
) -> Job:
    """Run one job to its end."""
    (folder / "shared").mkdir()
    plan = {"hosts": list(hosts), "renewals": renewals, "timeout": timeout, "strike": strike}
    words = [
        str(MPIEXEC),
        "-n",
        str(len(hosts)),
        sys.executable,
        "-m",
        "conformance.qualification.mpi",
        str(folder),
        json.dumps(plan),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    started = time.monotonic()
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
    )
    said = done.stdout + done.stderr
    return Job(done.returncode, said, time.monotonic() - started, folder, len(hosts))


def main() -> NoReturn:
    """One rank."""
    _rank(Path(sys.argv[1]), json.loads(sys.argv[2]))
    sys.exit(0)


if __name__ == "__main__":
    main()
