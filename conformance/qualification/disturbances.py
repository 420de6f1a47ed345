"""What the environment of a fleet does to it: exceptions, time, messages, files, strangers.

Each is a step of ``models/qualification``, refused where it cannot be taken.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Protocol

from conformance.engine.gates import At, GateError, Idle
from conformance.engine.replay import Divergence, Refused
from conformance.qualification.environment import garbled, take_lock
from conformance.qualification.faults import control, ordinary
from conformance.qualification.ranks import Ranks
from smtspool.cluster import FROM_ROOT, TO_ROOT

__all__ = ["Disturbances"]

LEAP_S = 100.0  # past every deadline, and past the interval

# The first call that a step makes of the file layer, where it makes one.
FILE_CALL = {
    "root": "open_root",
    "prepare": "create",
    "anchor": "open",
    "open": "open",
    "Hold": "try_lock",
    "Contend": "try_lock",
    "Release": "release",
    "Reacquire": "open",
    "CloseIdentity": "open_root",
}


class _Looks(Protocol):
    """What must be known of a rank before it is disturbed."""

    def pc(self, rank: int) -> str: ...

    def record_of(self, rank: int) -> str: ...

    def leaf(self) -> str: ...

    def all_in(self, phase: str) -> bool: ...


class Disturbances:
    """The environment of one system."""

    def __init__(self, ranks: Ranks, projection: _Looks, go_on: Callable[[], None]) -> None:
        self._of = ranks
        self._projection = projection
        self._go_on = go_on
        self.steps: dict[str, Callable[[int], None]] = {
            "Turn": self.turn,
            "RaiseControl": self.raise_control,
            "Expire": self.expire,
            "Stray": self.stray,
            "Garble": self.garble,
            "FailFile": self.fail_file,
            "Intrude": lambda rank: self.intrude(),
            "Swap": lambda rank: self.swap(),
        }

    def turn(self, rank: int) -> None:
        """The loop of a service comes round."""
        if self._projection.pc(rank) != "work":
            raise Refused(f"rank {rank} is at {self._projection.pc(rank)}")
        if rank == 0:
            self._of.clocks[0].leap(LEAP_S)
        self._of.stage.call(str(rank), self._of.masters[rank].turn)
        self._go_on()

    def refuse_inputs(self, rank: int) -> None:
        """What is to be observed cannot be."""
        calls = ["heartbeat" if rank in self._of.results else "probe", "processor_name"]
        how = self._of.how()
        self._of.armed[rank] = (calls[how % len(calls)], 0, ordinary(how))

    def refuse_books(self, rank: int) -> None:
        """The books of a renewal cannot be kept: there is no time to write into them."""
        if self._of.at(rank) != "Consume":
            raise Refused(f"rank {rank} is at {self._of.at(rank)}")
        self._of.armed[rank] = ("clock", 0, ordinary(self._of.how()))

    def raise_ordinary(self, rank: int, sent: int) -> None:
        """An ordinary exception in the step at whose gate a rank stands, in its wait, or in its turn."""
        pc = self._projection.pc(rank)
        if pc not in ("observe", "act", "enter", "wait", "exchange", "commit", "work"):
            raise Refused(f"rank {rank} is at {pc}")
        if sent and not (rank == 0 and pc == "exchange"):
            raise Refused(f"rank {rank} answers nobody")
        how = self._of.how()
        error = self._of.struck[rank] = ordinary(how)
        call = self._call_of(rank, pc)
        if pc == "work":
            self._of.armed[rank] = ("receive", 0, error)
            self._of.stage.call(str(rank), self._of.masters[rank].turn)
        elif pc == "wait":
            self._of.armed[rank] = (("receive", "clock", "pause")[how // 6 % 3], 0, error)
            if self._of.armed[rank][0] == "pause":
                del self._of.armed[rank]
                self._of.stage.strike(str(rank), error)
            else:
                self._of.stage.wake(str(rank))
                self._of.stage.come_to_rest(f"{rank} was struck", moved=str(rank))
        elif call and (sent or how // 6 % 2):
            self._of.armed[rank] = (call, sent, error)
            self._of.stage.go(str(rank))
        else:
            self._of.stage.strike(str(rank), error)
        if self._of.at(rank) != "Contain":
            raise Divergence(f"{error!r} in {pc} of rank {rank} was contained by nobody", "escaped")
        self._go_on()

    def _call_of(self, rank: int, pc: str) -> str:
        """A call that the step makes, "" for none that is sure to come."""
        at = self._of.stage.players[str(rank)].position
        if not isinstance(at, At):
            return ""
        phase = str(at.params.get("phase", ""))
        if pc == "enter":
            files = phase in ("root", "anchor", "open") or (phase == "prepare" and rank == 0)
            return FILE_CALL[phase] if files else "isend" if rank else ""
        if pc == "exchange":
            return "" if rank else "isend"
        return FILE_CALL.get(at.name, "") if at.name != "Release" else ""

    def raise_control(self, rank: int) -> None:
        """Somebody interrupts a rank; nobody may catch that."""
        if self._projection.pc(rank) in ("work", "gone", "unwound"):
            raise Refused(f"rank {rank} is in no step")
        error = self._of.struck[rank] = control(self._of.how())
        self._of.stage.strike(str(rank), error)
        player = self._of.stage.players[str(rank)]
        if not isinstance(player.position, Idle) or player.raised is not error:
            raise Divergence(
                f"rank {rank} went on after {error!r}: {player.position}, {player.raised!r}", "escaped"
            )
        self._of.unwound.add(rank)

    def expire(self, rank: int) -> None:
        """The time of a rank that waits is over."""
        if self._projection.pc(rank) not in ("wait", "leaving"):
            raise Refused(f"rank {rank} does not wait")
        self._of.clocks[rank].leap(LEAP_S)
        self._of.stage.wake(str(rank))
        self._of.stage.come_to_rest(f"the deadline of {rank}", moved=str(rank))
        self._go_on()

    def stray(self, rank: int) -> None:
        """A message of another run arrives; it must be gone when the rank sleeps again."""
        if self._projection.pc(rank) != "wait":
            raise Refused(f"rank {rank} does not wait")
        source, tag = (0, FROM_ROOT) if rank else (self._missing(), TO_ROOT)
        self._of.network.stray(source, rank, tag, self._of.how())
        self._of.stage.come_to_rest(f"a stray message for {rank}")
        if self._of.network.waiting(source, rank, tag):
            raise Divergence(f"rank {rank} keeps a message of another run", "stray")

    def _missing(self) -> int:
        """A rank whose record the root waits for."""
        return next(rank for rank in self._of.ranks[1:] if rank not in self._of.network.unanswered)

    def garble(self, rank: int) -> None:
        """The record of a rank is damaged before the root reads it."""
        frame = self._of.network.unanswered.get(rank)
        if self._projection.pc(0) not in ("act", "enter") or frame is None:
            raise Refused(f"no record of rank {rank} is under way")
        if self._projection.record_of(rank) != "good":
            raise Refused(f"the record of rank {rank} is damaged already")
        self._of.network.garble(rank, garbled(frame, self._of.how()))

    def fail_file(self, rank: int) -> None:
        """The file system refuses what a step asks of it."""
        at = self._of.stage.players[str(rank)].position
        if not isinstance(at, At) or at.name == "Release":
            raise Refused(f"rank {rank} stands at {at}")
        key = at.name if at.name != "Enter" else str(at.params["phase"])
        if key not in FILE_CALL or (key == "prepare" and rank != 0):
            raise Refused(f"{key} of rank {rank} asks nothing of the file system")
        number = (errno.EIO, errno.EMFILE, errno.ESTALE)[self._of.how() % 3]
        self._of.armed[rank] = (FILE_CALL[key], 0, OSError(number, os.strerror(number)))
        self._of.stage.go(str(rank))
        if rank in self._of.armed:
            raise GateError(f"{key} of rank {rank} made no call of {FILE_CALL[key]}")
        self._go_on()

    def intrude(self) -> None:
        """A stranger takes the lock, where somebody else is about to."""
        leaves = self._of.places.leaves()
        if self._of.stranger is not None or not leaves:
            raise Refused("there is no lock to take")
        if not any(self._of.at(rank) in ("Hold", "Reacquire") for rank in self._of.ranks):
            raise Refused("nobody is about to take the lock")
        try:
            self._of.stranger = take_lock(leaves[0])
        except OSError as error:
            raise Refused(str(error)) from None
        self._of.held.pop(self._of.stranger, None)

    def swap(self) -> None:
        """Another file with the same content takes the place of the lock file."""
        pcs = [self._projection.pc(rank) for rank in self._of.ranks]
        if self._projection.leaf() != "real" or "act" not in pcs or not self._projection.all_in("identity"):
            raise Refused("the lock file will be opened again")
        (leaf,) = self._of.places.leaves()
        copy = leaf.with_name("copy")
        copy.write_bytes(leaf.read_bytes())
        copy.rename(leaf)
