"""Hard mixed queries against the best engine of each (the virtual best engine), and CPU time.

PAR-2: seconds to a definite answer, or twice the limit. Every engine gets each query alone, fresh, in a warm
process; the race gets the same CPUs. Our time includes the verification of models.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence

from smtspool.query import Query, parse_file

from ..calibration import engine_child, solo
from ..engines import ENGINES, Step, Verdict
from ..inputs import Problem, hard
from ..measure import Bench, Row, Sample, at_most
from ..product import open_portfolio


def run(bench: Bench) -> Iterator[Row]:
    limit_s = bench.choose(0.2, 2.0, 20.0)
    problems = hard(bench, bench.choose(3, 40, None))
    verdicts = {engine: _alone(bench, engine, problems, limit_s) for engine in ENGINES}
    best = [
        min(_par2(verdicts[engine][number], limit_s) for engine in ENGINES) for number in range(len(problems))
    ]
    single = {engine: sum(verdict.cpu_s for verdict in found) for engine, found in verdicts.items()}
    par2 = {engine: sum(_par2(v, limit_s) for v in found) for engine, found in verdicts.items()}
    favourite = min(par2, key=lambda engine: par2[engine])
    ours, cpu_s, solved = _raced(bench, problems, limit_s)
    note = (
        f"{len(problems)} queries, {limit_s:g} s each; answered: smtspool {solved}, "
        + ", ".join(f"{engine} {sum(v.definite for v in found)}" for engine, found in verdicts.items())
        + "; PAR-2: "
        + ", ".join(f"{engine} {seconds:.1f}" for engine, seconds in par2.items())
    )
    once = Sample
    yield Row.ratio(
        "hard queries, PAR-2", "s", once((ours,)), "virtual best", once((sum(best),)), at_most(1.3), note
    )
    yield Row.ratio(
        "hard queries, CPU time",
        "s",
        once((cpu_s,)),
        f"{favourite}, the best alone",
        once((single[favourite],)),
        at_most(1.2),
        note,
    )


def _par2(verdict: Verdict, limit_s: float) -> float:
    return verdict.wall_s if verdict.definite and verdict.wall_s <= limit_s else 2 * limit_s


def _alone(bench: Bench, engine: str, problems: Sequence[Problem], limit_s: float) -> list[Verdict]:
    with engine_child(engine) as child:
        verdicts = []
        for number, problem in enumerate(problems):
            bench.say(f"{engine} alone: {number}/{len(problems)}")
            verdicts.append(solo(child, Step(engine, problem.script, model=True, limit_s=limit_s)))
        return verdicts


def _raced(bench: Bench, problems: Sequence[Problem], limit_s: float) -> tuple[float, float, int]:
    """PAR-2, CPU seconds of service and helpers, and how many were answered."""
    queries = [_query(problem) for problem in problems]
    # What an engine's start costs is paid before the first query and paid by nobody else here.
    idle = _cpu_of([], bench, limit_s)[1]
    times, cpu_s, solved = _cpu_of(queries, bench, limit_s)
    return times, cpu_s - idle, solved


def _query(problem: Problem) -> Query:
    (query,) = parse_file(problem.name, problem.data)
    return query


def _cpu_of(queries: Sequence[Query], bench: Bench, limit_s: float) -> tuple[float, float, int]:
    before = _cpu_seconds()
    total, solved = 0.0, 0
    with open_portfolio(tuple(ENGINES)) as portfolio:
        for number, query in enumerate(queries):
            bench.say(f"racing: {number}/{len(queries)}")
            started = time.perf_counter()
            answer = portfolio.solve(query, timeout_s=limit_s)
            taken = time.perf_counter() - started
            definite = answer.status.definite and not answer.at_limit
            solved += definite
            total += taken if definite else 2 * limit_s
    return total, _cpu_seconds() - before, solved


def _cpu_seconds() -> float:
    """Of this process and of all it waited for: fork servers pass on what their helpers used."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)
