"""Is this a term, and which names does it use? No sorts are computed; engines do that.

What is checked is what makes renaming and re-emission sound: every atom is a theory symbol of the logic,
a well-formed literal, or a name; every name is declared or bound where it stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from itertools import pairwise

from smtspool.errors import AdmissionError, Reason
from smtspool.query.identity import Term
from smtspool.query.lexer import depths, identifier, identifiers, spell
from smtspool.query.limits import Limits
from smtspool.query.theory import check_fixed, theory_of

__all__ = ["Vocabulary", "without_annotations"]

_PUNCTUATION = frozenset("()")


class Vocabulary:
    """The theory symbols of one logic, the literals met so far, and the names in scope."""

    def __init__(self, logic: str, limits: Limits) -> None:
        self.logic = logic
        self.limits = limits
        self._fixed = set(theory_of(logic) | _PUNCTUATION)
        self._known = set(self._fixed)  # what may stand in a term: all that is fixed, and names in scope

    def add(self, name: str) -> None:
        """``name`` is declared from here on."""
        self._known.add(name)

    def forget(self, name: str) -> None:
        """The declaration of ``name`` was popped."""
        self._known.discard(name)

    def covers(self, names: Iterable[str]) -> bool:
        """Whether all ``names`` are in scope."""
        return self._known.issuperset(names)

    def visible(self, names: Iterable[str]) -> frozenset[str]:
        """Those of ``names`` that are in scope."""
        return frozenset(self._known.intersection(names))

    def name(self, token: str) -> str:
        """``token`` as a name one may declare or bind. Raises ``AdmissionError`` (symbol, syntax)."""
        if token in self._fixed:
            if token in _PUNCTUATION or token[0] in "(#":
                raise AdmissionError(Reason.SYNTAX, f"a name is missing before {token[:64]!r}")
            raise AdmissionError(Reason.SYMBOL, f"{token!r} is a theory symbol of {self.logic}")
        if not identifier(token, self.limits):
            raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} is not a name")
        return token

    def term(self, tokens: Sequence[str], levels: Sequence[int], parameters: Iterable[str] = ()) -> Term:
        """Check one term over the names in scope and ``parameters``. Raises ``AdmissionError``.

        ``levels`` are the depths after each token, from any base.
        """
        distinct = dict.fromkeys(tokens)
        known = self._known
        self._check_new([token for token in distinct if token not in known])
        bound = set(parameters) - known
        known |= bound
        if "let" in distinct:
            self._check_scopes(tokens, levels)
        elif not known.issuperset(distinct):
            raise _undeclared(distinct, known)
        known -= bound
        text = spell(tokens)
        if "()" in text and ("|" not in text or any(a == "(" and b == ")" for a, b in pairwise(tokens))):
            raise AdmissionError(Reason.SYNTAX, "an empty list stands in a term")
        fixed = self._fixed
        return Term(text, tokens, tuple([token for token in distinct if token not in fixed]))

    def _check_new(self, tokens: Sequence[str]) -> None:
        """Literals must be well-formed, and all else must be a name, bound or not."""
        fixed = [token for token in tokens if token[0] in "(#"]
        for token in fixed:
            check_fixed(token, self.limits)
        self._fixed.update(fixed)
        self._known.update(fixed)
        names = [token for token in tokens if token[0] not in "(#"]
        if names and not identifiers(names, self.limits):
            odd = next(name for name in names if not identifier(name, self.limits))
            raise AdmissionError(Reason.SYNTAX, f"{odd[:64]!r} cannot stand in a term")

    def _check_scopes(self, tokens: Sequence[str], levels: Sequence[int]) -> None:
        """Walk ``(let ((x t) ...) body)``: x is bound in body, not in t; lets nest without recursion.

        One step goes to the next place where a scope begins or ends, and no further than the next let, so
        that no token is looked at more than a few times.
        """
        known, fixed = self._known, self._fixed
        outer: list[tuple[int, set[str], bool]] = []
        # Of the innermost let: its depth, the names it binds, and whether its list of bindings goes on.
        level, names, listing = 0, set[str](), False
        end = len(tokens)
        let = _find(tokens, "let", 0, end)
        at = 0
        while at < end:
            if not outer:
                stop = let
            else:
                try:
                    stop = levels.index(level + 1 if listing else level - 1, at, let)
                except ValueError:
                    stop = let
            part = tokens[at:stop]
            if not known.issuperset(part):
                raise _undeclared(part, known)
            at = stop + 1
            if stop == end:
                break
            if stop == let:
                if not let or tokens[let - 1] != "(" or tokens[at] != "(":
                    raise AdmissionError(Reason.SYNTAX, "a let without a list of bindings")
                outer.append((level, names, listing))
                level, names, listing = levels[let], set(), True
                at += 1
                let = _find(tokens, "let", at, end)
            elif not listing:
                known -= names
                level, names, listing = outer.pop()
                continue
            if tokens[at] == ")":
                names -= known
                known |= names
                listing = False
                at += 1
            else:
                name = tokens[at + 1]
                if tokens[at] != "(":
                    raise AdmissionError(Reason.SYNTAX, f"{tokens[at][:64]!r} is not a binding of a let")
                if name in fixed:
                    self.name(name)  # refuses it
                if name in names:
                    raise AdmissionError(Reason.SYMBOL, f"{name[:64]!r} is bound twice by one let")
                names.add(name)
                at += 2


def _find(sequence: Sequence[object], item: object, start: int, stop: int) -> int:
    """Where ``item`` stands in ``sequence[start:stop]``; ``stop`` if it does not."""
    try:
        return sequence.index(item, start, stop)
    except ValueError:
        return stop


def _undeclared(tokens: Iterable[str], known: Container[str]) -> AdmissionError:
    name = next(token for token in tokens if token not in known)
    return AdmissionError(Reason.SYMBOL, f"{name[:64]!r} is not declared here", at=name)


def without_annotations(tokens: Sequence[str], limits: Limits) -> tuple[Sequence[str], Sequence[int]]:
    """``tokens`` without their annotations, and the depth after each. Raises ``AdmissionError``."""
    levels = depths(tokens, limits)
    if "!" in tokens:
        tokens = _strip_annotations(tokens, limits)
        levels = depths(tokens, limits)
    return tokens, levels


def _strip_annotations(tokens: Sequence[str], limits: Limits) -> list[str]:
    """Replace every ``(! t ...)`` in balanced ``tokens`` by ``t``, which is one term or refused (syntax).

    A name given to a whole assertion becomes a definition where something else uses the name. Inside a term
    that would take its sort, which is not known here, so there it is refused (symbol).
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
                raise AdmissionError(Reason.SYNTAX, f"an annotation is of one term, not of {token[:64]!r}")
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
        raise AdmissionError(Reason.SYNTAX, "an annotation without attributes")
    name = None
    depth = values = 0
    while depth or tokens[at] != ")":
        token = tokens[at]
        if not depth:
            values = 0 if token[0] == ":" else values + 1
            if values > 1:
                raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} is a second value of an attribute")
            if token == ":named":
                name = tokens[at + 1]
                if not identifier(name, limits):
                    raise AdmissionError(Reason.SYNTAX, f"{name[:64]!r} is not a name")
        depth += (token == "(") - (token == ")")
        at += 1
    return name, at + 1


def _define(kept: list[str], begin: int, name: str, *, whole: bool) -> None:
    if not whole:
        raise AdmissionError(
            Reason.SYMBOL, f"{name[:64]!r} names a term inside an assertion and is used; define it instead"
        )
    kept[begin - 1 : begin] = ["define-fun", name, "(", ")", "Bool"]
    kept += (")", "(", "assert", name)
