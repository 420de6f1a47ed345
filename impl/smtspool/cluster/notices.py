"""Short messages between the masters of a running fleet: a renewal begins, a rank fails, all have ended."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from .communicator import FLEET, Communicator, Sending
from .diagnostics import describe
from .frames import Malformed, Place, decode, encode

__all__ = ["Note", "Notice", "Notices"]

SCHEMA = "smtspool-cluster-notice-v1"
KEYS = frozenset({"notice", "plan"})
NOTICE_LIMIT = 4096


class Notice(StrEnum):
    """The kinds of messages."""

    RENEW = "renew"  # rank 0: the next generation begins
    STOP = "stop"  # the sender has failed and shuts down; all others must do so too
    DOWN = "down"  # the service of the sender has ended
    DRAIN = "drain"  # the sender got a signal to end; all ranks drain
    DONE = "done"  # to rank 0: the sender has nothing more to do
    END = "end"  # from rank 0: no rank has anything more to do


class Note(NamedTuple):
    """A notice that arrived; ``plan`` is the fingerprint of the renewal plan, if the notice has one."""

    source: int
    notice: Notice
    generation: int
    plan: str


class Notices:
    """The notices of one rank. ``dropped`` counts those of another epoch."""

    def __init__(self, comm: Communicator, *, rank: int, size: int, epoch: str) -> None:
        self._comm = comm
        self._epoch = epoch
        self.others = [other for other in range(size) if other != rank]
        self._sendings: list[Sending] = []
        self.dropped = 0

    def tell(self, notice: Notice, *to: int, generation: int = 0, plan: str = "") -> None:
        """Send to the ranks ``to``, or to all others. Never waits."""
        frame = encode(SCHEMA, self._epoch, Place(generation, 0, 0), {"notice": notice.value, "plan": plan})
        for dest in to or self.others:
            self._sendings.append(self._comm.isend(frame, dest, FLEET))

    def arrived(self) -> list[Note]:
        """All notices that have arrived, those of each sender in order. Malformed for any other message."""
        self._sendings = [sending for sending in self._sendings if not sending.Test()]
        return [note for source in self.others for note in self._from(source)]

    def _from(self, source: int) -> list[Note]:
        notes = []
        while (frame := self._comm.receive(source, FLEET, NOTICE_LIMIT)) is not None:
            try:
                epoch, place, members = decode(frame, SCHEMA, KEYS)
                note = Note(source, Notice(members["notice"]), place.generation, str(members["plan"]))
            except ValueError as error:
                raise Malformed(f"rank {source} sent {describe(error)}") from None
            if epoch == self._epoch:
                notes.append(note)
            else:
                self.dropped += 1
        return notes
