"""What stands around the ranks of a fleet: the network between them, their clocks, their files.

The network keeps the order of messages that MPI keeps, between two ranks and one tag. Directories,
descriptors and locks are real; where the file system is to have locks that are not shared, each rank has a
directory of its own and the environment copies the lock file, as two mounts of one directory show it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from smtspool.cluster import FLEET, TO_ROOT, Capability, LockFiles, OversizeMessage, probe_directory
from smtspool.files import Directory

__all__ = [
    "Calls",
    "Clock",
    "Files",
    "Gone",
    "Network",
    "Places",
    "RankEnd",
    "Sent",
    "document_of",
    "garbled",
    "places",
    "take_lock",
]

_PREFIX = ".smtspool-lock-"


# Told of a rank and of what it calls, ahead of the call.
Calls = Callable[[int, str], None]


class Gone(BaseException):
    """The process of a rank is no more: MPI has ended it."""


class Clock:
    """The time of one rank: it stands still, but for leaps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def leap(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that left at once."""

    rank: int
    calls: Calls

    def Test(self) -> bool:
        """It has."""
        self.calls(self.rank, "Test")
        return True


def _message(source: int, tag: int, place: list[int], epoch: str) -> bytes:
    """A well-formed message of the membership phase."""
    said: dict[str, Any] = {"phase": "membership", "round": 0}
    if tag == TO_ROOT:
        said |= {"schema": "smtspool-cluster-record-v1", "rank": source}
        said |= {"record": {"ok": True, "error": "", "processor": "elsewhere", "boot": ""}}
    else:
        said |= {"schema": "smtspool-cluster-answer-v1", "seconds": 1.0, "error": "of old", "records": []}
    return json.dumps({**said, "epoch": epoch, "place": place}).encode()


def document_of(frame: bytes) -> dict[str, Any]:
    """What a message says."""
    document: dict[str, Any] = json.loads(frame)
    return document


class Network:
    """All messages under way. ``calls`` is told of every call of a communicator, ahead of it, and may raise;
    ``wakes`` is told of every rank that has got a message."""

    def __init__(self, size: int, calls: Calls, wakes: Callable[[int], None]) -> None:
        self.size = size
        self.calls = calls
        self.code = 0
        self.told: dict[int, set[int]] = defaultdict(set)  # who told whom to stop
        self.unanswered: dict[int, bytes] = {}  # the records that were sent since the root answered last
        self.wakes = wakes
        self._queues: dict[tuple[int, int, int], deque[bytes]] = defaultdict(deque)
        self._guard = threading.Lock()  # protects everything above

    def put(self, source: int, dest: int, tag: int, frame: bytes) -> None:
        """A rank has sent a message."""
        with self._guard:
            if tag == TO_ROOT:
                self.unanswered[source] = frame
            if tag == FLEET and document_of(frame)["notice"] == "stop":
                self.told[source].add(dest)
            self._queues[source, dest, tag].append(frame)
        self.wakes(dest)

    def stray(self, source: int, dest: int, tag: int, how: int) -> None:
        """A message of another run arrives: of an earlier attempt, or of another fleet."""
        place, epoch = ([0, 0, 9], "0" * 64) if how % 2 else ([7, 7, 7], "f" * 64)
        with self._guard:
            self._queues[source, dest, tag].appendleft(_message(source, tag, place, epoch))
        self.wakes(dest)

    def take(self, source: int, dest: int, tag: int) -> bytes | None:
        """The oldest message, off the network."""
        with self._guard:
            queue = self._queues[source, dest, tag]
            return queue.popleft() if queue else None

    def waiting(self, source: int, dest: int, tag: int) -> tuple[bytes, ...]:
        """The messages that nobody has taken."""
        with self._guard:
            return tuple(self._queues[source, dest, tag])

    def garble(self, source: int, damaged: bytes) -> None:
        """Damage the record of ``source`` that is under way."""
        with self._guard:
            self._queues[source, 0, TO_ROOT][-1] = damaged
            self.unanswered[source] = damaged


class RankEnd:
    """One rank's end of the network."""

    def __init__(self, network: Network, rank: int) -> None:
        self._network = network
        self._rank = rank

    def Get_rank(self) -> int:
        """Which rank this is."""
        self._network.calls(self._rank, "Get_rank")
        return self._rank

    def Get_size(self) -> int:
        """How many there are."""
        self._network.calls(self._rank, "Get_size")
        return self._network.size

    def isend(self, frame: bytes, dest: int, tag: int) -> Sent:
        """Send."""
        self._network.calls(self._rank, "isend")
        self._network.put(self._rank, dest, tag, frame)
        return Sent(self._rank, self._network.calls)

    def receive(self, source: int, tag: int, limit: int) -> bytes | None:
        """The oldest message, if there is one."""
        self._network.calls(self._rank, "receive")
        frame = self._network.take(source, self._rank, tag)
        if frame is not None:
            self._network.wakes(self._rank)  # whoever has got something looks again before it sleeps
        if frame is not None and len(frame) > limit:
            raise OversizeMessage(f"{len(frame)} bytes")
        return frame

    def Abort(self, code: int) -> None:
        """End everybody."""
        self._network.calls(self._rank, "Abort")
        self._network.code = code
        raise Gone(code)


class Places:
    """The real directories of all systems of this process, one after the other: the shared one, and one that
    shows the same files and does not share their locks."""

    def __init__(self, folder: Path) -> None:
        self.shared, self.other = folder / "shared", folder / "other"
        self.capabilities: dict[Path, Capability] = {}
        for path in (self.shared, self.other):
            path.mkdir()
            self.capabilities[path] = probe_directory(path)

    def leaves(self) -> list[Path]:
        """The lock files that are there."""
        return sorted(self.shared.glob(f"{_PREFIX}*"))

    def descriptors(self) -> list[str]:
        """What this process has open in there."""
        links = [target(int(name)) for name in os.listdir("/proc/self/fd")]
        return [path for path in links if path.startswith(str(self.shared.parent))]

    def clear(self) -> None:
        """Remove the lock files that a fault in the code has left."""
        for path in (self.shared, self.other):
            for leaf in path.glob(f"{_PREFIX}*"):
                leaf.unlink()


def target(descriptor: int) -> str:
    """The file that a descriptor of this process leads to, "" if it is closed."""
    try:
        path = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115  hot, and no path of ours
    except FileNotFoundError:
        return ""
    return path.removesuffix(" (deleted)")


@dataclass
class Files(LockFiles):
    """The file layer of one rank, which knows what the rank holds."""

    rank: int
    root: Path
    mirror: Path | None  # where else the lock file shows
    calls: Calls
    held: dict[
        int, tuple[int, str]
    ]  # descriptor -> who opened it last, and for which file; shared by all ranks
    made: tuple[Path, int] | None = None  # the lock file that this rank made, and its inode

    def open_root(self, path: Path) -> Directory:
        self.calls(self.rank, "open_root")
        directory = super().open_root(path)
        self._hold(directory.fd)
        return directory

    def file_system(self, directory: Directory) -> tuple[int, int]:
        self.calls(self.rank, "file_system")
        return super().file_system(directory)

    def create(self, root: Directory, name: str, content: bytes) -> None:
        self.calls(self.rank, "create")
        super().create(root, name, content)
        self.made = (self.root / name, (self.root / name).stat().st_ino)
        if self.mirror is not None:
            shutil.copyfile(self.root / name, self.mirror / name)

    def remove(self, root: Directory, name: str) -> None:
        self.calls(self.rank, "remove")
        super().remove(root, name)
        if self.mirror is not None:
            (self.mirror / name).unlink(missing_ok=True)

    def open(self, root: Directory, name: str) -> int:
        self.calls(self.rank, "open")
        descriptor = super().open(root, name)
        self._hold(descriptor)
        return descriptor

    def content(self, fd: int) -> bytes:
        self.calls(self.rank, "content")
        return super().content(fd)

    def node(self, fd: int) -> tuple[int, int]:
        self.calls(self.rank, "node")
        return super().node(fd)

    def try_lock(self, fd: int, *, shared: bool = False) -> bool:
        self.calls(self.rank, "try_lock")
        return super().try_lock(fd, shared=shared)

    def release(self, fd: int) -> None:
        try:
            self.calls(self.rank, "release")
        finally:
            super().release(fd)

    def _hold(self, descriptor: int) -> None:
        self.held[descriptor] = (self.rank, target(descriptor))

    def open_now(self) -> Iterator[int]:
        """The descriptors that are open for this rank, as the kernel says."""
        for descriptor, (rank, path) in list(self.held.items()):
            if rank == self.rank:
                if target(descriptor) == path:
                    yield descriptor
                else:
                    self.held.pop(descriptor, None)

    def locks_now(self) -> bool:
        """Whether one of them has the lock to itself, as the kernel says."""
        for descriptor in self.open_now():
            with suppress(FileNotFoundError):
                if "ADVISORY  WRITE" in Path(f"/proc/self/fdinfo/{descriptor}").read_text():
                    return True
        return False


@contextmanager
def places() -> Iterator[Places]:
    """Real directories, in memory where there is such a file system: nobody needs them after a crash."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(prefix="qualify-", dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Places(Path(folder))


def take_lock(leaf: Path) -> int:
    """A stranger's descriptor with the lock; OSError if somebody has it."""
    descriptor = os.open(leaf, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def garbled(frame: bytes, how: int) -> bytes:
    """A record that was damaged on its way."""
    document = document_of(frame)
    match how % 4:
        case 0:
            return frame[:-2]
        case 1:
            document["record"] = {**document["record"], "extra": 1}
        case 2:
            document["record"] = {**document["record"], "ok": 1}
        case _:
            document["rank"] = document["rank"] + 1
    return json.dumps(document).encode()
