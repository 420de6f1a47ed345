"""Puts queries together from checked declarations and assertions, with the scopes of push and pop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from sys import intern

from smtspool.errors import AdmissionError, Reason
from smtspool.query.identity import (
    Assertion,
    Declaration,
    Term,
    chain,
    content_id,
    form_of,
    form_piece,
)
from smtspool.query.lexer import items, one_term, spell, tokenize
from smtspool.query.limits import Limits
from smtspool.query.memory import Checked, Node, memory_of
from smtspool.query.operators import BOOL, DIALECT
from smtspool.query.sorts import Sort, Sorts, value_bits
from smtspool.query.terms import Vocabulary, without_annotations
from smtspool.query.theory import DECLARATIONS
from smtspool.query.value import Query, Symbol, Witness

__all__ = ["Assembler"]

_TRUE = Term("true", ("true",), (), BOOL)


class Assembler:
    """The assertion stack of one script or envelope.

    Commands are given as their tokens with the depth after each token, outer parentheses included; terms as
    their tokens alone.
    Every method raises ``AdmissionError`` for what a producer got wrong.
    """

    def __init__(self, logic: str, limits: Limits) -> None:
        self._logic = logic
        self._limits = limits
        self._sorts = Sorts(logic, limits)
        self._vocabulary = Vocabulary(logic, limits, self._sorts)
        self._memory = memory_of(logic, limits)
        self._declared: dict[str, Declaration] = {}
        self._numbers: dict[str, str] = {}  # of the names in the assertions on the stack
        self._assertions: list[Assertion] = []
        self._emitted: set[str] = set()  # names that some level on the stack declares
        self.keeps_declarations = False  # when scopes are closed: the option :global-declarations
        self._scopes = 0  # open
        self._marks: list[tuple[int, int, int, int]] = []  # scopes opened at once; what stood below them
        self._written = 0
        self._asked = [0, 0]  # declarations and assertions of all queries, and characters of their texts
        self._needed = [0, 0]  # declarations that assertions were the first to need, likewise

    def anew(self, logic: str) -> Assembler:
        """An empty stack of ``logic``, which continues the counts of this one against the limits."""
        other = Assembler(logic, self._limits)
        other._written, other._asked, other._needed = self._written, self._asked, self._needed
        other._sorts.expansion = self._sorts.expansion
        return other

    def declare(self, tokens: Sequence[str], levels: Sequence[int]) -> None:
        """One command of the ``declare-`` or ``define-`` kind."""
        if len(tokens) < 4:
            raise AdmissionError(Reason.SYNTAX, f"{tokens[1]} is incomplete", at=tokens[1])
        name = self._vocabulary.name(tokens[2])
        self._check_free(name)
        command = tokens[1]
        if command == "declare-sort":
            self._declare_sort(name, tokens)
        elif command == "declare-const":
            self._declare_constant(name, tokens[3:-1])
        elif command == "declare-fun" and tokens[3:5] == ["(", ")"]:
            self._declare_constant(name, tokens[5:-1])
        else:
            self._declare_parts(command, name, tokens, levels)

    def declare_text(self, source: str, tokens: Sequence[str] | None = None) -> None:
        """One command of the ``declare-`` or ``define-`` kind, as its text.

        If ``tokens`` are given, they are read instead of the text, and the result is not cached.
        """
        known = self._memory.symbols.get(source) if tokens is None else None
        if known is not None:
            self._check_free(known.names[0])
            self._add(known.text, known.tokens, known.names, known.symbol)
            return
        command, levels = self._one_term(source, tokens)
        if len(command) < 2 or command[1] not in DECLARATIONS:
            raise AdmissionError(Reason.COMMAND, f"{source[:64]!r} is not a declaration or definition")
        self.declare(command, levels)
        if tokens is not None:
            return
        new = self._declared.get(command[2])
        if new and new.symbol and not new.defined and len(new.names) == 1 and not self._sorts.aliases:
            self._memory.symbols.put(source, new, len(source))

    def find(self, name: str) -> Declaration | None:
        """What ``name`` is declared or defined as in the scopes now open."""
        return self._declared.get(name)

    def assert_(self, tokens: Sequence[str]) -> None:
        """Push an assertion. ``tokens`` must be one term; their parentheses match."""
        self._push_assertion(self._term(tokens))

    def assert_text(self, source: str, tokens: Sequence[str] | None = None) -> None:
        """Push an assertion. ``source`` must be one term; ``tokens`` as in :meth:`declare_text`."""
        self._push_assertion(self.term_text(source, tokens))

    def term_text(self, source: str, tokens: Sequence[str] | None = None) -> Term:
        """``source`` as one term of any sort; ``tokens`` as in :meth:`declare_text`."""
        if tokens is not None:
            return self._term(self._one_term(source, tokens)[0])
        known = self._memory.terms.get(source)
        if known is None or self._sorts.aliases or not self._vocabulary.covers(known.required):
            found, _ = self._one_term(source)
            term = self._term(tuple(map(intern, found)))
            # A dialect operator is not in the term once it is replaced, but it was read as such only because
            # the script declares nothing under its name. So the cached term depends on that too.
            known = Checked(term, self._vocabulary.visible((*term.names, *DIALECT.keys() & found)))
            if not self._sorts.aliases:
                self._memory.terms.put(source, known, len(source))
        return known.term

    def push(self, count: int) -> None:
        """Open ``count`` scopes."""
        self._limits.hold("depth", self._scopes + count)
        if count:
            self._scopes += count
            below = (len(self._declared), len(self._sorts.aliases), len(self._assertions))
            self._marks.append((count, *below))

    def pop(self, count: int) -> None:
        """Close ``count`` scopes: their declarations and assertions are gone."""
        if count > self._scopes:
            raise AdmissionError(Reason.SYNTAX, "pop without push")
        if not count:
            return
        self._scopes -= count
        while count > 0:
            opened, declarations, aliases, assertions = self._marks.pop()
            if opened > count:
                self._marks.append((opened - count, declarations, aliases, assertions))
            count -= opened
        self._cut(declarations, aliases, assertions)

    def reset_assertions(self) -> None:
        """Close all scopes; assertions are gone, and so are declarations unless they are kept."""
        self._scopes = 0
        self._marks.clear()
        self._cut(0, 0, 0)

    def value(self, tokens: Sequence[str]) -> str:
        """The text of ``tokens``, which must be one term over the declarations now in scope."""
        text = self._term(tokens).text
        self._write(text)
        return text

    def _cut(self, declarations: int, aliases: int, assertions: int) -> None:
        """Remove all but the first so many of each."""
        while len(self._assertions) > assertions:
            self._pop_assertion()
        if self.keeps_declarations:
            return
        while len(self._declared) > declarations:
            name, _ = self._declared.popitem()
            self._vocabulary.forget(name)
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
        """The query of the stack as it is; its target is ``true`` when nothing is asserted."""
        empty = not self._assertions
        if empty:
            self._push_assertion(_TRUE)
        symbols = tuple([d.symbol for d in self._declared.values() if d.symbol and not d.defined])
        self._limits.hold("model_bits", sum([value_bits(symbol.sort) for symbol in symbols]))
        declarations = tuple([declaration.text for declaration in self._declared.values()])
        *prefix, target = [assertion.level.assertion for assertion in self._assertions]
        size = sum(map(len, declarations)) + sum(map(len, prefix)) + len(target)
        self._replicate(self._asked, len(self._declared) + len(self._assertions), size)
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
            form=form_of(self._logic, self._assertions, self._numbers),
            size=size,
        )
        if empty:
            self._pop_assertion()
        return query

    def _check_free(self, name: str) -> None:
        if name in self._declared or name in self._sorts.aliases:
            raise AdmissionError(Reason.SYMBOL, f"{name[:64]!r} is declared twice", at=name)
        if len(self._declared) >= self._limits.declarations:
            self._limits.hold("declarations", len(self._declared) + 1)

    def _one_term(
        self, source: str, tokens: Sequence[str] | None = None
    ) -> tuple[Sequence[str], Sequence[int]]:
        if tokens is None:
            tokens = tokenize(source, self._limits)
        tokens, levels = without_annotations(tokens, self._limits)
        if not one_term(tokens, levels, 0, len(tokens)):
            raise AdmissionError(Reason.SYNTAX, f"{source[:64]!r} is not exactly one term")
        return tokens, levels

    def _term(self, tokens: Sequence[str], parameters: Mapping[str, str] | None = None) -> Term:
        return self._vocabulary.term(self._sorts.expand(tokens), parameters)

    def _push_assertion(self, term: Term) -> None:
        if term.sort != BOOL:
            raise AdmissionError(
                Reason.SORT, f"an assertion is a Bool, not {term.sort[:64]}", at=term.tokens[0]
            )
        if len(self._assertions) >= self._limits.assertions:
            self._limits.hold("assertions", len(self._assertions) + 1)
        self._write(term.text)
        needs = () if self._emitted.issuperset(term.names) else self._needs(term)
        if needs:
            self._emitted.update([need.names[0] for need in needs])
            self._replicate(self._needed, len(needs), sum([len(need.text) for need in needs]))
        numbered = len(self._numbers)
        node = self._node(needs, term)
        for name in node.names:
            self._numbers.setdefault(name, f"${len(self._numbers)}")
        self._assertions.append(Assertion(needs, node.level, node.form, numbered))

    def _write(self, text: str) -> None:
        self._written += len(text)
        if self._written > self._limits.written:
            self._limits.hold("written", self._written)

    def _replicate(self, total: list[int], count: int, characters: int) -> None:
        """Count what each query repeats: a short script can ask many queries over the same assertions."""
        limits = self._limits
        total[0] += count
        total[1] += characters
        if total[0] > limits.replicated or total[1] > limits.replicated_text:
            limits.hold("replicated", total[0])
            limits.hold("replicated_text", total[1])

    def _node(self, needs: Sequence[Declaration], term: Term) -> Node:
        """Level and form of an assertion, cached by the key of the level below, which decides them."""
        below = self._assertions[-1].level.key if self._assertions else ""
        texts = tuple([need.text for need in needs])
        node = self._memory.nodes.get((below, term.text, texts))
        if node is None:
            level = chain(below, self._logic, texts, term.text)
            numbered = len(self._numbers)
            form = form_piece(needs, term, self._numbers)
            newest = islice(reversed(self._numbers), len(self._numbers) - numbered)
            node = Node(level, form, tuple(newest)[::-1])
            self._memory.nodes.put((below, term.text, texts), node, len(term.text) + sum(map(len, texts)))
        return node

    def _pop_assertion(self) -> None:
        assertion = self._assertions.pop()
        self._emitted.difference_update([need.names[0] for need in assertion.needs])
        while len(self._numbers) > assertion.numbered:
            self._numbers.popitem()

    def _needs(self, term: Term) -> tuple[Declaration, ...]:
        """Declarations that ``term`` needs, directly or not, and that no level below has; in script order."""
        declared, emitted = self._declared, self._emitted
        todo = [name for name in term.names if name in declared and name not in emitted]
        found = dict.fromkeys(todo)
        for name in todo:
            for also in declared[name].names[1:]:
                if also in declared and also not in emitted and also not in found:
                    found[also] = None
                    todo.append(also)
        return tuple(sorted([declared[name] for name in found]))

    def _add(
        self,
        text: str,
        tokens: Sequence[str],
        names: tuple[str, ...],
        symbol: Symbol | None,
        *,
        defined: bool = False,
    ) -> None:
        self._write(text)
        name = names[0]
        self._declared[name] = Declaration(len(self._declared), text, tokens, names, symbol, defined)
        self._vocabulary.add(name, symbol)

    def _declare_sort(self, name: str, tokens: Sequence[str]) -> None:
        self._require_functions(name)
        self._sorts.declare(name, tokens[3] if len(tokens) == 5 else "")
        self._add(spell(tokens), tokens, (name,), None)

    def _declare_parts(self, command: str, name: str, tokens: Sequence[str], levels: Sequence[int]) -> None:
        """A command with a list of parameters, which ``define-const`` leaves out."""
        parts = items(tokens, levels, 3, len(tokens) - 1)
        if command == "define-const":
            parts.insert(0, (3, 3))
        elif not parts or tokens[3] != "(":
            raise AdmissionError(
                Reason.SYNTAX, f"{command} {name[:64]} has no list of parameters", at=tokens[2]
            )
        if len(parts) != (3 if command in ("define-fun", "define-const") else 2):
            raise AdmissionError(
                Reason.SYNTAX, f"{command} {name[:64]} has too many or too few parts", at=tokens[2]
            )
        (start, end), *rest = parts
        parameters = items(tokens, levels, start + 1, end - 1)
        if command == "define-sort":
            self._define_sort(name, tokens, parameters, rest[0])
        elif command == "declare-fun":
            self._declare_function(name, [tokens[a:b] for a, b in parameters], tokens[slice(*rest[0])])
        else:
            self._define_function(name, tokens, parameters, rest[0], rest[1])

    def _declare_constant(self, name: str, value: Sequence[str]) -> None:
        sort = self._sorts.resolve(value)
        symbol = Symbol(name, sort.text)
        tokens = ("(", "declare-fun", name, "(", ")", *sort.tokens, ")")
        self._add(symbol.declaration, tokens, (name, *sort.free), symbol)

    def _declare_function(self, name: str, params: Sequence[Sequence[str]], value: Sequence[str]) -> None:
        sorts = [self._sorts.resolve(param) for param in params]
        sort = self._sorts.resolve(value)
        if sorts:
            self._require_functions(name)
        symbol = Symbol(name, sort.text, tuple([param.text for param in sorts]))
        arguments = [token for param in sorts for token in param.tokens]
        tokens = ("(", "declare-fun", name, "(", *arguments, ")", *sort.tokens, ")")
        free = [used for part in (*sorts, sort) for used in part.free]
        self._add(symbol.declaration, tokens, (name, *free), symbol)

    def _require_functions(self, name: str) -> None:
        if "UF" not in self._logic:
            raise AdmissionError(
                Reason.LOGIC, f"{self._logic} has no free functions or sorts: {name[:64]}", at=name
            )

    def _define_sort(
        self, name: str, tokens: Sequence[str], parameters: Sequence[tuple[int, int]], body: tuple[int, int]
    ) -> None:
        if parameters:
            raise AdmissionError(Reason.SYNTAX, "define-sort with parameters is not supported", at=name)
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
        given: dict[str, Sort] = {}
        for start, end in parameters:
            if end - start < 4 or tokens[start] != "(":
                raise AdmissionError(
                    Reason.SYNTAX, f"a parameter of {name[:64]} is not (name sort)", at=tokens[start]
                )
            parameter = self._vocabulary.name(tokens[start + 1])
            if parameter in given:
                raise AdmissionError(
                    Reason.SYMBOL, f"a parameter of {name[:64]} is named twice", at=tokens[start + 1]
                )
            given[parameter] = self._sorts.resolve(tokens[start + 2 : end - 1])
            head += ("(", parameter, *given[parameter].tokens, ")")
        value = self._sorts.resolve(tokens[slice(*sort)])
        term = self._term(tokens[slice(*body)], {parameter: of.text for parameter, of in given.items()})
        if term.sort != value.text:
            raise AdmissionError(
                Reason.SORT,
                f"the body of {name[:64]} is of sort {term.sort[:64]}, not {value.text[:64]}",
                at=tokens[body[0]],
            )
        symbol = Symbol(name, value.text, tuple([of.text for of in given.values()]))
        free = [used for part in (*given.values(), value) for used in part.free]
        every = tuple(dict.fromkeys((name, *given, *free, *term.names)))
        text = f"{spell(head)}) {symbol.sort} {term.text})"
        self._add(text, (*head, ")", *value.tokens, *term.tokens, ")"), every, symbol, defined=True)
