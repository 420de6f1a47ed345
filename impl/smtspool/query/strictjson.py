"""Strict JSON (F363): each document has one meaning, and limits are checked before objects are built."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from functools import partial
from typing import Any

from smtspool.errors import AdmissionError, Reason
from smtspool.query.jsonplaces import literal_at, repeated_at
from smtspool.query.limits import Limits
from smtspool.query.places import place_at

__all__ = ["load_object"]

# A string without an end extends to the end of the text, as it does for the parser, so brackets in it are not
# counted.
_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_INT_CHARACTERS = 20  # of a 64-bit integer with its sign
_OPENING = frozenset("[{")
_CLOSING = frozenset("]}")


def load_object(text: str, limits: Limits) -> dict[str, Any]:
    """The JSON object ``text``.

    No duplicate member at any level, no NaN or infinity, integers within int64 or uint64, nesting and number
    of values within ``limits``. Raises ``AdmissionError`` (json, too-large).
    """
    _check_structure(text, limits)
    try:
        document = json.loads(
            text,
            object_pairs_hook=partial(_unique, text),
            parse_constant=partial(_refuse_constant, text),
            parse_float=partial(_finite, text),
            parse_int=partial(_bounded, text),
        )
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg}"
        raise AdmissionError(Reason.JSON, message, place=place_at(text, error.pos)) from None
    if not isinstance(document, dict):
        raise AdmissionError(Reason.JSON, "the document is not a JSON object")
    return document


def _check_structure(text: str, limits: Limits) -> None:
    """Check the limits on nesting and values before the parser runs, which recurses."""
    brackets = text.count("[") + text.count("{")
    if brackets <= limits.json_depth and brackets + text.count(",") <= limits.json_values:
        return
    depth = values = 0
    for token in _STRUCTURE.finditer(text):
        mark = text[token.start()]
        if mark in _OPENING:
            depth += 1
            limits.hold("json_depth", depth)
        elif mark in _CLOSING:
            depth -= 1
        if mark in "[{,":
            values += 1
            limits.hold("json_values", values)


def _unique(text: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        message = f"the member {twice[:64]!r} stands twice in one object"
        raise AdmissionError(Reason.JSON, message, place=repeated_at(text, twice))
    return members


def _refuse_constant(text: str, literal: str) -> Any:
    raise AdmissionError(Reason.JSON, f"{literal} is not a JSON number", place=literal_at(text, literal))


def _finite(text: str, literal: str) -> float:
    number = float(literal)
    if not math.isfinite(number):
        message = f"the number {literal[:32]} is out of range"
        raise AdmissionError(Reason.JSON, message, place=literal_at(text, literal))
    return number


def _bounded(text: str, literal: str) -> int:
    if len(literal) <= _INT_CHARACTERS and -(1 << 63) <= (number := int(literal)) < 1 << 64:
        return number
    message = f"the integer {literal[:32]} does not fit 64 bits"
    raise AdmissionError(Reason.JSON, message, place=literal_at(text, literal))
