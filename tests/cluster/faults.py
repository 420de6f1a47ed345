"""Exceptions at a chosen call of communicator, clock, pause or file layer; time that can run away."""

from __future__ import annotations

import time
from typing import Any

from smtspool.cluster import LockFiles
from tests.cluster.bus import Bus, BusCommunicator, Sent

COMMUNICATION = frozenset({"Get_rank", "Get_size", "isend", "Test"})
POLLS = frozenset({"receive", "clock", "pause"})
FILES = frozenset(
    {
        "open_root",
        "file_system",
        "create",
        "remove",
        "open",
        "content",
        "node",
        "try_lock",
        "release",
    }
)


class Clock:
    """A clock for all ranks of a test; real, until it runs away: then every look is past any deadline."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._running_away = False

    def __call__(self) -> float:
        if self._running_away:
            self._ahead += 10_000.0
        return time.monotonic() + self._ahead

    def run_away(self) -> None:
        self._running_away = True


class Fuse:
    """Raises ``error`` at the ``at``-th of the calls named in ``among``, once."""

    def __init__(self, at: int, error: BaseException, among: frozenset[str]) -> None:
        self.at = at
        self.error = error
        self.among = among
        self.blown_by: str | None = None
        self._passed = 0

    def __call__(self, name: str) -> None:
        if name in self.among and self.blown_by is None:
            if self._passed == self.at:
                self.blown_by = name
                raise self.error
            self._passed += 1


class FaultySent(Sent):
    def __init__(self, fuse: Fuse) -> None:
        self._fuse = fuse

    def Test(self) -> bool:
        self._fuse("Test")
        return True


class FaultyCommunicator(BusCommunicator):
    def __init__(self, bus: Bus, rank: int, fuse: Fuse) -> None:
        super().__init__(bus, rank)
        self._fuse = fuse

    def Get_rank(self) -> int:
        self._fuse("Get_rank")
        return super().Get_rank()

    def Get_size(self) -> int:
        self._fuse("Get_size")
        return super().Get_size()

    def isend(self, frame: bytes, dest: int, tag: int) -> Sent:
        self._fuse("isend")
        super().isend(frame, dest, tag)
        return FaultySent(self._fuse)

    def receive(self, source: int, tag: int, limit: int) -> bytes | None:
        self._fuse("receive")
        return super().receive(source, tag, limit)


class FaultyFiles(LockFiles):
    """The real file layer, behind a fuse."""

    def __init__(self, fuse: Fuse) -> None:
        self._fuse = fuse

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in FILES:
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            # What gives something back has done so before it fails: there is nobody else to do it.
            if name in ("release", "remove"):
                found(*arguments, **named)
                self._fuse(name)
                return None
            self._fuse(name)
            return found(*arguments, **named)

        return call
