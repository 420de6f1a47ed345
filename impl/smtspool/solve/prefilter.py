"""The values of a domain that can make a target true, if that can be computed without a solver (F301).

Targets of path constraints mostly compare one operand with a constant. Then the comparison is evaluated for
each value; for any other target all values are kept for the solver.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence

__all__ = ["fitting"]

_LITERAL = re.compile(r"#x([0-9a-fA-F]+)|#b([01]+)|\(_ bv([0-9]+) [0-9]+\)", re.ASCII)
_UNSIGNED: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "distinct": operator.ne,
    "bvult": operator.lt,
    "bvule": operator.le,
    "bvugt": operator.gt,
    "bvuge": operator.ge,
}
_SIGNED: dict[str, Callable[[int, int], bool]] = {
    "bvslt": operator.lt,
    "bvsle": operator.le,
    "bvsgt": operator.gt,
    "bvsge": operator.ge,
}


def fitting(target: str, operand: str, bits: int, values: Sequence[int]) -> list[int]:
    """The ``values`` of ``operand``, ``bits`` wide, with which ``target`` is true, or may be.

    Both are canonical text. All values if the target is no comparison of the operand with a constant.
    """
    wanted = True
    while target.startswith("(not ") and target.endswith(")"):
        target, wanted = target[5:-1], not wanted
    relation, _, rest = target.removeprefix("(").partition(" ")
    holds = _holds(relation, bits)
    if holds is None:
        return list(values)
    if rest.startswith(f"{operand} ") and (constant := _number(rest[len(operand) + 1 : -1])) is not None:
        return [value for value in values if holds(value, constant) is wanted]
    if rest.endswith(f" {operand})") and (constant := _number(rest[: -len(operand) - 2])) is not None:
        return [value for value in values if holds(constant, value) is wanted]
    return list(values)


def _holds(relation: str, bits: int) -> Callable[[int, int], bool] | None:
    if relation in _UNSIGNED:
        return _UNSIGNED[relation]
    compare = _SIGNED.get(relation)
    if compare is None:
        return None
    half = 1 << (bits - 1)
    return lambda one, other: compare((one ^ half) - half, (other ^ half) - half)


def _number(text: str) -> int | None:
    literal = _LITERAL.fullmatch(text)
    if literal is None:
        return None
    hexadecimal, binary, decimal = literal.groups()
    if hexadecimal is not None:
        return int(hexadecimal, 16)
    return int(binary, 2) if binary is not None else int(decimal)
