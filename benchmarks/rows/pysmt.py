"""A set with repeats against the portfolio of pySMT, which races the engines it knows in forked processes.

pySMT has no bitwuzla: its portfolio is z3 and cvc5, two processes a query.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version

from ..calibration import WARM_UP, Calibrated, calibrate
from ..children import cpus, crew, together
from ..inputs import source_name, with_repeats
from ..measure import Bench, Row, at_least, interleaved, shares
from ..product import service_rate

ENGINES = ("z3", "cvc5")
DEADLINE_SECONDS = 900.0


def run(bench: Bench) -> Iterator[Row]:
    against = f"PySMT {version('PySMT')} Portfolio, {' and '.join(ENGINES)}"
    problems = calibrate(bench, with_repeats(bench, bench.choose(15, 1_600, 10_000)))
    sample = bench.random("pysmt").sample(problems, min(len(problems), bench.choose(3, 60, 500)))
    rates = interleaved(
        bench, {"smtspool": lambda: service_rate(bench, problems), "pysmt": lambda: portfolio_rate(sample)}
    )
    what = f"63 % repeats up to names, {source_name(bench)}"
    note = f"PySMT on {len(sample)} of the {len(problems)}, drawn at random; models fetched, not checked"
    yield Row.ratio(what, "q/s", rates["smtspool"], against, rates["pysmt"], at_least(10), note)


def portfolio_rate(problems: Sequence[Calibrated]) -> float:
    """Queries per second and CPU; as many portfolios at a time as have CPUs for their processes."""
    hands = shares([one.problem.script for one in problems], max(1, cpus() // len(ENGINES)))
    with crew(solve_all, [WARM_UP], len(hands)) as children:
        return len(problems) / together(children, hands, DEADLINE_SECONDS) / cpus()


def solve_all(scripts: list[str]) -> float:
    """Answer them one after the other; returns seconds."""
    import multiprocessing
    from io import StringIO

    from pysmt.environment import reset_env
    from pysmt.logics import QF_BV
    from pysmt.smtlib.parser import SmtLibParser
    from pysmt.solvers.portfolio import Portfolio

    multiprocessing.set_start_method("fork", force=True)  # not the spawn of the process it is in: far slower
    started = time.perf_counter()
    for script in scripts:
        environment = reset_env()
        formula = SmtLibParser(environment).get_script(StringIO(script)).get_last_formula()
        with Portfolio(list(ENGINES), environment, QF_BV) as portfolio:
            portfolio.add_assertion(formula)
            if portfolio.solve():
                portfolio.get_model()
    return time.perf_counter() - started
