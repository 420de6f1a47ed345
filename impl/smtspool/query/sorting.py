"""The sort of a term, found in one pass without recursion; an ill-sorted term is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from operator import length_hint
from typing import TYPE_CHECKING, Any

from smtspool.errors import AdmissionError, Reason
from smtspool.query.expansion import Expansion, expansion
from smtspool.query.operators import Meaning, Operator, constant_array, width_of
from smtspool.query.theory import hold_width

if TYPE_CHECKING:
    from smtspool.query.terms import Vocabulary

__all__ = ["Parenthesis", "TermPass"]

_APPLICATIONS = 1 << 14  # remembered
_ARGUMENTS = 8  # of an application worth remembering
_NAMED = 4  # arguments in a message


class Parenthesis(Enum):
    """What a parenthesis means to :class:`TermPass`."""

    OPEN = "("
    CLOSE = ")"


class _Let:
    """A let under way: ``name`` is being bound while it is not None, the body follows after that."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.bound: dict[str, Meaning] = {}
        self.hidden: dict[str, Meaning | Parenthesis | None] = {}


class TermPass:
    """One pass over the tokens of one term, whose parentheses match.

    Every open list has a frame with the meanings of its parts so far. When a list closes, its whole frame is
    looked up in a cache, since producers apply the same few operators to the same few sorts. After the pass
    :attr:`expansions` maps the closing parenthesis of each application that must be replaced to its
    replacement.
    """

    def __init__(self, vocabulary: Vocabulary, tokens: Sequence[str]) -> None:
        self.expansions: dict[int, Expansion] = {}
        self._vocabulary = vocabulary
        self._tokens = tokens
        self._rest: Iterator[str] = iter(tokens)
        self._entered: list[_Let] = []  # whose names are in force

    def sort(self) -> str:
        """The sort of the term. Raises ``AdmissionError`` (sort, symbol, syntax, too-large)."""
        try:
            return self._sort()
        finally:
            while self._entered:  # it was refused
                self._leave()

    def _sort(self) -> str:
        applied = self._vocabulary.applied
        opened, closed = Parenthesis.OPEN, Parenthesis.CLOSE
        frame: list[Any] = []
        outer: list[list[Any]] = []
        for meaning in map(self._vocabulary.meaning.get, self._rest):
            if meaning is opened:
                outer.append(frame)
                frame = []
            elif meaning is closed:
                sort = applied.get(tuple(frame)) or self._close(frame)
                frame = outer.pop()
                if sort is None:
                    frame = _open_binding(frame, outer)
                else:
                    frame.append(sort)
            elif meaning is not None:
                frame.append(meaning)
            else:
                frame = self._read_word(frame, outer)
        if len(frame) != 1:
            raise AdmissionError(
                Reason.SYNTAX, "this is not exactly one term", at=next(iter(self._tokens), None)
            )
        if isinstance(frame[0], Operator):
            raise self._refused(f"{frame[0].name[:64]} stands alone and is no term", 0)
        return str(frame[0])

    @property
    def _place(self) -> int:
        """Of the token that was read last."""
        return len(self._tokens) - length_hint(self._rest) - 1

    def _refused(self, message: str, at: int, reason: Reason = Reason.SORT) -> AdmissionError:
        return AdmissionError(reason, message, at=self._tokens[at])

    def _close(self, frame: list[Any]) -> str | None:
        """The sort of a list that is not in the cache; None for a binding of a let, which is no term."""
        if not frame:
            raise self._refused("an empty list stands in a term", self._place, Reason.SYNTAX)
        let = frame[0]
        if not isinstance(let, _Let):
            return self._apply(*frame)
        if len(frame) != 2 or isinstance(frame[1], Operator):
            raise self._no_term(let, frame[1:])
        if let.name is None:
            self._leave()
            return str(frame[1])
        let.bound[let.name] = frame[1]
        self._next_binding(let)
        return None

    def _no_term(self, let: _Let, parts: Sequence[Meaning]) -> AdmissionError:
        what = "body of a let" if let.name is None else f"binding of {let.name[:64]}"
        if len(parts) == 1 and isinstance(parts[0], Operator):
            return self._refused(f"the {what} is {parts[0].name[:64]}, which is no term", self._place)
        return self._refused(f"the {what} is not one term", self._place, Reason.SYNTAX)

    def _apply(self, head: Meaning, *arguments: Meaning) -> str:
        if not isinstance(head, Operator):
            raise self._refused(f"what is applied like a function has sort {head[:64]}", self._head())
        sorts = tuple([sort for sort in arguments if isinstance(sort, str)])
        sort = head.rule(sorts) if sorts and len(sorts) == len(arguments) else None
        if sort is None:
            raise self._refused(f"{head.name[:64]} takes {head.takes}, not {_list(arguments)}", self._head())
        vocabulary = self._vocabulary
        hold_width(self._tokens[self._place], width_of(sort) or 0, vocabulary.limits.width)
        expanded = expansion(head, sorts)
        if expanded is not None:
            self.expansions[self._place] = expanded
        elif len(arguments) <= _ARGUMENTS:
            if len(vocabulary.applied) >= _APPLICATIONS:
                vocabulary.applied.clear()
            vocabulary.applied[head, *arguments] = sort
        return sort

    def _head(self) -> int:
        """Where the first part of the list that was closed last begins."""
        at = self._place
        depth = 1
        while depth:
            at -= 1
            depth += (self._tokens[at] == ")") - (self._tokens[at] == "(")
        return at + 1

    def _read_word(self, frame: list[Any], outer: list[list[Any]]) -> list[Any]:
        """``let`` and ``as``, which shape what follows; any other word without a meaning is refused."""
        at = self._place
        word = self._tokens[at]
        if word in ("let", "as") and (frame or not outer):
            raise self._refused(f"{word} must follow a parenthesis", at, Reason.SYNTAX)
        if word == "let":
            if next(self._rest) != "(":
                raise self._refused("a let without a list of bindings", at, Reason.SYNTAX)
            frame.append(_Let())
            self._next_binding(frame[0])
            return _open_binding(frame, outer)
        if word == "as":
            frame = outer.pop()
            frame.append(self._constant_array(at))
            return frame
        raise self._vocabulary.unknown(word)

    def _next_binding(self, let: _Let) -> None:
        """Read up to the term of the next binding, or past the last one; then the names are in scope."""
        token = next(self._rest)
        if token == ")" and let.bound:
            let.name = None
            meaning = self._vocabulary.meaning
            let.hidden = {name: meaning.get(name) for name in let.bound}
            meaning.update(let.bound)
            self._entered.append(let)
            return
        if token != "(":
            raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} is not a binding of a let", at=token)
        let.name = name = self._vocabulary.bindable(next(self._rest))
        if name in let.bound:
            raise AdmissionError(Reason.SYMBOL, f"{name[:64]!r} is bound twice by one let", at=name)

    def _leave(self) -> None:
        for name, meaning in self._entered.pop().hidden.items():
            self._vocabulary.set(name, meaning)

    def _constant_array(self, at: int) -> Operator:
        """The rest of ``(as const sort)``."""
        tokens: list[str] = []
        depth = 1
        for token in self._rest:
            depth += (token == "(") - (token == ")")
            if not depth:
                break
            tokens.append(token)
        sort = (
            self._vocabulary.sorts.resolve(tokens[1:]).text if tokens[:1] == ["const"] and tokens[1:] else ""
        )
        if not sort.startswith("(Array "):
            raise self._refused("only (as const) with an array sort is a term", at, Reason.SYNTAX)
        return constant_array(sort)


def _open_binding(frame: list[Any], outer: list[list[Any]]) -> list[Any]:
    """The frame to continue with: that of a let's body, or a new one for the term of its next binding."""
    let = frame[0]
    if let.name is None:
        return frame
    outer.append(frame)
    return [let]


def _list(arguments: Sequence[Meaning]) -> str:
    names = [one.name if isinstance(one, Operator) else one for one in arguments]
    more = len(names) - _NAMED
    return (", ".join([name[:64] for name in names[:_NAMED]]) or "nothing") + f" and {more} more" * (more > 0)
