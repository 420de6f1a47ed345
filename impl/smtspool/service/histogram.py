"""A histogram of durations, with cumulative counts below growing bounds, as Prometheus wants it."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

__all__ = ["SPANS", "Histogram"]

# Seconds, from a small query to the longest limit.
SPANS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)


class Histogram:
    """Thread-safe; the lock guards ``_counts`` and ``_total``."""

    def __init__(self, bounds: Sequence[float] = SPANS) -> None:
        self._bounds = tuple(bounds)
        self._lock = threading.Lock()
        self._counts = [0] * (len(self._bounds) + 1)
        self._total = 0.0

    def observe(self, values: Iterable[float]) -> None:
        """Add each of the values."""
        with self._lock:
            for value in values:
                self._counts[bisect_left(self._bounds, value)] += 1
                self._total += value

    def read(self) -> tuple[list[tuple[str, float]], float]:
        """For each upper bound the number of values not above it, the last being ``+Inf``; and their sum."""
        with self._lock:
            counts, total = list(self._counts), self._total
        names = [*(f"{bound:g}" for bound in self._bounds), "+Inf"]
        return list(zip(names, accumulate(counts), strict=True)), total
