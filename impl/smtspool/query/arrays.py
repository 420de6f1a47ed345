"""Values as the evaluator has them, arrays above all, and the bound on work with them."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["FREE_BITS", "Array", "Bits", "Steps", "Unreadable", "Value"]

Bits = tuple[int, int]  # width and number
Value: TypeAlias = "bool | Bits | Array"

FREE_BITS = 64  # an operation on so many is a step like any other


class Unreadable(Exception):
    """No value can be told: of a token, of an ill-sorted application, or within the steps allowed."""


class Steps:
    """The steps that are left."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, count: int) -> None:
        """Raises :class:`Unreadable` when there are not so many left."""
        self.left -= count
        if self.left < 0:
            raise Unreadable("too many steps")

    def take_for(self, width: int) -> None:
        """For one operation on bit-vectors of ``width`` bits, which at worst is quadratic."""
        self.take(width * width >> 16)


class Array:
    """An array: what it holds at some keys, and ``default`` everywhere else.

    All versions of one array share a table: that of the version looked at last. Each of the others knows how
    it differs from one nearer to that, so that a chain of stores takes memory and time for its stores alone
    (Baker, "Shallow binding makes functional arrays fast", 1991).
    """

    __slots__ = ("_key", "_next", "_steps", "_table", "_value", "default", "size")

    def __init__(self, size: int, default: Value, table: dict[Value, Value], steps: Steps) -> None:
        self.size = size  # how many keys there are, or any number that no table reaches
        self.default = default
        self._steps = steps
        self._table: dict[Value, Value] | None = table
        self._next = self  # without a table of its own: equal to this one but at the key, where it ...
        self._key: Value = False
        self._value: Value | None = None  # ... has this value; None: the default

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
        """Whether they hold the same everywhere: extensionality of ArraysEx."""
        if not isinstance(other, Array):
            return NotImplemented
        mine = dict(self._own_table())  # looking at the other one may change the table
        theirs = other._own_table()
        self._steps.take(len(mine) + len(theirs) + 1)
        keys = mine.keys() | theirs.keys()
        if len(keys) < self.size and self.default != other.default:
            return False
        return all(mine.get(key, self.default) == theirs.get(key, other.default) for key in keys)

    __hash__ = object.__hash__  # for remembering calls, where an equal array may be taken for another one

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
    """Arrays as keys would need one table per array that is equal to another."""
    if isinstance(key, Array):
        raise Unreadable("an array is the key of an array")
    return key
