"""What every operator takes and gives: the theories Core, FixedSizeBitVectors and ArraysEx of SMT-LIB 2.7.

A sort is its canonical text, as in :class:`~smtspool.query.value.Symbol`. An operator takes as many
arguments as *every* bundled engine reads: ``(bvadd x y z)``, and not ``(bvsub x y z)``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

__all__ = [
    "ARRAYS",
    "BIT_VECTORS",
    "BOOL",
    "CORE",
    "DIALECT",
    "INDICES",
    "Meaning",
    "Operator",
    "bit_vector",
    "constant_array",
    "function",
    "indexed",
    "sort_symbol",
    "width_of",
]

BOOL = "Bool"
_BIT = "(_ BitVec 1)"
_BIT_VECTOR = re.compile(r"\(_ BitVec ([0-9]+)\)", re.ASCII)

Sorts = tuple[str, ...]
Rule = Callable[[Sorts], str | None]  # the sort of an application to such arguments; None: it has none


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """A function symbol: what may stand first in an application."""

    name: str
    takes: str  # in words
    rule: Rule


Meaning = str | Operator  # of an atom in a term: its sort, or what it does to what follows it


@lru_cache(maxsize=1 << 10)
def bit_vector(width: int) -> str:
    """The sort of bit-vectors of ``width`` bits."""
    return f"(_ BitVec {width})"


def width_of(sort: str) -> int | None:
    """Bits of a bit-vector sort; None of every other sort."""
    found = _BIT_VECTOR.fullmatch(sort)
    return int(found[1]) if found else None


def _table(*rows: tuple[str, str, Rule]) -> dict[str, Operator]:
    return {name: Operator(name, takes, rule) for names, takes, rule in rows for name in names.split()}


def _vectors(value: str | None, least: int = 2, most: float = 2) -> Rule:
    """Of bit-vectors of one width; the value is of the same sort when none is named."""

    def rule(sorts: Sorts) -> str | None:
        fits = least <= len(sorts) <= most and len(set(sorts)) == 1 and width_of(sorts[0])
        return (value or sorts[0]) if fits else None

    return rule


def _booleans(least: int, most: float) -> Rule:
    return lambda sorts: BOOL if least <= len(sorts) <= most and set(sorts) == {BOOL} else None


def _equal(sorts: Sorts) -> str | None:
    return BOOL if len(sorts) > 1 and len(set(sorts)) == 1 else None


def _choice(condition: str) -> Rule:
    def rule(sorts: Sorts) -> str | None:
        return sorts[1] if len(sorts) == 3 and sorts[0] == condition and sorts[1] == sorts[2] else None

    return rule


def _bit_choice(sorts: Sorts) -> str | None:
    return _choice(_BIT)(sorts) if sorts and width_of(sorts[-1]) else None


def _concat(sorts: Sorts) -> str | None:
    widths = [(width_of(sort), uses) for sort, uses in Counter(sorts).items()]
    known = [width * uses for width, uses in widths if width]
    return bit_vector(sum(known)) if len(sorts) > 1 and len(known) == len(widths) else None


def _select(sorts: Sorts) -> str | None:
    if len(sorts) != 2:
        return None
    array, key = sorts
    head = f"(Array {key} "
    return array[len(head) : -1] if array.startswith(head) else None


def _store(sorts: Sorts) -> str | None:
    return sorts[0] if len(sorts) == 3 and sorts[0] == f"(Array {sorts[1]} {sorts[2]})" else None


_ONE, _TWO, _MORE = "one bit-vector", "two bit-vectors of one width", "two or more bit-vectors of one width"
_MANY = float("inf")
_BOTH = "bvnand bvnor bvxnor bvsub bvudiv bvurem bvsdiv bvsrem bvsmod bvshl bvlshr bvashr bvrol bvror"
_ORDER = "bvult bvule bvugt bvuge bvslt bvsle bvsgt bvsge"
_OVERFLOW = "bvuaddo bvsaddo bvumulo bvsmulo bvusubo bvssubo bvsdivo"

CORE = _table(
    ("not", "one Bool", _booleans(1, 1)),
    ("and or", "Bools", _booleans(1, _MANY)),
    ("xor =>", "two or more Bools", _booleans(2, _MANY)),
    ("= distinct", "two or more terms of one sort", _equal),
    ("ite", "a Bool and two terms of one sort", _choice(BOOL)),
)
BIT_VECTORS = _table(
    ("bvnot bvneg bvinc bvdec", _ONE, _vectors(None, 1, 1)),
    ("bvredor bvredand bvredxor", _ONE, _vectors(_BIT, 1, 1)),
    ("bvnego", _ONE, _vectors(BOOL, 1, 1)),
    ("bvand bvor bvxor bvadd bvmul", _MORE, _vectors(None, 2, _MANY)),
    (_BOTH, _TWO, _vectors(None)),
    ("bvcomp", _TWO, _vectors(_BIT)),
    (f"{_ORDER} {_OVERFLOW}", _TWO, _vectors(BOOL)),
    ("concat", "two or more bit-vectors", _concat),
    ("bvite", "one bit and two bit-vectors of one width", _bit_choice),
)
ARRAYS = _table(
    ("select", "an array and a key of its", _select),
    ("store", "an array, a key and an element of its", _store),
)
# What z3 prints beside SMT-LIB. A script may use the names for something else.
DIALECT = _table(
    ("implies", "two or more Bools", _booleans(2, _MANY)),
    ("iff", "two or more Bools", _booleans(2, _MANY)),
    ("if", "a Bool and two terms of one sort", _choice(BOOL)),
    ("bvudiv_i bvurem_i bvsdiv_i bvsrem_i bvsmod_i", _TWO, _vectors(None)),
    ("bvumul_noovfl bvsmul_noovfl bvsmul_noudfl", _TWO, _vectors(BOOL)),
)
# Of operators with indices: how many, and the smallest allowed.
INDICES = {
    "extract": (2, 0),
    "repeat": (1, 1),
    "zero_extend": (1, 0),
    "sign_extend": (1, 0),
    "rotate_left": (1, 0),
    "rotate_right": (1, 0),
}


def indexed(token: str, name: str, indices: list[int]) -> Operator:
    """The operator ``token``, which is ``name`` with indices that :data:`INDICES` allows."""
    first = indices[0]

    def rule(sorts: Sorts) -> str | None:
        width = width_of(sorts[0]) if len(sorts) == 1 else None
        if not width or (name == "extract" and first >= width):
            return None
        if name == "extract":
            return bit_vector(first - indices[1] + 1)
        if name.startswith("rotate"):
            return sorts[0]
        return bit_vector(first * width if name == "repeat" else first + width)

    takes = f"one bit-vector of more than {first} bits" if name == "extract" else _ONE
    return Operator(token, takes, rule)


@lru_cache(maxsize=1 << 10)
def function(name: str, value: str, params: Sorts) -> Operator:
    """A declared or defined function."""
    return Operator(name, " and ".join(params), lambda sorts: value if sorts == params else None)


@lru_cache(maxsize=1 << 10)
def sort_symbol(name: str) -> Operator:
    """A declared sort: no term begins with it."""
    return Operator(name, "no terms, it is a sort", lambda _: None)


@lru_cache(maxsize=1 << 10)
def constant_array(sort: str) -> Operator:
    """``(as const sort)`` of an array sort."""

    def rule(sorts: Sorts) -> str | None:
        return sort if len(sorts) == 1 and sort.endswith(f" {sorts[0]})") else None

    return Operator(f"(as const {sort})", "one element of the array", rule)
