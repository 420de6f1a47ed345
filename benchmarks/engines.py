"""The engines without smtspool: one process, a fresh solver per query, no durability. The *limit*.

Nothing here is shared with the product. Run it in a :class:`~benchmarks.children.Child`: engines may hang,
and two of three hold the interpreter while they solve.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version

__all__ = ["ENGINES", "Step", "Task", "Verdict", "decide", "pinned", "run_tasks", "versions"]

_DECLARATION = re.compile(
    r"\(declare-(?:fun\s+(\|[^|]*\||[^\s()|]+)\s+\(\s*\)|const\s+(\|[^|]*\||[^\s()|]+))"
    r"\s+(Bool|\(_\s+BitVec\s+(\d+)\))\s*\)"
)
# What is asked through the interface instead, and the version, about which cvc5 prints a complaint.
_LEFT_OUT = re.compile(r"\((?:check-sat|exit|set-info\s+:smt-lib-version\s+[0-9.]+)\s*\)")

Model = dict[str, str]


@dataclass(frozen=True, slots=True)
class Step:
    """One script for one engine; ``limit_s`` is told to the engine, 0 tells it nothing."""

    engine: str
    script: str
    model: bool = False
    limit_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """``status`` is ``sat``, ``unsat``, ``unknown`` or ``refused``; times are of the engine's process."""

    status: str
    model: Model | None = None
    wall_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def definite(self) -> bool:
        return self.status in ("sat", "unsat")


def _bitwuzla(step: Step) -> tuple[str, Model | None]:
    import bitwuzla

    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, step.model)
    if step.limit_s:
        options.set(bitwuzla.Option.TIME_LIMIT_PER, int(step.limit_s * 1000))
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    parser.parse(_LEFT_OUT.sub("", step.script), True, False)
    solver = parser.bitwuzla()
    status = str(solver.check_sat())
    if status != "sat" or not step.model:
        return status, None
    return status, {term.symbol(): str(solver.get_value(term)) for term in parser.get_declared_funs()}


def _z3(step: Step) -> tuple[str, Model | None]:
    import z3

    context = z3.Context()
    solver = z3.SolverFor("QF_BV", ctx=context) if "QF_BV" in step.script else z3.Solver(ctx=context)
    if step.limit_s:
        solver.set("timeout", int(step.limit_s * 1000))
    solver.from_string(step.script)
    status = str(solver.check())
    if status != "sat" or not step.model:
        return status, None
    model = solver.model()
    return status, {symbol.name(): model[symbol].sexpr() for symbol in model.decls() if symbol.arity() == 0}


def _cvc5(step: Step) -> tuple[str, Model | None]:
    import cvc5

    terms = cvc5.TermManager()
    solver = cvc5.Solver(terms)
    if step.model:
        solver.setOption("produce-models", "true")
    if step.limit_s:
        solver.setOption("tlimit-per", str(int(step.limit_s * 1000)))
    symbols = cvc5.SymbolManager(terms)
    parser = cvc5.InputParser(solver, symbols)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, _LEFT_OUT.sub("", step.script), "query")
    while not (command := parser.nextCommand()).isNull():
        complaint = command.invoke(solver, symbols)
        if "(error" in complaint:
            raise RuntimeError(complaint)
    result = solver.checkSat()
    if not result.isSat() or not step.model:
        return "unsat" if result.isUnsat() else "sat" if result.isSat() else "unknown", None
    return "sat", {str(term): str(solver.getValue(term)) for term in symbols.getDeclaredTerms()}


ENGINES: Mapping[str, Callable[[Step], tuple[str, Model | None]]] = {
    "bitwuzla": _bitwuzla,
    "z3": _z3,
    "cvc5": _cvc5,
}
_PACKAGES = {"bitwuzla": "bitwuzla", "z3": "z3-solver", "cvc5": "cvc5"}


def versions() -> dict[str, str]:
    return {engine: version(package) for engine, package in _PACKAGES.items()}


def decide(step: Step) -> Verdict:
    """Ask, and take the time. A script that the engine does not take is ``refused``."""
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        status, model = ENGINES[step.engine](step)
    except Exception:  # noqa: BLE001  every engine has errors of its own
        status, model = "refused", None
    return Verdict(status, model, time.perf_counter() - wall, time.process_time() - cpu)


@dataclass(frozen=True, slots=True)
class Task:
    """What the limit does for one query: solve, and for ``sat`` check the model with another engine."""

    script: str
    solver: str
    verifier: str


def run_tasks(tasks: list[Task]) -> list[str]:
    """The whole job, one query after the other; returns the statuses."""
    statuses = []
    for task in tasks:
        verdict = decide(Step(task.solver, task.script, model=True))
        if verdict.status == "sat":
            check = decide(Step(task.verifier, pinned(task.script, verdict.model or {})))
            if check.status != "sat":
                raise RuntimeError(f"{task.verifier} does not confirm the model of {task.solver}")
        statuses.append(verdict.status)
    return statuses


def pinned(script: str, model: Model) -> str:
    """The script with every declared symbol defined as its value in the model."""

    def define(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        zero = "false" if found[3] == "Bool" else f"(_ bv0 {found[4]})"
        return f"(define-fun {name} () {found[3]} {model.get(name, zero)})"

    return _DECLARATION.sub(define, script)
