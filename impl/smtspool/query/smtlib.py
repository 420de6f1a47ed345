"""SMT-LIB scripts in, queries out: one query per ``check-sat``.

This is a security boundary. A command is either understood here or refused by name, and engines only ever
see text that was put together from checked tokens.

A text may hold several scripts, each up to its ``exit``, and a script begins anew at ``reset``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from smtspool.errors import AdmissionError, Reason
from smtspool.query.assembler import Assembler
from smtspool.query.lexer import canonical, items, one_term, split
from smtspool.query.limits import DEFAULT, Limits
from smtspool.query.options import Effect, effect_of
from smtspool.query.places import locate
from smtspool.query.terms import without_annotations
from smtspool.query.theory import COMMANDS, DECLARATIONS, DEFAULT_LOGIC
from smtspool.query.value import DEFAULT_TIMEOUT_MS, Query

__all__ = ["EVERYTHING", "parse_smt2", "smallest_logic"]

_NUMERAL = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
EVERYTHING = frozenset({"ALL", "ALL_SUPPORTED"})  # logics for which the smallest one that fits is taken
_PRINTING = frozenset(
    {
        "echo",
        "get-assertions",
        "get-assignment",
        "get-info",
        "get-model",
        "get-option",
        "get-proof",
        "get-unsat-assumptions",
        "get-unsat-core",
        "set-info",
    }
)
_PREAMBLE = _PRINTING | {"set-option"}
_CHECKS = frozenset({"check-sat", "check-sat-assuming", "check-sat-using"})
_ABOUT_ANSWER = _PRINTING | {"get-value", "set-option"}  # what leaves the last answer as it is
_NOTES = 16  # of one script

_Range = tuple[int, int]  # of tokens, half-open


def parse_smt2(
    text: str,
    limits: Limits | None = None,
    *,
    metadata: Mapping[str, object] | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
    priority: float = 0.0,
) -> tuple[Query, ...]:
    """One query per ``check-sat`` of the script, in order; all or none.

    The last active assertion is the target, those before it the prefix; with none active the target is
    ``true``. ``check-sat-assuming`` adds its literals as assertions, for its own question only. Without
    ``set-logic``, or with ``ALL``, the smallest supported logic is taken that has what the script declares.

    Scripts may follow each other, each ended by ``exit``. Text between an ``exit`` and the next command is
    ignored, and so is all text after the last ``exit``.

    Raises ``AdmissionError``; its reason is ``empty`` when there is no ``check-sat``.

    >>> [query] = parse_smt2("(declare-const p Bool)(assert p)(assert (not p))(check-sat)")
    >>> query.logic, query.prefix, query.target
    ('QF_BV', ('p',), '(not p)')
    """
    limits = limits or DEFAULT
    raw = split(text, limits)
    reader = _Reader(limits, metadata or {}, timeout_ms, priority)
    read = 0  # tokens of ``raw``
    for skip, tokens in _scripts(raw):
        try:
            reader.read(canonical(tokens))
        except AdmissionError as error:
            again = _Reader(limits, {}, timeout_ms, priority)
            locate(error, text, tokens, again.read, skip=skip)
            raise
        read = skip + len(tokens)
    if not reader.queries:
        raise AdmissionError(Reason.EMPTY, "the script has no check-sat, so it asks nothing")
    *queries, last = reader.queries
    if read < len(raw) and not _CHECKS.isdisjoint(raw[read:]):
        last = replace(last, notes=(*last.notes, "a check-sat after the last exit is ignored"))
    return (*queries, last)


def _scripts(raw: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The scripts of one text: how many tokens stand before each, and its own, without its ``exit``."""
    start = 0
    for at in _exits(raw):
        yield start, raw[start:at]
        after = range(at + 3, len(raw) - 1)
        start = next((at for at in after if raw[at] == "(" and raw[at + 1] in COMMANDS), len(raw))
    if start == 0:
        yield 0, raw


def _exits(raw: list[str]) -> Iterator[int]:
    """Where ``(exit)`` stands."""
    at = -1
    for _ in range(raw.count("exit")):
        at = raw.index("exit", at + 1)
        if at and raw[at - 1 : at + 2] == ["(", "exit", ")"]:
            yield at - 1


class _Reader:
    """Reads scripts one after the other; all of them together are held to the limits of one."""

    def __init__(
        self, limits: Limits, metadata: Mapping[str, object], timeout_ms: int, priority: float
    ) -> None:
        self.queries: list[Query] = []
        self._limits = limits
        self._metadata = metadata
        self._timeout_ms = timeout_ms
        self._priority = priority
        self._assembler: Assembler | None = None
        self._notes: dict[str, None] = {}
        self._open = False  # the stack has not changed since the last check-sat
        self._values: list[str] = []  # terms of get-value since the last check-sat

    def read(self, tokens: Sequence[str]) -> None:
        """One script in canonical spelling. Raises ``AdmissionError``."""
        tokens, levels = without_annotations(tokens, self._limits)
        commands = _commands(tokens, levels)
        for part in _parts(tokens, commands):
            self._read(tokens, levels, part)

    def _read(self, tokens: Sequence[str], levels: Sequence[int], commands: Sequence[_Range]) -> None:
        """What stands between two resets."""
        self._notes.clear()
        start, end = commands[0][0], commands[-1][1]
        try:
            logic = _logic(tokens, commands)
            assembler = self._assembler.anew(logic) if self._assembler else Assembler(logic, self._limits)
            self._assembler = assembler
            for start, end in commands:
                command = tokens[start + 1]
                begin, stop = start + 2, end - 1  # its arguments
                if self._open and command not in _ABOUT_ANSWER:
                    self._end_answer()
                if command in DECLARATIONS:
                    assembler.declare(tokens[start:end], levels[start:end])
                elif command == "assert":
                    assembler.assert_(tokens[begin:stop])
                elif command == "push":
                    assembler.push(_count(tokens[begin:stop]))
                elif command == "pop":
                    assembler.pop(_count(tokens[begin:stop]))
                elif command in _CHECKS:
                    self._check(assembler, tokens, levels, start, end)
                elif command == "get-value":
                    self._value(assembler, tokens, levels, start, end)
                elif command == "set-option":
                    self._option(assembler, tokens[begin:stop])
                elif command == "reset-assertions":
                    assembler.reset_assertions()
                elif command not in _PRINTING and command != "set-logic":
                    message = f"the command {command[:64]!r} is not allowed"
                    raise AdmissionError(Reason.COMMAND, message, at=command)
            self._end_answer()
        except AdmissionError as error:
            if error.at not in tokens[start:end]:  # no token of the command is named, so the command is
                error.at = tokens[start]
            raise

    def _check(
        self, assembler: Assembler, tokens: Sequence[str], levels: Sequence[int], start: int, end: int
    ) -> None:
        self._limits.hold("queries", len(self.queries) + 1)
        if tokens[start + 1] == "check-sat-using":
            self._note("check-sat-using is taken as check-sat: its tactic is dropped")
        assembler.push(1)
        for first, last in _assumptions(tokens, levels, start, end):
            assembler.assert_(tokens[first:last])
        query = assembler.query(metadata=self._metadata, timeout_ms=self._timeout_ms, priority=self._priority)
        assembler.pop(1)
        self.queries.append(query)
        self._open = True

    def _value(
        self, assembler: Assembler, tokens: Sequence[str], levels: Sequence[int], start: int, end: int
    ) -> None:
        """Ask for the values of terms; terms that no answer can have a value for give a note instead."""
        if tokens[start + 2] != "(" or not one_term(tokens, levels, start + 2, end - 1):
            raise AdmissionError(Reason.SYNTAX, "get-value takes one list of terms", at=tokens[start + 2])
        if not self._open:
            self._note("a get-value that follows no check-sat is dropped")
            return
        for first, last in items(tokens, levels, start + 3, end - 2):
            try:
                self._values.append(assembler.value(tokens[first:last]))
            except AdmissionError as error:
                if error.reason is Reason.TOO_LARGE:
                    raise
                self._note(f"get-value: {error.message}")

    def _option(self, assembler: Assembler, arguments: Sequence[str]) -> None:
        effect = effect_of(arguments)
        if effect is Effect.UNKNOWN:
            self._note(f"the option {arguments[0][:64]} is unknown and dropped")
        elif effect is not Effect.NONE:
            assembler.keeps_declarations = effect is Effect.KEEP_DECLARATIONS

    def _note(self, note: str) -> None:
        if len(self._notes) < _NOTES:
            self._notes[note] = None

    def _end_answer(self) -> None:
        if self._open and (self._notes or self._values):
            notes, values = tuple(self._notes), tuple(self._values)
            self.queries[-1] = replace(self.queries[-1], notes=notes, values=values)
        self._open = False
        self._values.clear()


def _commands(tokens: Sequence[str], levels: Sequence[int]) -> list[_Range]:
    """The top-level lists of the script."""
    commands = []
    start = 0
    while start < len(tokens):
        if tokens[start] != "(":
            message = f"{tokens[start][:64]!r} stands outside of any command"
            raise AdmissionError(Reason.SYNTAX, message, at=tokens[start])
        end = levels.index(0, start) + 1
        commands.append((start, end))
        start = end
    return commands


def _parts(tokens: Sequence[str], commands: list[_Range]) -> Iterator[list[_Range]]:
    """The commands of each part between two resets; empty parts are left out."""
    begin = 0
    if "reset" in tokens:
        for at, (start, end) in enumerate(commands):
            if tokens[start + 1 : end] == ["reset", ")"]:
                if commands[begin:at]:
                    yield commands[begin:at]
                begin = at + 1
    if commands[begin:]:
        yield commands[begin:]


def _logic(tokens: Sequence[str], commands: Sequence[_Range]) -> str:
    """The argument of ``set-logic``, which comes once and before whatever depends on it."""
    heads = [tokens[start + 1] for start, _ in commands]
    if "set-logic" not in heads:
        return smallest_logic(tokens, commands)
    at = heads.index("set-logic")
    start, end = commands[at]
    if end - start != 4 or "set-logic" in heads[at + 1 :] or not _PREAMBLE.issuperset(heads[:at]):
        late = commands[heads.index("set-logic", at + 1)][0] if "set-logic" in heads[at + 1 :] else start
        message = "set-logic names one logic, once, before all other commands"
        raise AdmissionError(Reason.SYNTAX, message, at=tokens[late + 1])
    logic = tokens[start + 2]
    return smallest_logic(tokens, commands) if logic in EVERYTHING else logic


def smallest_logic(tokens: Sequence[str], commands: Sequence[_Range]) -> str:
    """The smallest supported logic that has what these ``commands`` declare."""
    arrays = "Array" in tokens[commands[0][0] : commands[-1][1]]
    functions = any(
        tokens[start + 1 : start + 2] == ["declare-sort"]
        or (tokens[start + 1 : start + 2] == ["declare-fun"] and tokens[start + 4 : start + 5] != [")"])
        for start, _ in commands
    )
    return DEFAULT_LOGIC.replace("_", "_" + "A" * arrays + "UF" * functions)


def _count(arguments: Sequence[str]) -> int:
    """The numeral of a push or pop; 1 when it is left out."""
    if not arguments:
        return 1
    if len(arguments) != 1 or _NUMERAL.fullmatch(arguments[0]) is None:
        raise AdmissionError(Reason.SYNTAX, "push and pop take one small numeral", at=arguments[0])
    return int(arguments[0])


def _assumptions(tokens: Sequence[str], levels: Sequence[int], start: int, end: int) -> list[_Range]:
    """The literals of a ``check-sat-assuming``; empty for ``check-sat``."""
    command, first = tokens[start + 1], tokens[start + 2]
    if command == "check-sat":
        if end - start != 3:
            raise AdmissionError(Reason.SYNTAX, "check-sat takes no argument", at=first)
        return []
    if not one_term(tokens, levels, start + 2, end - 1):
        raise AdmissionError(Reason.SYNTAX, f"{command} takes one argument", at=command)
    if command == "check-sat-using":
        return []
    if first != "(":
        raise AdmissionError(Reason.SYNTAX, "check-sat-assuming takes one list of literals", at=first)
    return items(tokens, levels, start + 3, end - 2)
