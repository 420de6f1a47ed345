"""A machine that refuses: threads and processes."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

SOMEBODY = 61_234  # a user id that runs nothing else


@contextmanager
def no_more_threads() -> Iterator[None]:
    """The kernel refuses this process every further thread and child."""
    root = os.geteuid() == 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, hard))
    if root:  # whom the kernel refuses nothing
        os.setresuid(SOMEBODY, SOMEBODY, 0)
    try:
        yield
    finally:
        if root:
            os.setresuid(0, 0, 0)
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
