"""Strict JSON (F363): each document has one meaning, and limits are checked before objects are built."""

from __future__ import annotations

import json
import re
from typing import Any

from smtspool.errors import AdmissionError, Reason
from smtspool.jsonvalue import BadNumber, RepeatedMember, value_of
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
        document = value_of(text, whole=_whole)
    except RepeatedMember as error:
        place = repeated_at(text, error.member)
        raise AdmissionError(Reason.JSON, str(error), place=place) from None
    except BadNumber as error:
        place = literal_at(text, error.literal)
        raise AdmissionError(Reason.JSON, str(error), place=place) from None
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


def _whole(literal: str) -> int:
    if len(literal) <= _INT_CHARACTERS and -(1 << 63) <= (number := int(literal)) < 1 << 64:
        return number
    raise BadNumber(literal, f"the integer {literal[:32]} does not fit 64 bits")
