"""The part of MPI that the protocol uses: point-to-point messages without blocking, and Abort.

The protocol uses no collective operation, since one missing rank would block all others without a deadline.
Messages from one rank to another with one tag arrive in the order they were sent. :mod:`.mpi` implements it.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["FLEET", "FROM_ROOT", "TO_ROOT", "Communicator", "OversizeMessage", "Sending"]

TO_ROOT = 31
FROM_ROOT = 32
FLEET = 33  # renewal requests, and the end of a fleet


class OversizeMessage(ValueError):
    """A message is longer than its reader accepts. It was received and dropped."""


class Sending(Protocol):
    """A message on its way."""

    def Test(self) -> bool:
        """True once the message has been sent; never waits."""
        ...


class Communicator(Protocol):
    """The masters of one fleet, ranks 0 to size-1. Any call may raise anything (F355 §1)."""

    def Get_rank(self) -> int: ...

    def Get_size(self) -> int: ...

    def isend(self, frame: bytes, dest: int, tag: int) -> Sending:
        """Begin to send; never waits."""
        ...

    def receive(self, source: int, tag: int, limit: int) -> bytes | None:
        """The oldest message from ``source`` with ``tag`` that has wholly arrived, or None; never waits.

        :raises OversizeMessage: it is longer than ``limit`` bytes
        """
        ...

    def Abort(self, code: int) -> None:
        """End every process of the fleet with exit code ``code``."""
        ...
