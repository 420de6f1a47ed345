"""A qualification against the same number of bare MPI round trips, for two to eight ranks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ..measure import Bench, Row, Sample, at_most

MPIEXEC = Path(sys.executable).with_name("mpiexec")
PATIENCE_SECONDS = 600


def measured(bench: Bench, ranks: int, rounds: int) -> dict[str, Sample]:
    """Milliseconds of one job, in which all sides take turns."""
    with bench.directory() as directory:
        command = [
            MPIEXEC,
            "-n",
            str(ranks),
            sys.executable,
            "-m",
            "benchmarks.ranks",
            directory,
            str(rounds),
        ]
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS
        )
    taken = json.loads(done.stdout)
    return {name: Sample(tuple(value * 1e3 for value in values)) for name, values in taken.items()}


def run(bench: Bench) -> Iterator[Row]:
    if not MPIEXEC.exists():
        raise ModuleNotFoundError(name="mpich")
    rounds = bench.choose(2, 20, 100)
    for ranks in bench.choose([2], [2, 4, 8], [2, 3, 4, 5, 6, 7, 8]):
        bench.say(f"{ranks} ranks")
        taken = measured(bench, ranks, rounds)
        note = (
            f"{7 + 5 * ranks} exchanges, every rank a host of its own; both wait by polling with the same "
            f"pauses. With blocking calls, in which MPI spins, the round trips take "
            f"{taken['spinning'].median:.2f} ms"
        )
        yield Row.ratio(
            f"qualification, {ranks} ranks",
            "ms",
            taken["qualification"],
            "bare MPI round trips",
            taken["polled"],
            at_most(2),
            note,
        )
