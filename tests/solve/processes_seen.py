"""What a process has left: descriptors, threads, and descendants with their states, read from /proc."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path


def descendants(root: int | None = None) -> dict[int, str]:
    """Every process below ``root`` (this process): pid -> state letter."""
    children: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(int(parent), []).append((int(entry.name), state))
    found: dict[int, str] = {}
    todo = [root or os.getpid()]
    while todo:
        for pid, state in children.get(todo.pop(), ()):
            found[pid] = state
            todo.append(pid)
    return found


@dataclass(frozen=True)
class Holdings:
    descriptors: int
    threads: int
    processes: int

    @classmethod
    def now(cls) -> Holdings:
        return cls(
            descriptors=len(os.listdir("/proc/self/fd")),
            threads=threading.active_count(),
            processes=len(descendants()),
        )
