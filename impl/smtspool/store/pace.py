"""How fast a store fills and empties, from the times that its rows carry.

Results and queries are numbered in the order of time, so the rows of the last minutes are found by bisection
over the numbers. That costs the same however large the store is, and needs no service to keep records.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

__all__ = ["Pace", "Rate", "pace"]

MINUTE = 60.0
QUARTER = 15 * MINUTE


@dataclass(frozen=True, slots=True)
class Rate:
    """How many came within the last minute and the last 15; times of the first and the last of all."""

    minute: int = 0
    quarter: int = 0
    first: float | None = None
    last: float | None = None

    def per_second(self, now: float) -> tuple[float, float]:
        """Over the last minute and the last 15, or over the time since the first came, if that is less."""
        age = QUARTER if self.first is None else max(1.0, now - self.first)
        return self.minute / min(MINUTE, age), self.quarter / min(QUARTER, age)


@dataclass(frozen=True, slots=True)
class Pace:
    """Queries stored, and queries answered."""

    admitted: Rate = Rate()
    answered: Rate = Rate()


def pace(connection: sqlite3.Connection, now: float) -> Pace:
    """The pace at ``now``; inside a transaction."""
    return Pace(
        admitted=_rate(connection, "queries", "created", now),
        answered=_rate(connection, "results", "completed", now),
    )


def _rate(connection: sqlite3.Connection, table: str, column: str, now: float) -> Rate:
    newest = connection.execute(
        f"SELECT number, {column} FROM {table} ORDER BY number DESC LIMIT 1"
    ).fetchone()
    if newest is None:
        return Rate()
    statement = f"SELECT {column} FROM {table} WHERE number >= ? ORDER BY number LIMIT 1"

    def since(moment: float) -> int:
        """How many numbers, back from the newest, are of this moment or later."""
        low, high = 0, newest[0]  # the last before the moment is in between
        step = 1
        while high - step > 0:  # it is usually near the newest
            if connection.execute(statement, (newest[0] - step,)).fetchone()[0] < moment:
                low = newest[0] - step
                break
            high = newest[0] - step
            step *= 2
        while low < high:
            middle = (low + high + 1) // 2
            if connection.execute(statement, (middle,)).fetchone()[0] < moment:
                low = middle
            else:
                high = middle - 1
        return int(newest[0]) - low

    (first,) = connection.execute(statement, (0,)).fetchone()
    return Rate(since(now - MINUTE), since(now - QUARTER), first, newest[1])
