"""Ranks as threads: a communicator with MPI's order of messages, in one process, without MPI."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from smtspool.cluster import OversizeMessage

T = TypeVar("T")

# Far beyond anything a healthy run needs; a rank that hangs fails its test instead of hanging it.
PATIENCE = 30.0


class Aborted(BaseException):
    """MPI_Abort does not return; it is no ordinary exception either."""


class Sent:
    """A message that left at once."""

    def Test(self) -> bool:
        return True


class Bus:
    """The network. ``aborted`` has the code of every Abort."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.aborted: list[tuple[int, int]] = []
        self._lock = threading.Lock()
        self._queues: dict[tuple[int, int, int], deque[bytes]] = defaultdict(deque)

    def put(self, source: int, dest: int, tag: int, frame: bytes) -> None:
        with self._lock:
            self._queues[source, dest, tag].append(frame)

    def take(self, source: int, dest: int, tag: int) -> bytes | None:
        with self._lock:
            queue = self._queues[source, dest, tag]
            return queue.popleft() if queue else None

    def waiting(self) -> int:
        """How many messages nobody has taken."""
        with self._lock:
            return sum(map(len, self._queues.values()))

    def communicators(self) -> list[BusCommunicator]:
        return [BusCommunicator(self, rank) for rank in range(self.size)]


class BusCommunicator:
    """One rank's end of a bus. Subclass it to make a call fail."""

    def __init__(self, bus: Bus, rank: int) -> None:
        self.bus = bus
        self.rank = rank

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.bus.size

    def isend(self, frame: bytes, dest: int, tag: int) -> Sent:
        assert type(frame) is bytes
        self.bus.put(self.rank, dest, tag, frame)
        return Sent()

    def receive(self, source: int, tag: int, limit: int) -> bytes | None:
        frame = self.bus.take(source, self.rank, tag)
        if frame is not None and len(frame) > limit:
            raise OversizeMessage(f"{len(frame)} bytes")
        return frame

    def Abort(self, code: int) -> None:
        self.bus.aborted.append((self.rank, code))
        raise Aborted(code)


def together(bodies: Sequence[Callable[[], T]]) -> list[T | BaseException]:
    """Run each body on a thread of its own; what each returned, or the exception that ended it."""
    outcomes: list[T | BaseException] = [AssertionError("did not end")] * len(bodies)

    def run(index: int) -> None:
        try:
            outcomes[index] = bodies[index]()
        except BaseException as error:  # noqa: BLE001 - handed to the test
            outcomes[index] = error

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "a rank hangs"
    return outcomes
