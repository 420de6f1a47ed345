"""Which engine starts a race, and when the others join, learnt from earlier answers.

The engine that is likely to be the fastest starts alone. It answers most path constraints before another one
joins, so a race costs the time of one engine and not of three. Times are learnt per *class* of
query: its logic and its size in powers of two.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

from smtspool.query import Query

from .bundled import usual

__all__ = ["Hedge", "HedgePolicy", "Plan", "Time"]

_WINDOW = 64  # answers remembered per class and engine
_PRIOR_WEIGHT = 4  # a prior counts as this many answers
_LONGEST_MS = 1e9  # eleven days; no query may take so long


class Hedge(StrEnum):
    """The way in which engines join a race."""

    LEARNT = "learnt"  # order and delay follow the answers seen so far
    FIXED = "fixed"  # the order given; the delay is still learnt
    TOGETHER = "together"  # all at once, within the CPU budget


@dataclass(frozen=True, slots=True)
class Plan:
    """The schedule of one race: engines in starting order, ``delay_s`` between one start and the next."""

    order: tuple[str, ...]
    delay_s: float


@dataclass(frozen=True, slots=True)
class Time:
    """How long an engine ran in a race, milliseconds; ``cut_off`` if it had not answered by then.

    An engine that failed counts as having used up the whole time of the query.
    """

    engine: str
    ms: float
    cut_off: bool = False


class _Record:
    """The times of one engine in one class of queries, milliseconds.

    They are the times of its answers, and the times after which it was cut off because another engine had
    answered, which are lower bounds. ``usual`` is the median of both. ``p95`` is of its answers alone, since
    a race that it lost is no reason to wait longer for it. Both are cached, since every race reads them.
    """

    __slots__ = ("answered", "cut", "p95", "usual")

    def __init__(self, answered: Iterable[float], cut: Iterable[float] = ()) -> None:
        self.answered = deque(answered, maxlen=_WINDOW)
        self.cut = deque(cut, maxlen=_WINDOW)
        self._digest()

    def add(self, time: Time) -> None:
        (self.cut if time.cut_off else self.answered).append(time.ms)
        self._digest()

    def _digest(self) -> None:
        times = sorted((*self.answered, *self.cut))
        middle = len(times) // 2
        self.usual = (times[middle] + times[~middle]) / 2
        self.p95 = sorted(self.answered)[int(0.95 * (len(self.answered) - 1))]


@dataclass(slots=True)
class HedgePolicy:
    """Plans races and learns from them. Thread-safe; :meth:`to_json` keeps what was learnt.

    ``floor_s`` is the shortest delay, ``hard_s`` the longest: a query that takes longer gets a second CPU,
    and a class whose usual answer takes that long is *known to be hard*, so that its races start with all
    engines that the CPUs allow.
    """

    mode: Hedge = Hedge.LEARNT
    floor_s: float = 0.1
    hard_s: float = 0.25
    _seen: dict[str, dict[str, _Record]] = field(default_factory=dict)  # class -> engine -> record
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def plan(self, query: Query, engines: Sequence[str], *, hard: bool = False) -> Plan:
        """The schedule for ``query`` among ``engines``, given in the fixed order; ``hard``: all at once."""
        if self.mode is Hedge.TOGETHER:
            return Plan(tuple(engines), 0.0)
        with self._lock:
            records = self._records(query)
            usual = {engine: _of(records, engine).usual for engine in engines}
            order = tuple(engines)
            if self.mode is Hedge.LEARNT:
                order = tuple(sorted(engines, key=usual.__getitem__))
            p95_s = _of(records, order[0]).p95 / 1e3
        if hard or usual[order[0]] >= self.hard_s * 1e3:
            return Plan(order, 0.0)
        return Plan(order, min(self.hard_s, max(self.floor_s, 4 * p95_s)))

    def learn(self, query: Query, times: Iterable[Time]) -> None:
        """Record the times of the engines of a finished race; malformed ones are ignored."""
        with self._lock:
            records = self._seen.setdefault(_class_of(query), {})
            for time in filter(lambda time: _is_time(time.ms), times):
                if time.engine not in records:
                    records[time.engine] = _Record(_prior(time.engine).answered)
                records[time.engine].add(time)

    def to_json(self) -> dict[str, Any]:
        """The learnt times as plain JSON; the inverse of :meth:`load`."""
        with self._lock:
            return {
                key: {
                    engine: {"answered": list(record.answered), "cut": list(record.cut)}
                    for engine, record in records.items()
                }
                for key, records in self._seen.items()
            }

    def load(self, members: object) -> int:
        """Load the times that :meth:`to_json` of an earlier run gave.

        Returns how many entries (records of one engine, or classes of queries) are unusable and left out.
        """
        if not isinstance(members, Mapping):
            return 0 if members is None else 1
        learnt: dict[str, dict[str, _Record]] = {}
        unusable = 0
        for key, entries in members.items():
            if not isinstance(entries, Mapping):
                unusable += 1
                continue
            records = {engine: _record(entry) for engine, entry in entries.items()}
            learnt[key] = {engine: record for engine, record in records.items() if record is not None}
            unusable += len(records) - len(learnt[key])
        with self._lock:
            self._seen = learnt
        return unusable

    def _records(self, query: Query) -> Mapping[str, _Record]:
        return self._seen.get(_class_of(query), {})


def _class_of(query: Query) -> str:
    return f"{query.logic}/{query.size.bit_length()}"


def _of(records: Mapping[str, _Record], engine: str) -> _Record:
    return records.get(engine) or _prior(engine)


@cache
def _prior(engine: str) -> _Record:
    """The record of an engine that has not been timed; it is shared and never changed."""
    return _Record([usual(engine).solve_ms] * _PRIOR_WEIGHT)


def _record(members: object) -> _Record | None:
    """A record from JSON; None for anything that :meth:`HedgePolicy.to_json` never writes."""
    if not isinstance(members, Mapping) or set(members) != {"answered", "cut"}:
        return None
    if not all(isinstance(times, list) and all(map(_is_time, times)) for times in members.values()):
        return None
    return _Record(members["answered"], members["cut"]) if members["answered"] else None


def _is_time(ms: object) -> bool:
    return isinstance(ms, int | float) and not isinstance(ms, bool) and 0 <= ms <= _LONGEST_MS
