"""How long to wait after failures in a row."""

from __future__ import annotations

__all__ = ["backoff_seconds"]

# 2.0 ** n overflows for large n; so many doublings reach every longest delay in use.
_MOST_DOUBLINGS = 20


def backoff_seconds(failures: int, *, first: float, most: float) -> float:
    """Delay after the ``failures``-th failure in a row: ``first``, doubled each time, ``most`` in the end."""
    return min(most, first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
