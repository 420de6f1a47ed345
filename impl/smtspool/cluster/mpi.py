"""The communicator over mpi4py. Imported only when MPI is used (extra ``smtspool[mpi]``).

Only operations that return at once are used. MPI implementations, mpich among them, spin inside blocking
calls; here every wait is a ``pause`` of the protocol. All calls come from one thread.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

from smtspool.errors import ConfigError

from .communicator import OversizeMessage, Sending
from .diagnostics import describe

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["MpiCommunicator", "processor_name", "started_by_mpi", "world"]

# Set by the launchers of mpich (and Intel MPI, MVAPICH), Open MPI, and others that speak PMIx.
_LAUNCHED = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
# The abort of another rank would kill rank 0 while it writes its message, so the others wait so many seconds.
LAST_WORDS = 2.0
# When a rank aborts, the launcher drops output that it has not passed on yet, so rank 0 waits so many
# seconds.
PASSED_ON = 0.2
DEFECT = 70  # EX_SOFTWARE: the exit code after an exception


def started_by_mpi(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is a rank of a job."""
    return any(name in environment for name in _LAUNCHED)


def world() -> MpiCommunicator:
    """All ranks of this job; one, if there is no job. Initialises MPI; ConfigError if it is not installed."""
    try:
        import mpi4py

        mpi4py.rc.thread_level = "funneled"
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py is installed, but no MPI library
        raise ConfigError(
            f"there is no MPI here ({error}); install it with: pip install 'smtspool[mpi]'"
        ) from error
    return MpiCommunicator(MPI.COMM_WORLD)  # making a duplicate would be a collective call


def processor_name() -> str:
    """The name of this host, as MPI knows it."""
    from mpi4py import MPI

    return MPI.Get_processor_name()


class MpiCommunicator:
    """A communicator of the protocol over one of MPI. It keeps every buffer until MPI has sent it.

    Leaving its ``with`` block by an exception aborts the job, since MPI_Finalize would wait for the other
    ranks, and they for this one.
    """

    def __init__(self, comm: MPI.Intracomm, *, pause: Callable[[float], None] = time.sleep) -> None:
        from mpi4py import MPI

        self._mpi = MPI
        self._comm = comm
        self._pause = pause
        self._leaving: list[tuple[MPI.Request, bytes]] = []
        self._arriving: dict[tuple[int, int], tuple[MPI.Request, bytearray]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(f"smtspool: {describe(error)}", file=sys.stderr, flush=True)
            code = error.code if isinstance(error, SystemExit) else None
            self.Abort(code if type(code) is int else DEFECT)

    def Get_rank(self) -> int:
        return self._comm.Get_rank()

    def Get_size(self) -> int:
        return self._comm.Get_size()

    def isend(self, frame: bytes, dest: int, tag: int) -> Sending:
        self._leaving = [(request, kept) for request, kept in self._leaving if not request.Test()]
        request = self._comm.Isend([frame, self._mpi.BYTE], dest, tag)
        self._leaving.append((request, frame))
        return request

    def receive(self, source: int, tag: int, limit: int) -> bytes | None:
        arriving = self._arriving.get((source, tag)) or self._matched(source, tag)
        if arriving is None:
            return None
        request, buffer = arriving
        if not request.Test():
            self._arriving[source, tag] = arriving
            return None
        self._arriving.pop((source, tag), None)
        if len(buffer) > limit:
            raise OversizeMessage(f"a message of {len(buffer)} bytes; at most {limit} are read")
        return bytes(buffer)

    def _matched(self, source: int, tag: int) -> tuple[MPI.Request, bytearray] | None:
        status = self._mpi.Status()
        # Called twice, because mpich reads from the network only when a call has found nothing.
        message = self._comm.Improbe(source, tag, status) or self._comm.Improbe(source, tag, status)
        if message is None:
            return None
        buffer = bytearray(status.Get_count(self._mpi.BYTE))
        return message.Irecv([buffer, self._mpi.BYTE]), buffer

    def Abort(self, code: int) -> NoReturn:
        first = self._comm.Get_rank() == 0
        if not first:
            self._pause(LAST_WORDS)
        sys.stdout.flush()
        sys.stderr.flush()
        if first:
            self._pause(PASSED_ON)
        self._comm.Abort(code)
        os._exit(code)  # mpich's Abort returns before the launcher kills this process; do nothing more
