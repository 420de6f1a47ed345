"""The place in the user's text at which something was refused.

Tokens do not carry their position, which would take time for every good text. Instead, a text that was
refused is read once more, with the tokens that equal the refused one replaced by :class:`Mark` objects, which
know their number; the number is then looked up in the text.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import islice

from smtspool.errors import AdmissionError, Place
from smtspool.query.lexer import TOKEN, Mark, canonical

__all__ = ["locate", "place_at"]

_MARKS = 1 << 18  # at a time: each is an object of its own, and a script may be all parentheses
_BEFORE, _AFTER = 16, 40  # characters of the text that are shown


def locate(
    error: AdmissionError,
    text: str,
    tokens: list[str],
    read: Callable[[list[str]], object],
    *,
    skip: int = 0,
    member: str | None = None,
) -> None:
    """Give ``error`` its place in ``text``, if it can be told.

    ``tokens`` are those of ``text`` after the first ``skip``, as they are spelled there; ``read``, given them
    in canonical spelling, raises the same error. If no token can be named, the place is that of the whole
    ``member`` of the envelope.
    """
    error.__traceback__ = None  # its frames hold all that was read, and reading again needs as much memory
    number = error.at.number if isinstance(error.at, Mark) else _number(error.at, tokens, read)
    if number is not None or member is not None:
        error.place = place_at(text, _offset(text, skip, number or 0), member)


def place_at(text: str, offset: int, member: str | None = None) -> Place:
    """The place of the character at ``offset``."""
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset, offset + _AFTER)
    near = text[max(start, offset - _BEFORE) : end if end >= 0 else offset + _AFTER]
    return Place(text.count("\n", 0, start) + 1, offset - start + 1, near.strip(), member)


def _number(at: str | None, tokens: list[str], read: Callable[[list[str]], object]) -> int | None:
    """Which of the ``tokens`` that equal ``at`` is it?"""
    if at is None:
        return None
    tokens = canonical(tokens)
    places = array("q", [number for number, token in enumerate(tokens) if token == at])
    while places:
        together = (len(places) - 1) // _MARKS + 1
        marked = list(tokens)
        for first in range(0, len(places), together):
            mark = Mark(marked[places[first]], first)
            for place in places[first : first + together]:
                marked[place] = mark
        try:
            read(marked)
        except AdmissionError as again:
            found = again.at
        else:
            return None
        if not isinstance(found, Mark):
            return None
        if together == 1:
            return places[found.number]
        places = places[found.number : found.number + together]
    return None


def _offset(text: str, skip: int, number: int) -> int:
    """Where token ``number`` begins. Tokens count as in canonical spelling, so ``( _ bv7 32 )`` is one."""
    inside = False  # an indexed identifier, which counts where it begins
    matches = (match for match in TOKEN.finditer(text) if match[0][0] != ";")
    for match in islice(matches, skip, None):
        if inside or match[0] == "_":
            inside = match[0] != ")"
        elif number:
            number -= 1
        else:
            return match.start()
    return len(text)
