"""Puts queries together from checked declarations and assertions, with the scopes of push and pop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smtspool.errors import AdmissionError, Reason
from smtspool.query.identity import Assertion, Declaration, Term, chain, content_id, form_of
from smtspool.query.lexer import items, one_term, spell
from smtspool.query.limits import Limits
from smtspool.query.sorts import Sorts, value_bits
from smtspool.query.terms import Vocabulary
from smtspool.query.value import Query, Symbol, Witness

__all__ = ["Assembler"]

_TRUE = Term("true", ("true",), ())


class Assembler:
    """The assertion stack of one script or envelope.

    Commands are given as their tokens with the depth after each token, outer parentheses included.
    Every method raises ``AdmissionError`` for what a producer got wrong.
    """

    def __init__(self, logic: str, limits: Limits) -> None:
        self._logic = logic
        self._limits = limits
        self._vocabulary = Vocabulary(logic, limits)
        self._sorts = Sorts(logic, limits)
        self._declared: dict[str, Declaration] = {}
        self._assertions: list[Assertion] = []
        self._emitted: set[str] = set()  # names that some level on the stack declares
        self._marks: list[tuple[int, int, int]] = []  # declarations, aliases, assertions at each push
        self._replicated = 0
        self._replicated_text = 0

    def declare(self, tokens: Sequence[str], levels: Sequence[int]) -> None:
        """One command of the ``declare-`` or ``define-`` kind."""
        if len(tokens) < 4:
            raise AdmissionError(Reason.SYNTAX, f"{tokens[1]} is incomplete")
        name = self._vocabulary.name(tokens[2])
        if name in self._declared or name in self._sorts:
            raise AdmissionError(Reason.SYMBOL, f"{name[:64]!r} is declared twice")
        self._limits.hold("declarations", len(self._declared) + 1)
        command = tokens[1]
        if command == "declare-sort":
            self._declare_sort(name, tokens)
        elif command == "declare-const":
            self._declare_function(name, (), tokens[3:-1])
        elif command == "declare-fun" and tokens[3:5] == ["(", ")"]:
            self._declare_function(name, (), tokens[5:-1])
        else:
            self._declare_parts(command, name, tokens, levels)

    def find(self, name: str) -> Declaration | None:
        """What ``name`` is declared or defined as in the scopes now open."""
        return self._declared.get(name)

    def assert_(self, tokens: Sequence[str], levels: Sequence[int]) -> None:
        """Push the one term that ``tokens`` must be."""
        if not one_term(tokens, levels, 0, len(tokens)):
            raise AdmissionError(Reason.SYNTAX, "an assertion is one term")
        self._push_assertion(self._term(tokens))

    def push(self, count: int) -> None:
        """Open ``count`` scopes."""
        self._limits.hold("depth", len(self._marks) + count)
        mark = (len(self._declared), len(self._sorts.aliases), len(self._assertions))
        self._marks += [mark] * count

    def pop(self, count: int) -> None:
        """Close ``count`` scopes: their declarations and assertions are gone."""
        if count > len(self._marks):
            raise AdmissionError(Reason.SYNTAX, "pop without push")
        if not count:
            return
        declarations, aliases, assertions = self._marks[-count]
        del self._marks[-count:]
        while len(self._assertions) > assertions:
            self._emitted.difference_update(need.command.names[0] for need in self._assertions.pop().needs)
        while len(self._declared) > declarations:
            name, _ = self._declared.popitem()
            self._sorts.forget(name)
        self._sorts.forget_aliases(aliases)

    def query(
        self,
        *,
        metadata: Mapping[str, object],
        timeout_ms: int,
        priority: float,
        witness: Witness | None = None,
    ) -> Query:
        """The question the stack asks now; ``true`` is the target when nothing is asserted."""
        empty = not self._assertions
        if empty:
            self._push_assertion(_TRUE)
        self._replicated += len(self._declared) + len(self._assertions)
        self._limits.hold("replicated", self._replicated)
        symbols = tuple([d.symbol for d in self._declared.values() if d.symbol and not d.defined])
        self._limits.hold("model_bits", sum([value_bits(symbol.sort) for symbol in symbols]))
        declarations = tuple([declaration.command.text for declaration in self._declared.values()])
        *prefix, target = [assertion.level.assertion for assertion in self._assertions]
        size = sum(map(len, declarations)) + sum(map(len, prefix)) + len(target)
        self._replicated_text += size
        self._limits.hold("replicated_text", self._replicated_text)
        query = Query(
            logic=self._logic,
            symbols=symbols,
            declarations=declarations,
            prefix=tuple(prefix),
            target=target,
            witness=witness,
            metadata=metadata,
            timeout_ms=timeout_ms,
            priority=priority,
            id=content_id(self._logic, declarations, prefix, target),
            levels=tuple([assertion.level for assertion in self._assertions]),
            form=form_of(self._logic, self._assertions),
            size=size,
        )
        if empty:
            self._assertions.pop()
        return query

    def _term(self, tokens: Sequence[str], parameters: Sequence[str] = ()) -> Term:
        return self._vocabulary.term(self._sorts.expand(tokens), self._declared, parameters)

    def _push_assertion(self, term: Term) -> None:
        self._limits.hold("assertions", len(self._assertions) + 1)
        needs = self._needs(term)
        below = self._assertions[-1].level.key if self._assertions else ""
        level = chain(below, self._logic, [need.command.text for need in needs], term.text)
        self._emitted.update([need.command.names[0] for need in needs])
        self._assertions.append(Assertion(term, needs, level))

    def _needs(self, term: Term) -> tuple[Declaration, ...]:
        """What ``term`` refers to, directly or not, and no level below declares; in script order."""
        found: dict[str, Declaration] = {}
        todo = list(term.names)
        while todo:
            name = todo.pop()
            declaration = self._declared.get(name)
            if declaration is not None and name not in self._emitted and name not in found:
                found[name] = declaration
                todo += declaration.command.names
        return tuple(sorted(found.values(), key=lambda declaration: declaration.place))

    def _add(self, command: Term, symbol: Symbol | None, *, defined: bool = False) -> None:
        self._declared[command.names[0]] = Declaration(len(self._declared), command, symbol, defined)

    def _declare_sort(self, name: str, tokens: Sequence[str]) -> None:
        self._require_functions(name)
        self._sorts.declare(name, tokens[3] if len(tokens) == 5 else "")
        self._add(Term(spell(tokens), tokens, (name,)), None)

    def _declare_parts(self, command: str, name: str, tokens: Sequence[str], levels: Sequence[int]) -> None:
        """A command with a list of parameters, which ``define-const`` leaves out."""
        parts = items(tokens, levels, 3, len(tokens) - 1)
        if command == "define-const":
            parts.insert(0, (3, 3))
        elif not parts or tokens[3] != "(":
            raise AdmissionError(Reason.SYNTAX, f"{command} {name[:64]} has no list of parameters")
        if len(parts) != (3 if command in ("define-fun", "define-const") else 2):
            raise AdmissionError(Reason.SYNTAX, f"{command} {name[:64]} has too many or too few parts")
        (start, end), *rest = parts
        parameters = items(tokens, levels, start + 1, end - 1)
        if command == "define-sort":
            self._define_sort(name, tokens, parameters, rest[0])
        elif command == "declare-fun":
            self._declare_function(name, [tokens[a:b] for a, b in parameters], tokens[slice(*rest[0])])
        else:
            self._define_function(name, tokens, parameters, rest[0], rest[1])

    def _declare_function(self, name: str, params: Sequence[Sequence[str]], value: Sequence[str]) -> None:
        sorts = [self._sorts.resolve(param) for param in params]
        sort = self._sorts.resolve(value)
        arguments = [token for tokens in sorts for token in tokens]
        if arguments:
            self._require_functions(name)
        symbol = Symbol(name, spell(sort), tuple(map(spell, sorts)))
        tokens = ("(", "declare-fun", name, "(", *arguments, ")", *sort, ")")
        names = (name, *self._sorts.free((*arguments, *sort)))
        self._add(Term(symbol.declaration, tokens, names), symbol)

    def _require_functions(self, name: str) -> None:
        if "UF" not in self._logic:
            raise AdmissionError(Reason.LOGIC, f"{self._logic} has no free functions or sorts: {name[:64]}")

    def _define_sort(
        self, name: str, tokens: Sequence[str], parameters: Sequence[tuple[int, int]], body: tuple[int, int]
    ) -> None:
        if parameters:
            raise AdmissionError(Reason.SYNTAX, "define-sort with parameters is not supported")
        self._sorts.alias(name, tokens[slice(*body)])

    def _define_function(
        self,
        name: str,
        tokens: Sequence[str],
        parameters: Sequence[tuple[int, int]],
        sort: tuple[int, int],
        body: tuple[int, int],
    ) -> None:
        head = ["(", "define-fun", name, "("]
        names: list[str] = []
        sorts: list[tuple[str, ...]] = []
        for start, end in parameters:
            if end - start < 4 or tokens[start] != "(":
                raise AdmissionError(Reason.SYNTAX, f"a parameter of {name[:64]} is not (name sort)")
            names.append(self._vocabulary.name(tokens[start + 1]))
            sorts.append(self._sorts.resolve(tokens[start + 2 : end - 1]))
            head += ("(", names[-1], *sorts[-1], ")")
        if len(set(names)) != len(names):
            raise AdmissionError(Reason.SYMBOL, f"a parameter of {name[:64]} is named twice")
        value = self._sorts.resolve(tokens[slice(*sort)])
        term = self._term(tokens[slice(*body)], names)
        symbol = Symbol(name, spell(value), tuple(map(spell, sorts)))
        free = self._sorts.free([token for part in (*sorts, value) for token in part])
        every = tuple(dict.fromkeys((name, *names, *free, *term.names)))
        text = f"{spell(head)}) {symbol.sort} {term.text})"
        command = Term(text, (*head, ")", *value, *term.tokens, ")"), every)
        self._add(command, symbol, defined=True)
