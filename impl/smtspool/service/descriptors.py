"""The descriptors that a service may open: a worker takes eight per engine, and the usual limit is 1024."""

from __future__ import annotations

import resource

__all__ = ["allow_descriptors"]

# Less than a machine may allow, since some commands close every possible descriptor when they start.
DESCRIPTORS = 1 << 16


def allow_descriptors() -> None:
    """Raise this process's limit as far as allowed, until it ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < min(hard, DESCRIPTORS):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, DESCRIPTORS), hard))
