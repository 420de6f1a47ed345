"""Caches of terms that were read: a longer path repeats all assertions of a shorter one.

A cache never changes a result. All that a result depends on is in the key of its entry or stands beside it,
and an entry that is lost costs the time to read its text again.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from smtspool.query.identity import Declaration, Term
from smtspool.query.limits import Limits
from smtspool.query.value import Level

__all__ = ["Checked", "Memo", "Memory", "Node", "memory_of"]

_CHARACTERS = 1 << 18  # of source text in half a memo; its entries take some ten times as many bytes
_LONGEST = 4096  # a longer text is a whole path in one term, and will hardly come again

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """A dictionary that forgets its older half when the newer one is full. Threads may share it."""

    def __init__(self, characters: int = _CHARACTERS) -> None:
        self._limit = characters
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._characters = 0  # of the younger half
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value that was put under ``key``, if it is still here."""
        found = self._young.get(key)
        return self._old.get(key) if found is None else found

    def put(self, key: K, value: V, characters: int) -> None:
        """Remember ``value``, read from a text of so many ``characters``, unless that is very long."""
        if characters > _LONGEST:
            return
        with self._lock:
            self._characters += characters
            if self._characters > self._limit:
                self._old, self._young, self._characters = self._young, {}, characters
            self._young[key] = value


class Checked(NamedTuple):
    """A term that was checked; it is valid wherever the names in ``required`` mean the same."""

    term: Term
    required: frozenset[tuple[str, object]]


class Node(NamedTuple):
    """One assertion on top of those below it: its level, its part of the form, and names new in it."""

    level: Level
    form: str
    names: tuple[str, ...]


class Memory:
    """Everything remembered of one logic under one set of limits."""

    def __init__(self) -> None:
        self.terms = Memo[str, Checked]()  # by source text
        self.symbols = Memo[str, Declaration]()  # by source text; of built-in sorts, without abbreviations
        self.applied: dict[tuple[object, ...], str] = {}  # sorts of applications, by what their parts mean
        self.nodes = Memo[tuple[str, str, tuple[str, ...]], Node]()  # by key below, term and declarations


@lru_cache(maxsize=8)
def memory_of(logic: str, limits: Limits) -> Memory:
    """The memory of this process."""
    return Memory()
