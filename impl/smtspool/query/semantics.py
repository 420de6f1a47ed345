"""The operators as functions of values: the theories Core, FixedSizeBitVectors and ArraysEx of SMT-LIB 2.7.

A Bool is a ``bool``. A bit-vector is a pair of its width and its value as an unsigned number (the theory's
``bv2nat``). An array is an :class:`Array`. The terms of an admitted query are well-sorted; a function that
gets other arguments raises :class:`Unreadable`.

The definitions are the standard's; no code of an engine is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from smtspool.query.arrays import Array, Bits, Unreadable, Value
from smtspool.query.operators import INDICES

__all__ = ["OPERATORS", "Function", "indexed_or_literal", "truth"]

Function = Callable[..., Value]

_INDEXED = re.compile(r"\(_ ([a-z_]+?)([0-9]*)((?: [0-9]+)+)\)", re.ASCII)


# -- Core -------------------------------------------------------------------------------------------------


def truth(value: Value) -> bool:
    """``value``, which must be a Bool. Raises :class:`Unreadable`."""
    if value is True or value is False:
        return value
    raise Unreadable("a Bool is expected")


def _not(value: Value) -> bool:
    return not truth(value)


def _and(*values: Value) -> bool:
    return all(map(truth, values))


def _or(*values: Value) -> bool:
    return any(map(truth, values))


def _xor(*values: Value) -> bool:
    return sum(map(truth, values)) % 2 == 1


def _implies(*values: Value) -> bool:
    """Right-associative: false if all values but the last are true and the last is false."""
    *premises, conclusion = values
    return truth(conclusion) or not _and(*premises)


def _sort_alike(first: Value, others: tuple[Value, ...]) -> None:
    """Raise :class:`Unreadable` if one of ``others`` has another kind or width than ``first``."""
    width = first[0] if isinstance(first, tuple) else 0
    for value in others:
        if value.__class__ is not first.__class__ or (isinstance(value, tuple) and value[0] != width):
            raise Unreadable("terms of one sort are expected")


def _equal(first: Value, second: Value, *more: Value) -> bool:
    others = (second, *more)
    _sort_alike(first, others)
    return others.count(first) == len(others)


def _distinct(*values: Value) -> bool:
    _sort_alike(values[0], values)
    if not isinstance(values[0], Array):
        return len(set(values)) == len(values)
    return not any(one == other for at, one in enumerate(values) for other in values[:at])


def _ite(condition: Value, then: Value, otherwise: Value) -> Value:
    return then if truth(condition) else otherwise


# -- ArraysEx ---------------------------------------------------------------------------------------------


def _select(array: Value, key: Value) -> Value:
    return _array(array).select(key)


def _store(array: Value, key: Value, value: Value) -> Value:
    return _array(array).store(key, value)


def _array(value: Value) -> Array:
    if isinstance(value, Array):
        return value
    raise Unreadable("an array is expected")


# -- FixedSizeBitVectors ----------------------------------------------------------------------------------
# Of width m, and numbers s and t, which are the names in the theory's definitions.

_One = Callable[[int, int], int]
_Two = Callable[[int, int, int], int]


def _bits(value: Value) -> Bits:
    if value.__class__ is tuple:
        return value
    raise Unreadable("a bit-vector is expected")


def _of_one(does: _One) -> Function:
    """The operator whose result is ``does`` modulo 2^m."""

    def function(value: Value) -> Value:
        width, s = _bits(value)
        return width, does(width, s) & ((1 << width) - 1)

    return function


def _of_two(does: _Two) -> Function:
    """The operator whose result is ``does`` modulo 2^m."""

    def function(first: Value, second: Value) -> Value:
        width, s = _bits(first)
        other, t = _bits(second)
        if width != other:
            raise Unreadable("bit-vectors of one width are expected")
        return width, does(width, s, t) & ((1 << width) - 1)

    return function


def _of_many(does: _Two) -> Function:
    """The left-associative operator of two or more arguments."""
    of_two = _of_two(does)

    def function(first: Value, second: Value, *more: Value) -> Value:
        result = of_two(first, second)
        for value in more:
            result = of_two(result, value)
        return result

    return function


def _asks_one(does: Callable[[int, int], bool]) -> Function:
    def function(value: Value) -> Value:
        return does(*_bits(value))

    return function


def _asks_two(does: Callable[[int, int, int], bool]) -> Function:
    def function(first: Value, second: Value) -> Value:
        width, s = _bits(first)
        other, t = _bits(second)
        if width != other:
            raise Unreadable("bit-vectors of one width are expected")
        return does(width, s, t)

    return function


def _as_bit(asks: Function) -> Function:
    return lambda *values: (1, int(asks(*values) is True))


def _signed(m: int, s: int) -> int:
    return s - (1 << m) if s >> (m - 1) else s


def _overflows(m: int, number: int) -> bool:
    """Whether ``number`` is no signed number of m bits."""
    return not -(1 << (m - 1)) <= number < 1 << (m - 1)


def _udiv(m: int, s: int, t: int) -> int:
    return s // t if t else (1 << m) - 1


def _urem(_m: int, s: int, t: int) -> int:
    return s % t if t else s


def _sdiv(m: int, s: int, t: int) -> int:
    one, other = _signed(m, s), _signed(m, t)
    quotient = _udiv(m, abs(one), abs(other))
    return -quotient if (one < 0) != (other < 0) else quotient


def _srem(m: int, s: int, t: int) -> int:
    """The sign follows the dividend."""
    one, other = _signed(m, s), _signed(m, t)
    remainder = _urem(m, abs(one), abs(other))
    return -remainder if one < 0 else remainder


def _smod(m: int, s: int, t: int) -> int:
    """The sign follows the divisor."""
    one, other = _signed(m, s), _signed(m, t)
    remainder = _urem(m, abs(one), abs(other))
    if remainder and (one < 0) != (other < 0):
        return (-remainder if one < 0 else remainder) + other
    return -remainder if one < 0 else remainder


def _rotated(m: int, s: int, by: int) -> int:
    """The bits of s, rotated to the left."""
    by %= m
    return s << by | s >> (m - by)


def _concat(*values: Value) -> Value:
    width = number = 0
    for value in values:
        m, s = _bits(value)
        width, number = width + m, number << m | s
    return width, number


def _bit_choice(condition: Value, then: Value, otherwise: Value) -> Value:
    return _ite(_equal(condition, (1, 1)), then, otherwise)


_CORE: dict[str, Function] = {
    "not": _not,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "=>": _implies,
    "=": _equal,
    "distinct": _distinct,
    "ite": _ite,
}
_ARRAYS: dict[str, Function] = {"select": _select, "store": _store}
_ONE: dict[str, _One] = {
    "bvnot": lambda m, s: ~s,
    "bvneg": lambda m, s: -s,
    "bvinc": lambda m, s: s + 1,
    "bvdec": lambda m, s: s - 1,
}
_MANY: dict[str, _Two] = {
    "bvand": lambda m, s, t: s & t,
    "bvor": lambda m, s, t: s | t,
    "bvxor": lambda m, s, t: s ^ t,
    "bvadd": lambda m, s, t: s + t,
    "bvmul": lambda m, s, t: s * t,
}
_TWO: dict[str, _Two] = {
    "bvnand": lambda m, s, t: ~(s & t),
    "bvnor": lambda m, s, t: ~(s | t),
    "bvxnor": lambda m, s, t: ~(s ^ t),
    "bvsub": lambda m, s, t: s - t,
    "bvudiv": _udiv,
    "bvurem": _urem,
    "bvsdiv": _sdiv,
    "bvsrem": _srem,
    "bvsmod": _smod,
    "bvshl": lambda m, s, t: s << t if t < m else 0,
    "bvlshr": lambda m, s, t: s >> t if t < m else 0,
    "bvashr": lambda m, s, t: _signed(m, s) >> min(t, m),
    "bvrol": _rotated,
    "bvror": lambda m, s, t: _rotated(m, s, -t),
}
_ORDERS: dict[str, Callable[[int, int, int], bool]] = {
    "bvult": lambda m, s, t: s < t,
    "bvule": lambda m, s, t: s <= t,
    "bvugt": lambda m, s, t: s > t,
    "bvuge": lambda m, s, t: s >= t,
    "bvslt": lambda m, s, t: _signed(m, s) < _signed(m, t),
    "bvsle": lambda m, s, t: _signed(m, s) <= _signed(m, t),
    "bvsgt": lambda m, s, t: _signed(m, s) > _signed(m, t),
    "bvsge": lambda m, s, t: _signed(m, s) >= _signed(m, t),
    "bvuaddo": lambda m, s, t: s + t >> m > 0,
    "bvumulo": lambda m, s, t: s * t >> m > 0,
    "bvusubo": lambda m, s, t: s < t,
    "bvsaddo": lambda m, s, t: _overflows(m, _signed(m, s) + _signed(m, t)),
    "bvsmulo": lambda m, s, t: _overflows(m, _signed(m, s) * _signed(m, t)),
    "bvssubo": lambda m, s, t: _overflows(m, _signed(m, s) - _signed(m, t)),
    "bvsdivo": lambda m, s, t: s == 1 << (m - 1) and t == (1 << m) - 1,
}
OPERATORS: dict[str, Function] = {
    **_CORE,
    **_ARRAYS,
    **{name: _of_one(does) for name, does in _ONE.items()},
    **{name: _of_many(does) for name, does in _MANY.items()},
    **{name: _of_two(does) for name, does in _TWO.items()},
    **{name: _asks_two(does) for name, does in _ORDERS.items()},
    "bvnego": _asks_one(lambda m, s: s == 1 << (m - 1)),
    "bvcomp": _as_bit(_asks_two(lambda m, s, t: s == t)),
    "bvredor": _as_bit(_asks_one(lambda m, s: s > 0)),
    "bvredand": _as_bit(_asks_one(lambda m, s: s == (1 << m) - 1)),
    "bvredxor": _as_bit(_asks_one(lambda m, s: s.bit_count() % 2 == 1)),
    "bvite": _bit_choice,
    "concat": _concat,
}


@lru_cache(maxsize=1 << 14)
def indexed_or_literal(token: str) -> Value | Function:
    """The meaning of a literal or an operator with indices. Raises :class:`Unreadable` for other tokens."""
    if token == "true" or token == "false":
        return token == "true"
    if token[:2] == "#b":
        return len(token) - 2, int(token[2:], 2)
    if token[:2] == "#x":
        return 4 * (len(token) - 2), int(token[2:], 16)
    form = _INDEXED.fullmatch(token)
    if form is None:
        raise Unreadable(token[:64])
    name, digits, rest = form.groups()
    indices = list(map(int, rest.split()))
    if name == "bv" and digits:
        return indices[0], int(digits)
    if digits or len(indices) != INDICES.get(name, (0, 0))[0]:
        raise Unreadable(token[:64])
    return _indexed(name, *indices)


def _indexed(name: str, first: int, last: int = 0) -> Function:
    def function(value: Value) -> Value:
        m, s = _bits(value)
        if name == "extract":
            if not last <= first < m:
                raise Unreadable("the bits are not there")
            return first - last + 1, s >> last & ((1 << (first - last + 1)) - 1)
        if name == "zero_extend":
            return m + first, s
        if name == "sign_extend":
            return m + first, _signed(m, s) & ((1 << (m + first)) - 1)
        if name == "repeat":
            return m * first, s * (((1 << (m * first)) - 1) // ((1 << m) - 1))
        return m, _rotated(m, s, first if name == "rotate_left" else -first) & ((1 << m) - 1)

    return function
