"""Checks a term: that it is one, its sort, and which names it uses.

Each atom must be a theory symbol of the logic, a well-formed literal, or a name that is declared or bound
there, and each application must be one that the operator allows. Only then may a term be printed or renamed,
and only then do all engines read it alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

from smtspool.errors import AdmissionError, Reason
from smtspool.query.expansion import written_out
from smtspool.query.identity import Term
from smtspool.query.lexer import depths, identifier, identifiers, spell
from smtspool.query.limits import Limits
from smtspool.query.memory import memory_of
from smtspool.query.operators import Meaning, function, sort_symbol
from smtspool.query.sorting import Parenthesis, TermPass
from smtspool.query.sorts import Sorts
from smtspool.query.theory import fixed_meaning, meanings, stranger, theory_of
from smtspool.query.value import Symbol

__all__ = ["Vocabulary", "without_annotations"]

_PARENTHESES = {parenthesis.value: parenthesis for parenthesis in Parenthesis}


class Vocabulary:
    """The theory symbols of one logic, the literals met so far, and what the names in scope mean."""

    def __init__(self, logic: str, limits: Limits, sorts: Sorts) -> None:
        self.logic = logic
        self.limits = limits
        self.sorts = sorts
        self.applied = memory_of(logic, limits).applied
        self._fixed = set(theory_of(logic) | _PARENTHESES.keys())
        self._undeclared = meanings(logic)
        self.meaning: dict[str, Meaning | Parenthesis] = {**self._undeclared, **_PARENTHESES}

    def add(self, name: str, symbol: Symbol | None) -> None:
        """``name`` is declared from here on; without ``symbol`` it is a sort."""
        if symbol is None:
            self.meaning[name] = sort_symbol(name)
        elif symbol.params:
            self.meaning[name] = function(*symbol)
        else:
            self.meaning[name] = symbol.sort

    def forget(self, name: str) -> None:
        """The declaration of ``name`` was popped."""
        self.set(name, self._undeclared.get(name))

    def set(self, name: str, meaning: Meaning | Parenthesis | None) -> None:
        """From here on ``name`` has this meaning, or none."""
        if meaning is None:
            self.meaning.pop(name, None)
        else:
            self.meaning[name] = meaning

    def covers(self, required: Set[tuple[str, object]]) -> bool:
        """Whether all these names are in scope with these meanings."""
        return self.meaning.items() >= required

    def visible(self, names: Iterable[str]) -> frozenset[tuple[str, object]]:
        """Those of ``names`` that are in scope, with their meanings."""
        meaning = self.meaning
        return frozenset([(name, meaning[name]) for name in names if name in meaning])

    def name(self, token: str) -> str:
        """``token`` as a name one may declare or bind. Raises ``AdmissionError`` (symbol, syntax)."""
        if token in self._fixed:
            if token in _PARENTHESES or token[0] in "(#":
                raise AdmissionError(Reason.SYNTAX, f"a name is missing before {token[:64]!r}", at=token)
            raise AdmissionError(Reason.SYMBOL, f"{token!r} is a theory symbol of {self.logic}", at=token)
        if not identifier(token, self.limits):
            raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} is not a name", at=token)
        return token

    def bindable(self, token: str) -> str:
        """As :meth:`name`, of a token in a term."""
        return self.name(token) if token in self._fixed else token

    def unknown(self, token: str) -> AdmissionError:
        """The error for a token of a term that has no meaning in its place."""
        if token in self._fixed:
            return AdmissionError(Reason.SYNTAX, f"{token[:64]!r} is not a term", at=token)
        return stranger(token, f"{token[:64]!r} is not declared here")

    def term(self, tokens: Sequence[str], parameters: Mapping[str, str] | None = None) -> Term:
        """Check the one term of ``tokens`` over the names in scope and ``parameters``, of these sorts.

        Operators that not every engine knows are replaced. Raises ``AdmissionError``.
        """
        distinct = self._checked(tokens)
        hidden = {name: self.meaning.get(name) for name in parameters or ()}
        self.meaning.update(parameters or {})
        reading = TermPass(self, tokens)
        try:
            sort = reading.sort()
        finally:
            for name, meaning in hidden.items():
                self.set(name, meaning)
        if reading.expansions:
            tokens = written_out(tokens, reading.expansions, self.limits)
            depths(tokens, self.limits)
            distinct = self._checked(tokens)
        fixed = self._fixed
        return Term(spell(tokens), tokens, tuple([token for token in distinct if token not in fixed]), sort)

    def _checked(self, tokens: Sequence[str]) -> Iterable[str]:
        """The distinct tokens: literals must be well-formed, and all else must be a name, bound or not."""
        distinct = dict.fromkeys(tokens)
        fixed = self._fixed
        names = []
        for token in [token for token in distinct if token not in self.meaning and token not in fixed]:
            if token[0] in "(#":
                self.set(token, fixed_meaning(token, self.limits))
                fixed.add(token)
            else:
                names.append(token)
        if names and not identifiers(names, self.limits):
            odd = next(name for name in names if not identifier(name, self.limits))
            raise AdmissionError(Reason.SYNTAX, f"{odd[:64]!r} cannot stand in a term", at=odd)
        return distinct


def without_annotations(tokens: Sequence[str], limits: Limits) -> tuple[Sequence[str], Sequence[int]]:
    """``tokens`` without their annotations, and the depth after each. Raises ``AdmissionError``."""
    levels = depths(tokens, limits)
    if "!" in tokens:
        tokens = _strip_annotations(tokens, limits)
        levels = depths(tokens, limits)
    return tokens, levels


def _strip_annotations(tokens: Sequence[str], limits: Limits) -> list[str]:
    """Replace every ``(! t ...)`` in balanced ``tokens`` by ``t``, which is one term or refused (syntax).

    A name given to a whole assertion becomes a definition if the script uses the name elsewhere. For a name
    given inside a term, a definition would need its sort, which is not known here; such a name is refused
    (symbol) if it is used.
    """
    uses = Counter(tokens)
    kept: list[str] = []
    open_annotations: list[tuple[int, int]] = []  # depth, and where the term begins in ``kept``
    depth = 0
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if open_annotations and depth == open_annotations[-1][0]:
            begin = open_annotations[-1][1]
            attributes = token == ")" or token[0] == ":"
            if attributes is (len(kept) == begin):  # they come after the term, and no other term does
                raise AdmissionError(
                    Reason.SYNTAX, f"an annotation has one term, then attributes: {token[:64]!r}", at=token
                )
            if attributes:
                open_annotations.pop()
                depth -= 1
                name, at = _attributes(tokens, at, limits)
                if name is not None and uses[name] > 1:
                    _define(kept, begin, name, whole=depth == 1 and kept[begin - 1] == "assert")
                continue
        if token == "(" and tokens[at + 1] == "!":
            depth += 1
            open_annotations.append((depth, len(kept)))
            at += 2
        else:
            depth += (token == "(") - (token == ")")
            kept.append(token)
            at += 1
    return kept


def _attributes(tokens: Sequence[str], at: int, limits: Limits) -> tuple[str | None, int]:
    """The ``:named`` of the annotation whose attributes begin at ``at``, and the place after its end."""
    if tokens[at] == ")":
        raise AdmissionError(Reason.SYNTAX, "an annotation without attributes", at=tokens[at])
    name = None
    depth = values = 0
    while depth or tokens[at] != ")":
        token = tokens[at]
        if not depth:
            values = 0 if token[0] == ":" else values + 1
            if values > 1:
                raise AdmissionError(
                    Reason.SYNTAX, f"{token[:64]!r} is a second value of an attribute", at=token
                )
            if token == ":named":
                name = tokens[at + 1]
                if not identifier(name, limits):
                    raise AdmissionError(Reason.SYNTAX, f"{name[:64]!r} is not a name", at=name)
        depth += (token == "(") - (token == ")")
        at += 1
    return name, at + 1


def _define(kept: list[str], begin: int, name: str, *, whole: bool) -> None:
    if not whole:
        raise AdmissionError(
            Reason.SYMBOL,
            f"{name[:64]!r} names a term inside an assertion and is used; define it instead",
            at=name,
        )
    kept[begin - 1 : begin] = ["define-fun", name, "(", ")", "Bool"]
    kept += (")", "(", "assert", name)
