"""What a test must not leave behind: descriptors, threads, processes."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 30.0


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether the condition comes true before patience ends."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            return False
        os.sched_yield()
    return True


def soon() -> float:
    """A deadline that a healthy machine never meets."""
    return time.monotonic() + PATIENCE_S


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def descendants(pid: int) -> set[int]:
    """Every process below ``pid``."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    found, todo = set(), {pid}
    while todo:
        todo = {child for child, parent in parents.items() if parent in todo}
        found |= todo
    return found


def gone(pid: int) -> bool:
    """True if there is no such process, or a zombie that is not ours to reap."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@contextmanager
def no_trace() -> Iterator[None]:
    """Fails if the block leaves more descriptors, threads or processes than there were."""
    before = descriptors(), threading.active_count(), descendants(os.getpid())
    yield
    assert eventually(lambda: threading.active_count() <= before[1])
    assert eventually(lambda: descendants(os.getpid()) <= before[2])
    assert descriptors() == before[0]
