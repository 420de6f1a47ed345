"""The three bundled engines, asked in this process through their own parsers. For tiny queries only."""

from __future__ import annotations

from collections.abc import Callable

import bitwuzla
import cvc5
import z3


def ask_bitwuzla(text: str) -> str:
    parser = bitwuzla.Parser(bitwuzla.TermManager(), bitwuzla.Options())
    parser.parse(text.replace("(check-sat)", ""), True, False)
    return str(parser.bitwuzla().check_sat()).lower()


def ask_z3(text: str) -> str:
    solver = z3.Solver(ctx=z3.Context())
    solver.from_string(text.replace("(check-sat)", ""))
    return str(solver.check())


def ask_cvc5(text: str) -> str:
    manager = cvc5.TermManager()
    solver, symbols = cvc5.Solver(manager), cvc5.SymbolManager(manager)
    solver.setOption("arrays-exp", "true")
    parser = cvc5.InputParser(solver, symbols)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said += command.invoke(solver, symbols)
    return said.strip()


ENGINES: dict[str, Callable[[str], str]] = {"bitwuzla": ask_bitwuzla, "z3": ask_z3, "cvc5": ask_cvc5}
