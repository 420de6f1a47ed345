"""The three names of a query: its id, the keys of its prefix chain, and its form.

All hash texts that are free of control characters, so ``\\x00`` and ``\\x01`` separate them unambiguously.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from smtspool.query.value import Form, Level, Symbol

__all__ = ["NORMALISER", "Assertion", "Declaration", "Term", "chain", "content_id", "form_of"]

# Part of every form digest: change it whenever the canonical text or the renaming changes meaning.
NORMALISER = "smtspool-form-1"
_QUERY = "smtspool-query-v1"
_CHAIN = "smtspool-chain-v1"


class Term(NamedTuple):
    """Checked canonical text, its tokens, and the names in it by first appearance."""

    text: str
    tokens: Sequence[str]
    names: tuple[str, ...]


class Declaration(NamedTuple):
    """One declare or define command; ``symbol`` is ``None`` for a sort."""

    place: int  # its number among the commands of the script
    command: Term  # all of it; its own name comes first
    symbol: Symbol | None
    defined: bool  # define-fun: its value belongs to the question, not to the answer


class Assertion(NamedTuple):
    """One assertion on the stack, with the declarations that no assertion below it needed."""

    term: Term
    needs: tuple[Declaration, ...]
    level: Level


def chain(below: str, logic: str, declarations: Sequence[str], assertion: str) -> Level:
    """The level above the one whose key is ``below``; the first stands on ``""``."""
    base = below or f"{_CHAIN}\x00{logic}"
    text = "\x00".join((base, *declarations, "\x01", assertion))
    return Level(sha256(text.encode()).hexdigest(), tuple(declarations), assertion)


def content_id(logic: str, declarations: Iterable[str], prefix: Iterable[str], target: str) -> str:
    """The query id."""
    text = "\x00".join((_QUERY, logic, *declarations, "\x01", *prefix, "\x01", target))
    return sha256(text.encode()).hexdigest()


def form_of(logic: str, assertions: Sequence[Assertion]) -> Form:
    """Number the names by first appearance, definitions before the assertion that first needs them."""
    numbers: dict[str, str] = {}
    names: list[str] = []
    declared: dict[str, Declaration] = {}
    pieces = [NORMALISER, logic]

    def renamed(term: Term) -> str:
        for name in term.names:
            if name not in numbers:
                numbers[name] = f"${len(names)}"  # no theory symbol or literal begins with "$"
                names.append(name)
        number = numbers.get
        return " ".join([number(token, token) for token in term.tokens])

    for assertion in assertions:
        for declaration in assertion.needs:
            declared[declaration.command.names[0]] = declaration
            if declaration.defined:
                pieces.append(renamed(declaration.command))
        pieces += ("\x01", renamed(assertion.term))
    # What the numbers stand for. A declaration may name a sort that is new, so the list grows meanwhile.
    pieces.append("\x01")
    order: list[str] = []
    for name in names:
        known = declared.get(name)
        if known is not None and not known.defined:
            command = known.command
            if len(command.names) == 1:  # all but its own name is fixed text
                kind = command.tokens[1]
                pieces.append(f"{kind} {numbers[name]}{command.text[len(kind) + len(name) + 2 :]}")
            else:
                pieces.append(renamed(command))
            if known.symbol is not None:
                order.append(name)
    return Form(sha256("\x00".join(pieces).encode()).hexdigest(), tuple(order))
