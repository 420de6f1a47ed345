"""The values of the evaluator: Bools, bit-vectors and arrays; and the bound on its work."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["FREE_BITS", "Array", "Bits", "Steps", "Unreadable", "Value"]

Bits = tuple[int, int]  # width and number
Value: TypeAlias = "bool | Bits | Array"

FREE_BITS = 64  # an operation on bit-vectors up to this width counts as one step


class Unreadable(Exception):
    """There is no value: an unknown token, an ill-sorted application, or more steps than allowed."""


class Steps:
    """Counts the steps of an evaluation against its limit."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, count: int) -> None:
        """Count so many steps. Raises :class:`Unreadable` when the limit is passed."""
        self.left -= count
        if self.left < 0:
            raise Unreadable("too many steps")

    def take_for(self, width: int) -> None:
        """Count one operation on bit-vectors of ``width`` bits, which may take quadratic time."""
        self.take(width * width >> 16)


class Array:
    """An array: its elements at some keys, and ``default`` at all others.

    All versions of one array share one table, which belongs to the version that was read last. Each other
    version keeps one key at which it differs from the next version on the way to that one. So a chain of
    stores takes memory and time in proportion to its length (Baker, "Shallow binding makes functional arrays
    fast", 1991).
    """

    __slots__ = ("_key", "_next", "_steps", "_table", "_value", "default", "size")

    def __init__(self, size: int, default: Value, table: dict[Value, Value], steps: Steps) -> None:
        self.size = size  # the number of keys of the sort, or more than any table holds
        self.default = default
        self._steps = steps
        self._table: dict[Value, Value] | None = table
        self._next = self  # of a version without the table: equal to it except at the key, where ...
        self._key: Value = False
        self._value: Value | None = None  # ... this version has this value, None for the default

    def select(self, key: Value) -> Value:
        """The element at ``key``."""
        return self._own_table().get(_plain(key), self.default)

    def store(self, key: Value, value: Value) -> Array:
        """This array with ``value`` at ``key``."""
        table = self._own_table()
        new = Array(self.size, self.default, table, self._steps)
        self._differ(new, _plain(key), table.get(key))
        table[key] = value
        return new

    def __eq__(self, other: object) -> bool:
        """Whether the elements are equal at every key (extensionality, ArraysEx)."""
        if not isinstance(other, Array):
            return NotImplemented
        mine = dict(self._own_table())  # a copy: reading the other version may change the table
        theirs = other._own_table()
        self._steps.take(len(mine) + len(theirs) + 1)
        keys = mine.keys() | theirs.keys()
        if len(keys) < self.size and self.default != other.default:
            return False
        return all(mine.get(key, self.default) == theirs.get(key, other.default) for key in keys)

    __hash__ = object.__hash__  # for the memory of calls, which may take equal arrays for different ones

    def _own_table(self) -> dict[Value, Value]:
        versions = [self]
        while versions[-1]._table is None:
            versions.append(versions[-1]._next)
        self._steps.take(len(versions))
        owner = versions.pop()
        table = owner._table
        assert table is not None
        for version in reversed(versions):
            key, value = version._key, version._value
            owner._differ(version, key, table.get(key))
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value
            version._table = table
            version._next = owner = version
        return table

    def _differ(self, other: Array, key: Value, value: Value | None) -> None:
        self._table = None
        self._next, self._key, self._value = other, key, value


def _plain(key: Value) -> Value:
    """``key``, unless it is an array: equal arrays would have to be the same key of a table."""
    if isinstance(key, Array):
        raise Unreadable("an array is the key of an array")
    return key
