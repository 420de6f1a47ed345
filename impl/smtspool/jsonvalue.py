"""JSON texts with one meaning each: no member twice in an object, no NaN, no infinity.

JSON leaves open what such a text means (RFC 8259, sections 4 and 6), so two readers could see two documents.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

__all__ = ["BadNumber", "RepeatedMember", "value_of"]


class RepeatedMember(ValueError):
    """An object has two members of one name, ``member``."""

    def __init__(self, member: str) -> None:
        super().__init__(f"the member {member[:64]!r} stands twice in one object")
        self.member = member


class BadNumber(ValueError):
    """``literal`` is no number that can be kept."""

    def __init__(self, literal: str, why: str) -> None:
        super().__init__(why)
        self.literal = literal


def value_of(text: str, *, whole: Callable[[str], int] = int) -> Any:
    """The value of ``text``; ``whole`` reads an integer and may refuse it.

    :raises RepeatedMember: see the class
    :raises BadNumber: NaN, an infinity, a number that is too large for a float; and what ``whole`` refuses
    :raises ValueError: it is not JSON (``json.JSONDecodeError``), or an integer has thousands of digits
    :raises RecursionError: it is nested too deeply
    """
    return json.loads(
        text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite, parse_int=whole
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise RepeatedMember(
            next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        )
    return members


def _refuse(literal: str) -> Any:
    raise BadNumber(literal, f"{literal} is not a JSON number")


def _finite(literal: str) -> float:
    number = float(literal)
    if abs(number) == float("inf"):
        raise BadNumber(literal, f"the number {literal[:32]} is out of range")
    return number
