"""Which engine is fastest on which problem, and which other one checks its models fastest: for the limit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from .children import Child, Overrun
from .engines import ENGINES, Step, Task, Verdict, decide, pinned
from .inputs import Problem
from .measure import Bench

__all__ = ["Calibrated", "calibrate", "engine_child", "solo"]

KILL_AFTER = 2.0  # times the limit an engine was told
WARM_UP = "(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= x #x01))(check-sat)"


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A problem that somebody answered in time, and the limit's task for it."""

    problem: Problem
    status: str
    task: Task


def engine_child(engine: str) -> Child:
    """A process with one engine, imported and warm; answers :class:`Step` with :class:`Verdict`."""
    return Child(decide, Step(engine, WARM_UP, model=True))


def solo(child: Child, step: Step) -> Verdict:
    """One answer; an engine that does not stop itself is killed, and that is an ``unknown``."""
    try:
        verdict: Verdict = child.ask(step, step.limit_s * KILL_AFTER + 0.5)
    except (Overrun, EOFError):
        return Verdict("unknown", None, step.limit_s, step.limit_s)
    return verdict


def calibrate(bench: Bench, problems: Sequence[Problem], limit_s: float = 1.0) -> list[Calibrated]:
    """Time every engine on one problem of every family, once a run; leave out what nobody answers in time."""
    known = bench.calibrated
    with ExitStack() as stack:
        children = {engine: stack.enter_context(engine_child(engine)) for engine in ENGINES}
        for number, problem in enumerate(problems):
            if number % 20 == 0:
                bench.say(f"calibrating: {number}/{len(problems)}")
            if problem.family not in known:
                known[problem.family] = _best(children, problem, limit_s)
    return [
        Calibrated(problem, best[0], Task(problem.script, *best[1:]))
        for problem in problems
        if (best := known[problem.family]) is not None
    ]


def _best(children: dict[str, Child], problem: Problem, limit_s: float) -> tuple[str, str, str] | None:
    verdicts = {
        engine: solo(child, Step(engine, problem.script, True, limit_s)) for engine, child in children.items()
    }
    definite = {engine: verdict for engine, verdict in verdicts.items() if verdict.definite}
    if not definite:
        return None
    if len({verdict.status for verdict in definite.values()}) > 1:
        raise RuntimeError(f"the engines disagree on {problem.name}")
    solver = min(definite, key=lambda engine: definite[engine].wall_s)
    verdict = definite[solver]
    if verdict.status == "unsat":
        return "unsat", solver, solver
    check = pinned(problem.script, verdict.model or {})
    others = {e: solo(c, Step(e, check, False, limit_s)) for e, c in children.items() if e != solver}
    confirming = [engine for engine, verdict in others.items() if verdict.status == "sat"]
    if not confirming:
        return None
    return "sat", solver, min(confirming, key=lambda engine: others[engine].wall_s)
