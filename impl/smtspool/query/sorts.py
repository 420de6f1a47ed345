"""The sorts of one script: Bool, bit-vectors, arrays, declared ones; abbreviations are expanded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from smtspool.errors import AdmissionError, Reason
from smtspool.query.lexer import spell
from smtspool.query.limits import Limits
from smtspool.query.theory import fixed_meaning, stranger, theory_of

__all__ = ["Sort", "Sorts", "value_bits"]

_ELEMENT = re.compile(r"\(_ BitVec ([0-9]+)\)\)*\Z", re.ASCII)
_ARITY = re.compile(r"0|[1-9][0-9]?", re.ASCII)


class Sort(NamedTuple):
    """One sort with every abbreviation written out."""

    text: str
    tokens: tuple[str, ...]
    free: tuple[str, ...] = ()  # the declared sorts in it


@lru_cache(maxsize=1 << 10)
def value_bits(sort: str) -> int:
    """Bits of one bit-vector, or of what an array holds throughout; 1 for every other sort."""
    element = _ELEMENT.search(sort)
    return int(element[1]) if element else 1


class Sorts:
    """Arities of the sort symbols met or declared, and what the defined ones stand for."""

    def __init__(self, logic: str, limits: Limits) -> None:
        self._limits = limits
        self._arity = {"Bool": 0}
        if "Array" in theory_of(logic):
            self._arity["Array"] = 2
        self._plain = {"Bool": Sort("Bool", ("Bool",))}  # that are one token and need no declaration
        self._free: set[str] = set()
        self.aliases: dict[str, Sort] = {}
        self.expansion = 0

    def declare(self, name: str, arity: str) -> None:
        """A free sort."""
        if _ARITY.fullmatch(arity) is None:
            raise AdmissionError(
                Reason.SYNTAX, f"declare-sort {name[:64]} needs an arity from 0 to 99", at=name
            )
        self._arity[name] = int(arity)
        self._free.add(name)

    def alias(self, name: str, tokens: Sequence[str]) -> None:
        """An abbreviation; where it is used its expansion is written."""
        self.aliases[name] = self.resolve(tokens)

    def forget(self, name: str) -> None:
        """The declaration of ``name`` was popped, whether it was a sort or not."""
        if name in self._free:
            self._free.remove(name)
            del self._arity[name]

    def forget_aliases(self, count: int) -> None:
        """Only the first ``count`` abbreviations are still in scope."""
        while len(self.aliases) > count:
            self.aliases.popitem()

    def expand(self, tokens: Sequence[str]) -> Sequence[str]:
        """``tokens`` of a term with every abbreviation written out. Raises ``AdmissionError`` (too-large)."""
        if not self.aliases:
            return tokens
        for name, uses in Counter(filter(self.aliases.__contains__, tokens)).items():
            self._pay(self.aliases[name], uses)
        expanded: list[str] = []
        for token in tokens:
            alias = self.aliases.get(token)
            expanded += (token,) if alias is None else alias.tokens
        return expanded

    def _pay(self, alias: Sort, uses: int = 1) -> None:
        """Count the characters of an expansion before it is made: a short script may expand to a huge one."""
        self.expansion += uses * sum(map(len, alias.tokens))
        self._limits.hold("expansion", self.expansion)

    def resolve(self, tokens: Sequence[str]) -> Sort:
        """One sort. Raises ``AdmissionError`` (symbol, syntax, too-large)."""
        if len(tokens) == 1:
            return self._plain.get(tokens[0]) or self._constant(tokens[0])
        resolved: list[str] = []
        missing = [1]  # arguments still to come, per open parenthesis
        size = 0
        head = False
        for token in tokens:
            if head:
                missing.append(self._constructor(token))
                head = False
                part: tuple[str, ...] = (token,)
            elif token == ")":
                if missing.pop() != 0 or not missing:
                    raise AdmissionError(Reason.SYNTAX, "a sort with the wrong number of arguments", at=token)
                part = (token,)
            else:
                missing[-1] -= 1
                head = token == "("
                part = (token,) if head else self._constant(token).tokens
            size += sum(map(len, part)) + len(part)
            self._limits.hold("sort", size)
            resolved += part
        if missing != [0]:
            raise AdmissionError(
                Reason.SYNTAX, "a sort is missing or incomplete", at=tokens[-1] if tokens else None
            )
        return Sort(spell(resolved), tuple(resolved), tuple([t for t in resolved if t in self._free]))

    def _constant(self, token: str) -> Sort:
        alias = self.aliases.get(token)
        if alias is not None:
            self._pay(alias)
            return alias
        if token in self._plain:
            return self._plain[token]
        if token.startswith("(_ BitVec "):
            fixed_meaning(token, self._limits)
            self._plain[token] = Sort(token, (token,))
            return self._plain[token]
        if self._arity.get(token) != 0:
            raise stranger(token, f"{token[:64]!r} is not a sort of the logic")
        return Sort(token, (token,), (token,))

    def _constructor(self, token: str) -> int:
        arity = self._arity.get(token, 0)
        if not arity:
            raise AdmissionError(
                Reason.SYMBOL, f"{token[:64]!r} is not a sort of the logic with arguments", at=token
            )
        return arity
