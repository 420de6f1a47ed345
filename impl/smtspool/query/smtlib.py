"""SMT-LIB scripts in, queries out: one query per ``check-sat``.

This is a security boundary. A command is either understood here or refused by name, and engines only ever
see text that was put together from checked tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from smtspool.errors import AdmissionError, Reason
from smtspool.query.assembler import Assembler
from smtspool.query.lexer import canonical, items, one_term, split
from smtspool.query.limits import DEFAULT, Limits
from smtspool.query.places import locate
from smtspool.query.terms import without_annotations
from smtspool.query.theory import DECLARATIONS, DEFAULT_LOGIC
from smtspool.query.value import DEFAULT_TIMEOUT_MS, Query

__all__ = ["parse_smt2"]

# They shape what a tool prints or how long it thinks, never what a query means, and are dropped.
_OPTIONS = frozenset(
    {
        ":print-success",
        ":produce-models",
        ":produce-assignments",
        ":produce-unsat-cores",
        ":produce-unsat-assumptions",
        ":produce-proofs",
        ":produce-assertions",
        ":interactive-mode",
        ":incremental",
        ":random-seed",
        ":verbosity",
        ":reproducible-resource-limit",
        ":timeout",
        ":tlimit",
        ":tlimit-per",
        ":rlimit",
    }
)
_NUMERAL = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
_DROPPED = frozenset({"set-logic", "set-info", "get-model", "get-value"})  # set-logic was read ahead
_PREAMBLE = frozenset({"set-info", "set-option"})


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
    ``set-logic`` the smallest supported logic is taken that has what the script declares.
    Raises ``AdmissionError``; its reason is ``empty`` when there is no ``check-sat``.
    """
    limits = limits or DEFAULT

    def read(tokens: list[str]) -> tuple[Query, ...]:
        return _read(tokens, limits, metadata or {}, timeout_ms, priority)

    tokens = split(text, limits)
    try:
        return read(canonical(tokens))
    except AdmissionError as error:
        locate(error, text, tokens, read)
        raise


def _read(
    tokens: Sequence[str], limits: Limits, metadata: Mapping[str, object], timeout_ms: int, priority: float
) -> tuple[Query, ...]:
    tokens, levels = without_annotations(tokens, limits)
    commands = _commands(tokens, levels)
    assembler = Assembler(_logic(tokens, commands), limits)
    queries: list[Query] = []
    start = 0
    try:
        for start, end in commands:
            command = tokens[start + 1]
            begin, stop = start + 2, end - 1  # its arguments
            if command in DECLARATIONS:
                assembler.declare(tokens[start:end], levels[start:end])
            elif command == "assert":
                assembler.assert_(tokens[begin:stop], levels[begin:stop])
            elif command == "push":
                assembler.push(_count(tokens[begin:stop]))
            elif command == "pop":
                assembler.pop(_count(tokens[begin:stop]))
            elif command in ("check-sat", "check-sat-assuming"):
                limits.hold("queries", len(queries) + 1)
                assembler.push(1)
                for first, last in _assumptions(tokens, levels, start, end):
                    assembler.assert_(tokens[first:last], levels[first:last])
                queries.append(assembler.query(metadata=metadata, timeout_ms=timeout_ms, priority=priority))
                assembler.pop(1)
            elif command == "set-option":
                _check_option(tokens[begin:stop])
            elif command == "exit":
                break
            elif command not in _DROPPED:
                raise AdmissionError(
                    Reason.COMMAND, f"the command {command[:64]!r} is not allowed", at=command
                )
    except AdmissionError as error:
        if error.at not in tokens[start:end]:  # nothing less than the command is to blame
            error.at = tokens[start]
        raise
    if not queries:
        raise AdmissionError(Reason.EMPTY, "the script has no check-sat, so it asks nothing")
    return tuple(queries)


def _commands(tokens: Sequence[str], levels: Sequence[int]) -> list[tuple[int, int]]:
    """The top-level lists of the script, as half-open token ranges."""
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


def _logic(tokens: Sequence[str], commands: Sequence[tuple[int, int]]) -> str:
    """The argument of ``set-logic``, which comes once and before whatever depends on it."""
    heads = [tokens[start + 1] for start, _ in commands]
    if "set-logic" not in heads:
        return _smallest_logic(tokens)
    at = heads.index("set-logic")
    start, end = commands[at]
    if end - start != 4 or "set-logic" in heads[at + 1 :] or not _PREAMBLE.issuperset(heads[:at]):
        late = commands[heads.index("set-logic", at + 1)][0] if "set-logic" in heads[at + 1 :] else start
        message = "set-logic names one logic, once, before all other commands"
        raise AdmissionError(Reason.SYNTAX, message, at=tokens[late + 1])
    return tokens[start + 2]


def _smallest_logic(tokens: Sequence[str]) -> str:
    arrays = "Array" in tokens
    functions = "declare-sort" in tokens or any(
        token == "declare-fun" and tokens[at + 3 : at + 4] != [")"] for at, token in enumerate(tokens)
    )
    return DEFAULT_LOGIC.replace("_", "_" + "A" * arrays + "UF" * functions)


def _check_option(arguments: Sequence[str]) -> None:
    option = arguments[0] if arguments else ""
    if option not in _OPTIONS:
        raise AdmissionError(Reason.COMMAND, f"the option {option[:64]!r} is not allowed", at=option)


def _count(arguments: Sequence[str]) -> int:
    """The numeral of a push or pop; 1 when it is left out."""
    if not arguments:
        return 1
    if len(arguments) != 1 or _NUMERAL.fullmatch(arguments[0]) is None:
        raise AdmissionError(Reason.SYNTAX, "push and pop take one small numeral", at=arguments[0])
    return int(arguments[0])


def _assumptions(tokens: Sequence[str], levels: Sequence[int], start: int, end: int) -> list[tuple[int, int]]:
    """The literals of a ``check-sat-assuming``; none of a ``check-sat``."""
    if tokens[start + 1] == "check-sat":
        if end - start != 3:
            raise AdmissionError(Reason.SYNTAX, "check-sat takes no argument")
        return []
    if tokens[start + 2] != "(" or not one_term(tokens, levels, start + 2, end - 1):
        raise AdmissionError(Reason.SYNTAX, "check-sat-assuming takes one list of literals")
    return items(tokens, levels, start + 3, end - 2)
