"""A rank whose communicator fails: ``faulty_rank.py CALL RANK COMMAND...`` is ``smtspool COMMAND...`` where
rank RANK raises a LookupError at every CALL. With ``descriptors`` as CALL it qualifies DIR three times, the
second time with locks that do not hold, and writes how many descriptors each attempt left to DIR.RANK: what
several ranks print at once, mpiexec mixes.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from smtspool import cluster
from smtspool.cli import main


def failing_at(call: str, rank: int) -> None:
    real = getattr(cluster.MpiCommunicator, call)

    def maybe(self: cluster.MpiCommunicator, *arguments: Any) -> Any:
        if int(os.environ["PMI_RANK"]) == rank:
            raise LookupError("injected communicator adapter failure")
        return real(self, *arguments)

    setattr(cluster.MpiCommunicator, call, maybe)


class GivesToAll(cluster.LockFiles):
    def try_lock(self, fd: int, *, shared: bool = False) -> bool:
        return True


def descriptors(directory: Path) -> None:
    comm = cluster.world()
    capability = cluster.probe_directory(directory)
    seen = cluster.Observation(capability, cluster.processor_name())
    qualified = []
    before = len(os.listdir("/proc/self/fd"))
    for number, files in enumerate([cluster.LockFiles(), GivesToAll(), cluster.LockFiles()], 1):
        result = cluster.qualify(
            comm, directory, seen, cluster.QualificationAttempt(number=number), files=files
        )
        qualified.append([result.verified, len(os.listdir("/proc/self/fd")) - before])
    told = directory.with_name(f"{directory.name}.{comm.Get_rank()}")
    told.write_text(json.dumps(qualified))


if __name__ == "__main__":
    call, rank, *command = sys.argv[1:]
    if call == "descriptors":
        descriptors(Path(command[0]))
    else:
        failing_at(call, int(rank))
        sys.argv[1:] = command
        main()
