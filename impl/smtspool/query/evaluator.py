"""The evaluator tells whether a model satisfies a query, by the semantics of SMT-LIB and without an engine.

The assertions of the query are evaluated one after the other, with every symbol at its value, in one pass
without recursion, however deep they are. A term that a let or a definition names is evaluated once, and so is
a function for equal arguments. Steps are counted, which bounds time and memory. An evaluation that would need
more steps, or meets a text that it cannot read, has no result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import call
from typing import Any

from smtspool.query.arrays import FREE_BITS, Array, Steps, Unreadable, Value
from smtspool.query.lexer import depths, items, split
from smtspool.query.limits import DEFAULT
from smtspool.query.model import defined
from smtspool.query.operators import width_of
from smtspool.query.semantics import OPERATORS, Function, indexed_or_literal, truth
from smtspool.query.value import Query

__all__ = ["STEPS", "evaluate"]

STEPS = 1 << 20  # half a second; a step is a token or an operation on 64 bits

_MANY = 1 << 64  # keys: more than any table holds
_NESTED = 16  # arrays of arrays; comparing them recurses on the sort
_CONSTANT = re.compile(
    r"\(define-fun (\|[^|]*\||[^ ]+) \(\) (?:Bool|\(_ BitVec [0-9]+\)) (true|false|#[bx][0-9a-fA-F]+)\)"
)

# Errors of an ill-sorted application. The reader refuses such terms, but version 0.1 did not check sorts and
# may have stored some.
_ILL_SORTED = (TypeError, ValueError, LookupError, StopIteration)
_OPEN, _CLOSE, _LET, _AS = object(), object(), object(), object()
_WORDS: dict[str, object] = {"(": _OPEN, ")": _CLOSE, "let": _LET, "as": _AS, **OPERATORS}


def evaluate(query: Query, model: Mapping[str, str], *, steps: int = STEPS) -> bool | None:
    """Whether ``model`` satisfies every assertion of ``query``; None if that cannot be told.

    Elements of declared sorts become bit-vectors, as in :func:`~smtspool.query.model.defined`; then False
    need not mean that the model is wrong: :func:`~smtspool.query.abstract.refutable`. Raises ``ModelError``
    if a value is missing or malformed.
    """
    values = dict(zip(query.declarations, defined(query, model), strict=True))
    evaluation = _Evaluation(steps)
    try:
        for level in query.levels:
            for declaration in level.declarations:
                evaluation.declare(values[declaration])
            if not evaluation.holds(level.assertion):
                return False
    except (Unreadable, *_ILL_SORTED):
        return None
    return True


class _Scope(dict[str, Any]):
    """The meanings of the tokens of one text: words of the language, bound names, and cached look-ups."""

    def __init__(self, words: Mapping[str, object], known: Mapping[str, object]) -> None:
        super().__init__(words)
        self._known = known

    def __missing__(self, token: str) -> object:
        meaning = self._known.get(token)
        if meaning is None:
            meaning = indexed_or_literal(token)
        self[token] = meaning
        return meaning


class _Let:
    """A let under way: ``name`` is being bound while it is not None, the body follows after that."""

    __slots__ = ("_bound", "_hidden", "_rest", "_scope", "name")

    def __init__(self, rest: Iterator[str], scope: _Scope) -> None:
        self.name: str | None = None
        self._bound: dict[str, Value] = {}
        self._hidden: dict[str, object] = {}
        self._rest = rest
        self._scope = scope
        next(rest)  # the parenthesis that opens the bindings
        self._next_binding()

    def __call__(self, value: Value) -> Value | _Let:
        """Take the value of a binding, after which the let goes on, or of the body, which is returned."""
        if self.name is not None:
            self._bound[self.name] = value
            self._next_binding()
            return self
        for name, hidden in self._hidden.items():
            if hidden is None:
                del self._scope[name]
            else:
                self._scope[name] = hidden
        return value

    def _next_binding(self) -> None:
        """Read up to the term of the next binding, or past the last one; then the names are in scope."""
        if next(self._rest) == "(":
            self.name = next(self._rest)
            return
        self.name = None
        self._hidden = {name: self._scope.get(name) for name in self._bound}
        self._scope.update(self._bound)


class _Defined:
    """A function with a body; ``known`` has its values so far."""

    __slots__ = ("known", "parameters", "tokens")

    def __init__(self, parameters: Sequence[str], tokens: Sequence[str]) -> None:
        self.parameters = parameters
        self.tokens = tokens
        self.known: dict[tuple[Value, ...], Value] = {}

    def __call__(self, *arguments: Value) -> Value | _Call:
        known = self.known.get(arguments)
        return _Call(self, arguments) if known is None else known


class _Call:
    """A function that has to be evaluated for these arguments first."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: _Defined, arguments: tuple[Value, ...]) -> None:
        self.function = function
        self.arguments = arguments


class _Text:
    """A text under way. Every open list has a frame with the meanings of its parts so far."""

    __slots__ = ("call", "frame", "meanings", "outer", "rest", "scope")

    def __init__(self, tokens: Sequence[str], scope: _Scope, call: _Call | None = None) -> None:
        self.rest = iter(tokens)
        self.scope = scope
        self.meanings = map(scope.__getitem__, self.rest)
        self.frame: list[Any] = []
        self.outer: list[list[Any]] = []
        self.call = call  # whose body it is


class _Evaluation:
    """Evaluates texts over the declarations so far."""

    def __init__(self, steps: int) -> None:
        self._steps = Steps(steps)
        self._words = dict(_WORDS)
        self._known: dict[str, object] = {}
        self._sizes = {"Bool": 2}  # elements of sorts without parameters, and of any with them
        self._scope = _Scope(self._words, self._known)

    def declare(self, text: str) -> None:
        """One ``define-fun`` or ``define-sort``. Raises :class:`Unreadable`."""
        constant = _CONSTANT.fullmatch(text)
        if constant is not None:
            self._define(constant[1], indexed_or_literal(constant[2]))
            return
        tokens = split(text, DEFAULT)
        levels = depths(tokens, DEFAULT)
        (start, end), *_, (first, last) = items(tokens, levels, 3, len(tokens) - 1)
        name, body = tokens[2], tokens[first:last]
        if tokens[1] == "define-sort":
            self._sizes[name] = self._size(body)
            return
        parameters = [tokens[at + 1] for at, _ in items(tokens, levels, start + 1, end - 1)]
        self._define(name, _Defined(parameters, body) if parameters else self._value(body))

    def holds(self, text: str) -> bool:
        """Whether an assertion is true. Raises :class:`Unreadable`."""
        return truth(self._value(split(text, DEFAULT)))

    def _define(self, name: str, meaning: object) -> None:
        self._known[name] = meaning
        self._words.pop(name, None)  # a word of other logics
        self._scope.pop(name, None)

    def _value(self, tokens: Sequence[str]) -> Value:
        steps = self._steps
        steps.take(len(tokens))
        text = _Text(tokens, self._scope)
        callers: list[_Text] = []
        while True:
            frame, outer = text.frame, text.outer
            value: Any = None
            for meaning in text.meanings:
                if meaning is _OPEN:
                    outer.append(frame)
                    frame = []
                elif meaning is _CLOSE:
                    last = frame[-1]
                    if last.__class__ is tuple and last[0] > FREE_BITS:
                        steps.take_for(last[0])
                    value = call(*frame)
                    if value.__class__ is _Let:
                        frame = [value]
                        continue
                    frame = outer.pop()
                    if value.__class__ is _Call:
                        break
                    if value.__class__ is tuple and value[0] > FREE_BITS:
                        steps.take_for(value[0])
                    frame.append(value)
                elif meaning is _LET:
                    frame.append(_Let(text.rest, text.scope))
                elif meaning is _AS:
                    frame = outer.pop()
                    frame.append(self._constant_array(text.rest))
                else:
                    frame.append(meaning)
            text.frame = frame
            if value.__class__ is _Call:
                callers.append(text)
                text = self._body(value)
                continue
            (value,) = frame
            if text.call is None:
                return value  # type: ignore[no-any-return]
            text.call.function.known[text.call.arguments] = value
            text = callers.pop()
            text.frame.append(value)

    def _body(self, called: _Call) -> _Text:
        function = called.function
        self._steps.take(len(function.tokens) + len(self._words))
        scope = _Scope(self._words, self._known)
        scope.update(zip(function.parameters, called.arguments, strict=True))
        return _Text(function.tokens, scope, called)

    def _constant_array(self, rest: Iterator[str]) -> Function:
        """The rest of ``(as const (Array key element))``."""
        tokens: list[str] = []
        depth = 1
        for token in rest:
            depth += (token == "(") - (token == ")")
            if not depth:
                break
            tokens.append(token)
        sort = tokens[1:]
        if sort.count("Array") > _NESTED:
            raise Unreadable("arrays of arrays of arrays")
        (start, end), _ = items(sort, depths(sort, DEFAULT), 2, len(sort) - 1)
        size = self._size(sort[start:end])
        return lambda element: Array(size, element, {}, self._steps)

    def _size(self, sort: Sequence[str]) -> int:
        """The number of elements of a sort, or :data:`_MANY`."""
        frame: list[Any] = []
        outer: list[list[Any]] = []
        for token in sort:
            if token == "(":
                outer.append(frame)
                frame = []
            elif token == ")":
                name, *sizes = frame
                frame = outer.pop()
                frame.append(_power(*sizes) if name == "Array" else self._sizes[name])
            elif outer and not frame:
                frame.append(token)
            elif token in self._sizes:
                frame.append(self._sizes[token])
            else:
                frame.append(_power(width_of(token) or 0, 2))
        return int(frame[0])


def _power(exponent: int, base: int) -> int:
    return _MANY if exponent >= 64 else min(_MANY, base**exponent)
