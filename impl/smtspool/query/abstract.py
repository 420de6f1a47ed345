"""Values of declared sorts. They can only be compared, so a model numbers them: ``@0``, ``@1``.

Each engine names such values in its own way. To check a model, every declared sort is replaced by bit-vectors
wide enough for all numbers: that is one interpretation of the sort, every engine can evaluate it, and a query
that it satisfies is satisfiable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from smtspool.errors import ModelError
from smtspool.query.lexer import depths, items, one_term, spell, tokenize
from smtspool.query.limits import DEFAULT
from smtspool.query.operators import bit_vector
from smtspool.query.value import Query, Symbol

__all__ = ["Interpretation", "declares_sorts", "numbered", "refutable"]

_DECLARED = "(declare-sort "
_NUMBERED = re.compile(r"(?<![^\s()])@([0-9]{1,9})(?![^\s()])", re.ASCII)
_NUMBER = re.compile(r"!@([0-9]{1,9})", re.ASCII)  # as the reader spells it
_BUILT_IN = frozenset(("(", ")", "Array", "Bool"))
_NAME = re.compile(r"!@.*|\|!@.*|.*!val![0-9]+\|?", re.DOTALL)  # of a value: SMT-LIB's and z3's


def declares_sorts(query: Query) -> bool:
    """Whether models of ``query`` may hold values of declared sorts."""
    return "UF" in query.logic and any(text.startswith(_DECLARED) for text in query.declarations)


def refutable(query: Query) -> bool:
    """Whether a failed check of a model of ``query`` shows that the model is wrong.

    In the check a sort may have more elements than the model numbers. Two arrays that are equal on all
    numbered elements may differ on the others, so a check of a query with such arrays may fail for a correct
    model. Without arrays the further elements make no difference.
    """
    return not (query.logic.startswith("QF_A") and declares_sorts(query))


def numbered(query: Query, model: Mapping[str, str]) -> dict[str, str]:
    """The values of ``query``'s symbols, with an engine's names for elements of declared sorts numbered.

    Functions get the sorts of the symbol, since the model may come from a query that differs in names.
    Raises ``ModelError`` for a text that is not one value, or has a sort that the query has not, and
    ``AdmissionError`` for what the reader refuses.
    """
    sorts = _BUILT_IN.union(_arities(query))
    numbers: dict[tuple[str, ...], str] = {}
    known = [symbol for symbol in query.symbols if symbol.name in model]
    return {symbol.name: _numbered(symbol, model[symbol.name], sorts, numbers) for symbol in known}


def _arities(query: Query) -> dict[str, int]:
    """The declared sorts."""
    commands = [tokenize(text, DEFAULT) for text in query.declarations if text.startswith(_DECLARED)]
    return {command[2]: int(command[3]) for command in commands}


def _numbered(symbol: Symbol, value: str, sorts: Set[str], numbers: dict[tuple[str, ...], str]) -> str:
    names, body = _parts(symbol, value)
    levels = depths(body, DEFAULT)
    written: list[str] = []
    at = 0
    while at < len(body):
        end = at + 1
        name: tuple[str, ...] = ()
        if body[at : at + 2] == ["(", "as"]:
            close = levels.index(levels[at] - 1, at)
            if body[at + 2] != "const":
                end = close + 1
                name = tuple(body[at + 2 : close])
            elif not sorts >= {t for t in body[at + 3 : close] if not t.startswith("(_ BitVec ")}:
                raise ModelError(f"the value of {symbol.name[:64]} has a sort that the query has not")
        elif _NAME.fullmatch(body[at]):
            name = (body[at],)
        written.append(numbers.setdefault(name, f"@{len(numbers)}") if name else body[at])
        at = end
    return _value(symbol, names, symbol.params, symbol.sort, written)


def _parts(symbol: Symbol, value: str) -> tuple[list[str], list[str]]:
    """The names of the parameters, and the tokens of the value or of the function's body."""
    tokens = tokenize(value, DEFAULT)
    levels = depths(tokens, DEFAULT)
    if not one_term(tokens, levels, 0, len(tokens)):
        raise _no_value(symbol)
    if not symbol.params:
        return [], tokens
    parts = items(tokens, levels, 1, len(tokens) - 1)
    if tokens[:2] != ["(", "define-fun"] or len(parts) != 5:
        raise _no_value(symbol)
    (start, end), body = parts[2], parts[4]
    names = [
        tokens[first + 1] for first, last in items(tokens, levels, start + 1, end - 1) if last > first + 1
    ]
    if len(names) != len(symbol.params):
        raise _no_value(symbol)
    return names, tokens[slice(*body)]


def _no_value(symbol: Symbol) -> ModelError:
    return ModelError(f"the value of {symbol.name[:64]} is not one value")


def _value(
    symbol: Symbol, names: Sequence[str], params: Sequence[str], sort: str, body: Sequence[str]
) -> str:
    if not names:
        return spell(body)
    binders = " ".join([f"({name} {param})" for name, param in zip(names, params, strict=True)])
    return f"(define-fun {symbol.name} ({binders}) {sort} {spell(body)})"


@dataclass(frozen=True, slots=True)
class Interpretation:
    """The declared sorts of a query, by arity, as bit-vectors of ``width`` bits."""

    sorts: Mapping[str, int]
    width: int

    @classmethod
    def of(cls, query: Query, model: Mapping[str, str]) -> Interpretation:
        """An interpretation in which all elements that ``model`` numbers are different."""
        found = (int(number) for value in model.values() for number in _NUMBERED.findall(value))
        width = max(1, max(found, default=0).bit_length())
        return cls(_arities(query), width)

    def declaration(self, text: str) -> str:
        """A declaration of the query; that of a sort becomes a definition as bit-vectors."""
        if not text.startswith(_DECLARED):
            return text
        name = tokenize(text, DEFAULT)[2]
        parameters = " ".join([f"T!{at}" for at in range(self.sorts[name])])
        return f"(define-sort {name} ({parameters}) {bit_vector(self.width)})"

    def symbol(self, symbol: Symbol) -> Symbol:
        """``symbol`` with its declared sorts replaced by bit-vectors."""
        return Symbol(symbol.name, self._sort(symbol.sort), tuple(map(self._sort, symbol.params)))

    def value(self, symbol: Symbol, value: str) -> str:
        """A value that :func:`numbered` gave, with numbers replaced by bit-vectors."""
        names, body = _parts(symbol, value)
        found = [(token, _NUMBER.fullmatch(token)) for token in self._plain(body)]
        written = [f"(_ bv{number[1]} {self.width})" if number else token for token, number in found]
        concrete = self.symbol(symbol)
        return _value(symbol, names, concrete.params, concrete.sort, written)

    def _sort(self, text: str) -> str:
        return spell(self._plain(tokenize(text, DEFAULT)))

    def _plain(self, tokens: Sequence[str]) -> list[str]:
        """``tokens`` with the names of declared sorts replaced by bit-vectors."""
        levels = depths(tokens, DEFAULT)
        written: list[str] = []
        at = 0
        while at < len(tokens):
            end = at + 1
            sort = self.sorts.get(tokens[at]) == 0
            if tokens[at] == "(" and self.sorts.get(tokens[end], 0):
                end = levels.index(levels[at] - 1, at) + 1
                sort = True
            written.append(bit_vector(self.width) if sort else tokens[at])
            at = end
        return written
