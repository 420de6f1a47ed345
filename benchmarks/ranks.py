"""One rank of a job that measures: ``python -m benchmarks.ranks DIR ROUNDS`` under mpiexec.

Every rank says it is on a host of its own, so the proof has as many rounds as there are ranks. Rank 0 prints
the seconds of each round: a qualification, and the same number of bare round trips, waited for in two ways.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from mpi4py import MPI

from smtspool.cluster import (
    MpiCommunicator,
    Observation,
    QualificationAttempt,
    probe_directory,
    qualify,
    world,
)

TAG = 40
RECORD = b"r" * 250
PER_RANK = 100  # bytes of an answer for each rank's record
FIRST_PAUSE, LONGEST_PAUSE = 50e-6, 5e-3  # as the protocol


def exchanges(ranks: int) -> int:
    """How many a renewal takes: seven, and five for each of the rounds."""
    return 7 + 5 * ranks


def polled(comm: MpiCommunicator, count: int) -> None:
    """Bare exchanges through rank 0, waited for as the protocol does."""
    rank, size = comm.Get_rank(), comm.Get_size()
    answer = b"a" * (PER_RANK * size)
    for _ in range(count):
        if rank:
            comm.isend(RECORD, 0, TAG)
            _receive_from(comm, {0})
        else:
            _receive_from(comm, set(range(1, size)))
            for peer in range(1, size):
                comm.isend(answer, peer, TAG)


def _receive_from(comm: MpiCommunicator, missing: set[int]) -> None:
    delay = FIRST_PAUSE
    while True:
        missing -= {source for source in missing if comm.receive(source, TAG, 1 << 20) is not None}
        if not missing:
            return
        time.sleep(delay)
        delay = min(2 * delay, LONGEST_PAUSE)


def spinning(comm: MPI.Intracomm, count: int) -> None:
    """The same with blocking calls, in which MPI spins."""
    rank, size = comm.Get_rank(), comm.Get_size()
    answer = b"a" * (PER_RANK * size)
    room = bytearray(max(len(answer), len(RECORD)))
    for _ in range(count):
        if rank:
            comm.Send([RECORD, MPI.BYTE], 0, TAG)
            comm.Recv([room, MPI.BYTE], 0, TAG)
        else:
            for peer in range(1, size):
                comm.Recv([room, MPI.BYTE], peer, TAG)
            for peer in range(1, size):
                comm.Send([answer, MPI.BYTE], peer, TAG)


def main(comm: MpiCommunicator, directory: Path, rounds: int) -> None:
    rank, size = comm.Get_rank(), comm.Get_size()
    capability = probe_directory(directory)
    count = exchanges(size)

    def qualified(generation: int) -> None:
        name = f"host{rank}"
        attempt = QualificationAttempt(epoch="e" * 64, generation=generation)
        result = qualify(comm, directory, Observation(capability, name), attempt)
        if not result.verified:
            comm.Abort(1)

    sides: dict[str, Callable[[int], object]] = {
        "qualification": qualified,
        "polled": lambda _: polled(comm, count),
        "spinning": lambda _: spinning(MPI.COMM_WORLD, count),
    }
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for generation in range(rounds + 1):  # the first warms up
        for name, measure in sides.items():
            polled(comm, 1)  # all begin together
            began = time.perf_counter()
            measure(generation)
            if generation:
                taken[name].append(time.perf_counter() - began)
    if rank == 0:
        print(json.dumps(taken))


if __name__ == "__main__":
    with world() as world_of_ranks:
        main(world_of_ranks, Path(sys.argv[1]), int(sys.argv[2]))
