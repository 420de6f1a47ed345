"""The three names of a query: its id, the keys of its prefix chain, and its form.

All hash texts that are free of control characters, so ``\\x00`` and ``\\x01`` separate them unambiguously.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from smtspool.query.value import Form, Level, Symbol

__all__ = ["NORMALISER", "Assertion", "Declaration", "Term", "chain", "content_id", "form_of", "form_piece"]

# Part of every form digest: change it whenever the canonical text or the renaming changes meaning.
NORMALISER = "smtspool-form-1"
_QUERY = "smtspool-query-v1"
_CHAIN = "smtspool-chain-v1"


class Term(NamedTuple):
    """Checked canonical text, its tokens, the names in it by first appearance, and its sort."""

    text: str
    tokens: Sequence[str]
    names: tuple[str, ...]
    sort: str


class Declaration(NamedTuple):
    """One declare or define command, checked; ``symbol`` is ``None`` for a sort."""

    place: int  # its number among the commands of the script
    text: str
    tokens: Sequence[str]
    names: tuple[str, ...]  # its own comes first
    symbol: Symbol | None
    defined: bool  # define-fun: its value belongs to the question, not to the answer


class Assertion(NamedTuple):
    """One assertion on the stack, with the declarations that no assertion below it needed."""

    needs: tuple[Declaration, ...]
    level: Level
    form: str  # what it adds to the text that the form digests
    numbered: int  # names numbered below it


def chain(below: str, logic: str, declarations: Sequence[str], assertion: str) -> Level:
    """The level above the one whose key is ``below``; the first stands on ``""``."""
    base = below or f"{_CHAIN}\x00{logic}"
    text = "\x00".join((base, *declarations, "\x01", assertion))
    return Level(sha256(text.encode()).hexdigest(), tuple(declarations), assertion)


def content_id(logic: str, declarations: Iterable[str], prefix: Iterable[str], target: str) -> str:
    """The query id."""
    text = "\x00".join((_QUERY, logic, *declarations, "\x01", *prefix, "\x01", target))
    return sha256(text.encode()).hexdigest()


def form_piece(needs: Sequence[Declaration], term: Term, numbers: dict[str, str]) -> str:
    """``term`` after the definitions it is the first to need, with names replaced by their ``numbers``.

    A name met for the first time gets the next number.
    """
    pieces = [_renamed(need.tokens, need.names, numbers) for need in needs if need.defined]
    return "\x00".join((*pieces, "\x01", _renamed(term.tokens, term.names, numbers)))


def form_of(logic: str, assertions: Sequence[Assertion], numbers: Mapping[str, str]) -> Form:
    """The form of a stack of assertions whose pieces were made in order with ``numbers``."""
    numbers = dict(numbers)
    pieces = [NORMALISER, logic, *[assertion.form for assertion in assertions], "\x01"]
    declared = {need.names[0]: need for assertion in assertions for need in assertion.needs}
    # What the numbers stand for. A declaration may name a sort that is new, so the list grows meanwhile.
    names = list(numbers)
    order: list[str] = []
    for name in names:
        known = declared.get(name)
        if known is None or known.defined:
            continue
        if len(known.names) == 1:  # it refers to no other name
            kind = known.tokens[1]
            pieces.append(f"{kind} {numbers[name]}{known.text[len(kind) + len(name) + 2 :]}")
        else:
            names += [name for name in dict.fromkeys(known.names) if name not in numbers]
            pieces.append(_renamed(known.tokens, known.names, numbers))
        if known.symbol is not None:
            order.append(name)
    return Form(sha256("\x00".join(pieces).encode()).hexdigest(), tuple(order))


def _renamed(tokens: Sequence[str], names: Iterable[str], numbers: dict[str, str]) -> str:
    for name in names:
        if name not in numbers:
            numbers[name] = f"${len(numbers)}"  # no theory symbol or literal begins with "$"
    return " ".join(map(numbers.get, tokens, tokens))
