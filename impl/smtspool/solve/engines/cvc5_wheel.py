"""cvc5, through its own parser and command objects."""

from __future__ import annotations

import cvc5

from ..spec import EngineSpec
from .base import Engine, EngineError
from .text import TextSession

__all__ = ["Cvc5Engine"]


class Cvc5Engine(Engine):
    def __init__(self, spec: EngineSpec) -> None:
        self._options = tuple((key.removeprefix(":"), value) for key, value in spec.options)

    def open(self, *, incremental: bool) -> Cvc5Session:
        manager = cvc5.TermManager()
        solver = cvc5.Solver(manager)
        try:
            solver.setOption("produce-models", "true")
            solver.setOption("arrays-exp", "true")  # constant arrays, which models are made of
            solver.setOption("incremental", "true" if incremental else "false")
            for key, value in self._options:
                solver.setOption(key, value)
        except RuntimeError as error:
            raise EngineError(str(error)) from error
        return Cvc5Session(solver, cvc5.SymbolManager(manager))


class Cvc5Session(TextSession):
    def __init__(self, solver: cvc5.Solver, symbols: cvc5.SymbolManager) -> None:
        self._solver = solver
        self._symbols = symbols
        self._parser = cvc5.InputParser(solver, symbols)

    def run(self, commands: str) -> str:
        printed = []
        try:
            self._parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, commands, "query")
            while not (command := self._parser.nextCommand()).isNull():
                printed.append(str(command.invoke(self._solver, self._symbols)))
        except RuntimeError as error:
            raise EngineError(str(error)) from error
        text = "".join(printed)
        if text.startswith("(error"):
            raise EngineError(text.strip())
        return text

    def limit(self, timeout_ms: int) -> None:
        self._solver.setOption("tlimit-per", str(timeout_ms))
