"""SMT-LIB text to tokens and back. Everything here is one C-level pass over the text or its tokens.

Tokens are parentheses, atoms, quoted symbols, strings, and whole indexed identifiers: ``(_ bv7 32)`` is
one token, so no later step can take the ``bv7`` in it for a name.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, repeat
from typing import Self

from smtspool.errors import AdmissionError, Reason
from smtspool.query.limits import Limits
from smtspool.query.theory import IDENTIFIER, RESERVED

__all__ = [
    "TOKEN",
    "Mark",
    "canonical",
    "depths",
    "identifier",
    "identifiers",
    "items",
    "nesting",
    "one_term",
    "spell",
    "split",
    "tokenize",
]

_ATOM = r'[^ \t\r\n()|";]+'
TOKEN = re.compile(
    rf"\(_ {_ATOM}(?: {_ATOM})+\)"  # an indexed identifier as most tools print it
    rf"|[()]|{_ATOM}"
    r'|\|[^|]*\||"[^"]*"'
    r"|;[^\r\n]*"
    r'|[|"]'  # unterminated; refused wherever it stands
)
_SIMPLE_NAMES = re.compile(rf"{IDENTIFIER.pattern}(?: {IDENTIFIER.pattern})*+", re.ASCII)
_SPACE = re.compile(r"(\|[^|]*\|)|(?<=\() | (?=\))")
_DEPTH = {"(": 1, ")": -1}
_MANY = 1 << 14  # tokens
_WHITE = frozenset(" \t\r\n")

_ODD = frozenset("|@.#")  # first characters of what may have several spellings

# Names of z3 for operators that bitwuzla has under another.
_SYNONYMS = {"ext_rotate_left": "bvrol", "ext_rotate_right": "bvror"}


class Mark(str):
    """A token in canonical spelling with its number among the tokens of its text."""

    __slots__ = ("number",)
    number: int

    def __new__(cls, token: str, number: int) -> Self:
        mark = super().__new__(cls, token)
        mark.number = number
        return mark


def tokenize(text: str, limits: Limits) -> list[str]:
    """The tokens of ``text`` in canonical spelling, comments and white space gone.

    Raises ``AdmissionError`` (too-large, syntax).
    """
    return canonical(split(text, limits))


def split(text: str, limits: Limits) -> list[str]:
    """The tokens of ``text`` as they are spelled there, comments and white space gone."""
    limits.hold("script", len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")))
    tokens = TOKEN.findall(text)
    return [token for token in tokens if token[0] != ";"] if ";" in text else tokens


def canonical(tokens: list[str]) -> list[str]:
    """The tokens of one script in canonical spelling. Raises ``AdmissionError`` (syntax, symbol)."""
    distinct = set(tokens)
    if "_" in distinct:
        tokens = _join_indexed(tokens)
        distinct = set(tokens)
    respelled = {token: new for token in distinct if token[0] in _ODD and (new := _canonical(token)) != token}
    respelled.update((token, _SYNONYMS[token]) for token in _SYNONYMS.keys() & distinct)
    if respelled:
        _refuse_clash(respelled, distinct, tokens)
        tokens = [respelled.get(token, token) for token in tokens]
    return tokens


def depths(tokens: Sequence[str], limits: Limits) -> Sequence[int]:
    """How many parentheses are open after each token. Raises ``AdmissionError`` when they do not match."""
    levels = nesting(tokens)
    distinct = set(levels) if len(tokens) < _MANY else levels
    if tokens and (levels[-1] != 0 or min(distinct) < 0):
        raise _mismatch(tokens, levels)
    limits.hold("depth", max(distinct, default=0))
    return levels


def _mismatch(tokens: Sequence[str], levels: Sequence[int]) -> AdmissionError:
    early = next((at for at, level in enumerate(levels) if level < 0), None)
    if early is not None:
        message, at = "parentheses do not match: this one closes nothing", early
    else:  # an unclosed command takes in the next ones, whose parentheses match, so its beginning is named
        at = max((at for at in range(1, len(levels)) if levels[at - 1] == 0), default=0)
        message = "parentheses do not match: this one is never closed"
    return AdmissionError(Reason.SYNTAX, message, at=Mark(tokens[at], at))


def nesting(tokens: Sequence[str]) -> Sequence[int]:
    """Opening minus closing parentheses up to each token."""
    running = accumulate(map(_DEPTH.get, tokens, repeat(0)))
    # A list is twice as fast, an array a tenth of the size where depths differ.
    return list(running) if len(tokens) < _MANY else array("i", running)


def one_term(tokens: Sequence[str], levels: Sequence[int], start: int, end: int) -> bool:
    """Whether ``tokens[start:end]`` is exactly one atom or one parenthesised list."""
    if start >= end or tokens[start] == ")":
        return False
    if tokens[start] != "(":
        return end == start + 1
    return levels.index(levels[start] - 1, start) == end - 1


def items(tokens: Sequence[str], levels: Sequence[int], start: int, end: int) -> list[tuple[int, int]]:
    """The atoms and lists side by side in ``tokens[start:end]``, as half-open ranges."""
    found = []
    while start < end:
        stop = start + 1 if tokens[start] != "(" else levels.index(levels[start] - 1, start) + 1
        found.append((start, stop))
        start = stop
    return found


def spell(tokens: Iterable[str]) -> str:
    """The canonical text: single spaces, none inside parentheses."""
    text = " ".join(tokens)
    if "|" in text:
        return _SPACE.sub(r"\1", text)
    return text.replace("( ", "(").replace(" )", ")")


def identifier(token: str, limits: Limits) -> bool:
    """Whether ``token``, in canonical spelling, can name something. Raises when it is a reserved word."""
    if token in RESERVED:
        raise AdmissionError(Reason.SYMBOL, f"{token!r} is a reserved word", at=token)
    if len(token) > limits.symbol:
        limits.hold("symbol", len(token))
    if token[0] == "|":
        inner = token[1:-1]
        return len(token) > 1 and "\\" not in inner and all(c.isprintable() or c in _WHITE for c in inner)
    return IDENTIFIER.fullmatch(token) is not None


def identifiers(tokens: Sequence[str], limits: Limits) -> bool:
    """Whether all ``tokens`` can name something; see :func:`identifier`."""
    plain = _SIMPLE_NAMES.fullmatch(" ".join(tokens)) is not None
    if plain and RESERVED.isdisjoint(tokens) and max(map(len, tokens)) <= limits.symbol:
        return True
    return all(identifier(token, limits) for token in tokens)


def _canonical(token: str) -> str:
    """One spelling per symbol that every engine accepts; applying this again changes nothing.

    ``|x|`` is ``x`` where that is a simple symbol. Reserved words in quotes and names with a leading ``.``
    or ``@`` are legal in some engines only and get a ``!`` in front.
    """
    first = token[0]
    if first == "|":
        name = token[1:-1]
        if IDENTIFIER.fullmatch(name) is None:
            return f"|!{name}|" if name[:1] in ("@", ".") else token
        if name in RESERVED or name[0] in "@.":
            return "!" + name
        return _SYNONYMS.get(name, name)
    if first in "@.":
        return "!" + token
    return token.lower()


def _refuse_clash(respelled: Mapping[str, str], distinct: set[str], tokens: list[str]) -> None:
    """Two symbols of one text must not become one."""
    for token, new in respelled.items():
        name = token[1:-1] if token[0] == "|" else token
        if new.strip("|") == "!" + name and (new in distinct or f"|{new}|" in distinct):
            message = f"{token[:64]} cannot be told from {new[:64]}: rename one"
            raise AdmissionError(Reason.SYMBOL, message, at=Mark(token, tokens.index(token)))


def _join_indexed(tokens: list[str]) -> list[str]:
    """Make one token of every indexed identifier that is spaced unusually or split by a comment."""
    joined: list[str] = []
    rest = iter(tokens)
    for token in rest:
        if token != "_":
            joined.append(token)
            continue
        if not joined or joined.pop() != "(":
            raise AdmissionError(Reason.SYNTAX, "'_' must follow a parenthesis", at=Mark(token, len(joined)))
        parts = ["_"]
        for part in rest:
            if part == ")":
                break
            parts.append(part)
        else:
            message = "parentheses do not match: this one is never closed"
            raise AdmissionError(Reason.SYNTAX, message, at=Mark("(", len(joined)))
        joined.append(f"({' '.join(parts)})")
    return joined
