"""Bitwuzla, through its own parser."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

import bitwuzla
from bitwuzla import BitwuzlaException, Kind, Option, Result

from smtspool.query import Status

from ..spec import EngineSpec
from .base import Engine, EngineError, WantedSymbol

__all__ = ["BitwuzlaEngine"]

_STATUS = {Result.SAT: Status.SAT, Result.UNSAT: Status.UNSAT, Result.UNKNOWN: Status.UNKNOWN}
_VARIABLE = re.compile(r"@bzla\.var_[0-9]+")


class BitwuzlaEngine(Engine):
    def __init__(self, spec: EngineSpec) -> None:
        self._options = [f"--{key.removeprefix(':')}={value}" for key, value in spec.options]

    def open(self, *, incremental: bool) -> BitwuzlaSession:
        options = bitwuzla.Options()
        try:
            options.set(Option.PRODUCE_MODELS, True)
            options.set_args(*self._options)
        except BitwuzlaException as error:
            raise EngineError(str(error)) from error
        return BitwuzlaSession(options)


class BitwuzlaSession:
    ended = False  # a time limit ends the check and not the session

    def __init__(self, options: Any) -> None:
        self._parser: Any = bitwuzla.Parser(bitwuzla.TermManager(), options)
        self._solver: Any = None

    def load(self, commands: str) -> None:
        try:
            self._parser.parse(commands, True, False)
        except BitwuzlaException as error:
            raise EngineError(str(error)) from error

    def push(self) -> None:
        self.load("(push 1)")  # through the parser, which keeps the scopes of symbols

    def pop(self) -> None:
        self.load("(pop 1)")

    def check(self, timeout_ms: int) -> tuple[Status, str | None]:
        # The library's own limit cannot be changed after a solver is made; this one takes no measurable time.
        end = time.monotonic() + timeout_ms / 1000
        self._solver = self._parser.bitwuzla()  # there is none before the logic is set
        self._solver.configure_terminator(lambda: time.monotonic() > end)
        try:
            status = _STATUS[self._solver.check_sat()]
        except BitwuzlaException as error:
            raise EngineError(str(error)) from error
        reason = "timeout" if time.monotonic() > end else "bitwuzla cannot decide it"
        return status, reason if status is Status.UNKNOWN else None

    def values(self, wanted: Sequence[WantedSymbol]) -> dict[str, str]:
        terms = {term.symbol(): term for term in self._parser.get_declared_funs()}
        return {symbol.name: self._value(terms[symbol.name], symbol) for symbol in wanted}

    def close(self) -> None:
        self._solver = self._parser = None

    def _value(self, term: Any, symbol: WantedSymbol) -> str:
        value = self._solver.get_value(term)
        if not symbol.params:
            return str(value.str(16))
        variables = []
        while value.kind() == Kind.LAMBDA:
            *bound, value = value.children()
            variables += [str(variable.str()) for variable in bound]
        names = {variable: f"x!{index}" for index, variable in enumerate(variables)}
        body = _VARIABLE.sub(lambda found: names[found[0]], value.str(16))
        return symbol.function(list(names.values()), body)
