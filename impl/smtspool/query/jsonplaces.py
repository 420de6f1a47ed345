"""The place of a value in a JSON text. It is looked for only in a text that was refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from smtspool.errors import AdmissionError, Place
from smtspool.query.places import place_at

__all__ = ["literal_at", "locate_member", "repeated_at"]

_PART = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{},:]|[^\s\[\]{},:"]++', re.DOTALL)
_SURROGATES = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_CHARACTER = re.compile(rf"{_SURROGATES}|\\u[0-9a-fA-F]{{4}}|\\.|.", re.DOTALL)


class _Part(NamedTuple):
    """A key or a value: the path to the value, such as ``prefix[3]`` or ``witness.symbols``, and its text."""

    path: str
    text: str  # as it is spelled; the bracket of an array or object
    start: int
    key: str | None = None  # None for a value


def literal_at(text: str, literal: str) -> Place | None:
    """The place of the first number or word spelled ``literal``."""
    return next((place_at(text, part.start) for part in _parts(text) if part.text == literal), None)


def repeated_at(text: str, name: str) -> Place | None:
    """The place where an object has ``name`` once more."""
    seen = set[str]()
    for part in _parts(text):
        if part.key == name and part.path in seen:
            return place_at(text, part.start)
        if part.key == name:
            seen.add(part.path)
    return None


def locate_member(error: AdmissionError, text: str) -> None:
    """Give ``error`` its place in the envelope ``text``.

    That is the member whose path is its ``at``, or, if it has a place in a string of the envelope, that
    character.
    """
    inside = error.place
    path = inside.member if inside else error.at
    found = next((part for part in _parts(text) if part.path == path and part.key is None), None)
    if found is None:
        return
    start = found.start
    if inside:
        start += 1 + _spelled(found.text[1:-1], inside)
    place = place_at(text, start, path)
    error.place = place._replace(near=inside.near) if inside else place


def _spelled(string: str, place: Place) -> int:
    """How many characters spell what comes before ``place`` in a JSON string."""
    spelled, line, column = 0, 1, 1
    for character in _CHARACTER.finditer(string):
        if (line, column) == (place.line, place.column):
            break
        ended = character[0] in ("\\n", "\\u000a", "\\u000A")
        line, column = (line + 1, 1) if ended else (line, column + 1)
        spelled = character.end()
    return spelled


def _parts(text: str) -> Iterator[_Part]:
    """All keys and values of a document, up to where it is not JSON."""
    outside: list[tuple[str, int]] = []
    here, index = "", -1  # the innermost array and the number of its next value; -1: an object
    path, key = "", False  # of the next value in an object; whether its key comes first
    for match in _PART.finditer(text):
        part = match[0]
        if part == ":":
            key = False
        elif part == ",":
            index, key = (-1, True) if index < 0 else (index + 1, False)
        elif part in "]}":
            here, index = outside.pop() if outside else ("", -1)
        elif key:
            name = str(json.loads(part))
            path = f"{here}.{name}" if here else name
            yield _Part(path, part, match.start(), name)
        else:
            path = path if index < 0 else f"{here}[{index}]"
            yield _Part(path, part, match.start())
            if part in "[{":
                outside.append((here, index))
                here, index, key = path, 0 if part == "[" else -1, part == "{"
