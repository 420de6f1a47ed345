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
from smtspool.query.lexer import identifier, spell
from smtspool.query.limits import Limits
from smtspool.query.theory import check_fixed, theory_of

__all__ = ["Vocabulary", "strip_annotations"]

_PUNCTUATION = frozenset("()")


class Vocabulary:
    """The theory symbols of one logic, and the literals met so far."""

    def __init__(self, logic: str, limits: Limits) -> None:
        self.logic = logic
        self.limits = limits
        self._fixed = set(theory_of(logic) | _PUNCTUATION)

    def name(self, token: str) -> str:
        """``token`` as a name one may declare or bind. Raises ``AdmissionError`` (symbol, syntax)."""
        if token in self._fixed:
            if token in _PUNCTUATION or token[0] in "(#":
                raise AdmissionError(Reason.SYNTAX, f"a name is missing before {token[:64]!r}")
            raise AdmissionError(Reason.SYMBOL, f"{token!r} is a theory symbol of {self.logic}")
        if not identifier(token, self.limits):
            raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} is not a name")
        return token

    def term(self, tokens: Sequence[str], declared: Container[str], parameters: Sequence[str] = ()) -> Term:
        """Check one term over ``declared`` names and ``parameters``. Raises ``AdmissionError``."""
        distinct = dict.fromkeys(tokens)
        fixed = self._fixed
        names = tuple([t for t in distinct if t not in fixed and (t in declared or self._is_name(t))])
        if "let" in distinct:
            self._check_scopes(tokens, declared, parameters)
        else:
            for name in names:
                if name not in declared and name not in parameters:
                    raise _undeclared(name)
        text = spell(tokens)
        if "()" in text and ("|" not in text or any(a == "(" and b == ")" for a, b in pairwise(tokens))):
            raise AdmissionError(Reason.SYNTAX, "an empty list stands in a term")
        return Term(text, tokens, names)

    def _is_name(self, token: str) -> bool:
        if token[0] in "(#":
            check_fixed(token, self.limits)
            self._fixed.add(token)
            return False
        if not identifier(token, self.limits):
            raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} cannot stand in a term")
        return True

    def _check_scopes(
        self, tokens: Sequence[str], declared: Container[str], parameters: Iterable[str]
    ) -> None:
        """Walk ``(let ((x t) ...) body)``: x is bound in body, not in t; lets nest without recursion.

        Of the innermost open let three things are kept: the depth at which its bindings open (-1 once they
        are over), the depth at which its list or itself closes, and the names it binds.
        """
        fixed = self._fixed
        bound = dict.fromkeys(parameters, 1)  # how many open scopes bind a name
        outer: list[tuple[int, int, set[str]]] = []
        bindings, closing = -1, -1
        names: set[str] = set()
        depth = 0
        walk = enumerate(tokens)
        for at, token in walk:
            if token == "(":
                depth += 1
                if depth == bindings:
                    name = self.name(next(walk)[1])
                    if name in names:
                        raise AdmissionError(Reason.SYMBOL, f"{name[:64]!r} is bound twice by one let")
                    names.add(name)
            elif token == ")":
                depth -= 1
                if depth == closing:
                    if bindings >= 0:
                        bindings, closing = -1, depth - 1
                        for name in names:
                            bound[name] = bound.get(name, 0) + 1
                    else:
                        for name in names:
                            bound[name] -= 1
                        bindings, closing, names = outer.pop()
            elif token in fixed:
                if token == "let":
                    if at == 0 or tokens[at - 1] != "(" or tokens[at + 1] != "(":
                        raise AdmissionError(Reason.SYNTAX, "a let without a list of bindings")
                    outer.append((bindings, closing, names))
                    bindings, closing, names = depth + 2, depth, set()
            elif token not in declared and not bound.get(token):
                raise _undeclared(token)


def _undeclared(name: str) -> AdmissionError:
    return AdmissionError(Reason.SYMBOL, f"{name[:64]!r} is not declared here")


def strip_annotations(tokens: Sequence[str]) -> list[str]:
    """Replace every ``(! t ...)`` in balanced ``tokens`` by ``t``.

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
        if token == "(" and tokens[at + 1] == "!":
            depth += 1
            open_annotations.append((depth, len(kept)))
            at += 2
        elif open_annotations and depth == open_annotations[-1][0] and (token == ")" or token[0] == ":"):
            _, begin = open_annotations.pop()
            depth -= 1
            name, at = _attributes(tokens, at)
            if name is not None and uses[name] > 1:
                _define(kept, begin, name, whole=depth == 1 and kept[begin - 1] == "assert")
        else:
            depth += (token == "(") - (token == ")")
            kept.append(token)
            at += 1
    return kept


def _attributes(tokens: Sequence[str], at: int) -> tuple[str | None, int]:
    """The ``:named`` of the annotation whose attributes begin at ``at``, and the place after its end."""
    if tokens[at] == ")":
        raise AdmissionError(Reason.SYNTAX, "an annotation without attributes")
    name = None
    depth = 0
    while depth or tokens[at] != ")":
        if tokens[at] == ":named" and not depth:
            name = tokens[at + 1]
        depth += (tokens[at] == "(") - (tokens[at] == ")")
        at += 1
    return name, at + 1


def _define(kept: list[str], begin: int, name: str, *, whole: bool) -> None:
    if not whole:
        raise AdmissionError(
            Reason.SYMBOL, f"{name[:64]!r} names a term inside an assertion and is used; define it instead"
        )
    kept[begin - 1 : begin] = ["define-fun", name, "(", ")", "Bool"]
    kept += (")", "(", "assert", name)
