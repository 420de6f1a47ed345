"""smtspool as its users run it: files appear in the spool, answers appear in the store."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from smtspool.query import parse_file, parse_smt2
from smtspool.service import Campaign, Service, Settings
from smtspool.solve import ForkServer, Hedge, HedgePolicy, Portfolio, RaceRules, parse_engine
from smtspool.store import Result, Store

from .calibration import WARM_UP, Calibrated
from .children import cpus, crew, together
from .engines import ENGINES, Task, run_tasks
from .files import fill
from .inputs import Problem
from .measure import Bench, shares

__all__ = ["limit_rate", "open_portfolio", "service_rate"]

DEADLINE_SECONDS = 1800.0
POLL_SECONDS = 0.1  # seldom, not to disturb; answers carry the time of their commit


def service_rate(bench: Bench, problems: Sequence[Calibrated]) -> float:
    """Queries per second and CPU, from the first file in ``incoming/`` to the last committed answer.

    The service has started before. Wrong or missing answers are an error.
    """
    expected = {_query_id(one.problem): one.status for one in problems}
    with bench.directory() as directory:
        campaign = Campaign.create(directory / "campaign")
        fill(directory / "staged", [one.problem for one in problems])
        with Service(campaign, Settings(jobs=cpus())) as service, Store.open(campaign.store) as store:
            (campaign.spool / "incoming" / "warm-up.smt2").write_text(WARM_UP)
            _wait(service, store, 1)
            started = time.time()  # as the store tells when an answer was committed
            for path in sorted((directory / "staged").iterdir()):
                path.rename(campaign.spool / "incoming" / path.name)
            _wait(service, store, 1 + len(expected))
            results = [result for result in store.results() if result.query_id in expected]
    _check(expected, results)
    return len(problems) / (max(result.completed for result in results) - started) / cpus()


def _query_id(problem: Problem) -> str:
    (query,) = parse_file(problem.name, problem.data)
    return query.id


def _wait(service: Service, store: Store, results: int) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while store.counts().done < results:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{store.counts()} after {DEADLINE_SECONDS} s; {service.health}")
        time.sleep(POLL_SECONDS)


def _check(expected: Mapping[str, str], results: Sequence[Result]) -> None:
    wrong = {
        result.query_id: (result.answer.status, result.answer.reason)
        for result in results
        if result.answer.status != expected[result.query_id]
    }
    if wrong or len(results) != len(expected):
        raise RuntimeError(f"{len(results)} answers to {len(expected)} queries, wrong among them: {wrong}")


def limit_rate(problems: Sequence[Calibrated], limit_s: float = DEADLINE_SECONDS) -> float:
    """Queries per second and CPU of the bare engines: every CPU works through its share."""
    hands = shares([one.task for one in problems], cpus())
    warm_up = [Task(WARM_UP, engine, engine) for engine in ENGINES]
    with crew(run_tasks, warm_up, len(hands)) as children:
        return len(problems) / together(children, hands, limit_s) / cpus()


@contextmanager
def open_portfolio(engines: Sequence[str], hedge: Hedge = Hedge.LEARNT) -> Iterator[Portfolio]:
    """The portfolio of a worker that may use every CPU; its engines have started and are warm."""
    with ExitStack() as stack:
        servers = [stack.enter_context(ForkServer(parse_engine(engine))) for engine in engines]
        rules, policy = RaceRules(cpus=cpus()), HedgePolicy(hedge)
        portfolio = stack.enter_context(Portfolio(servers, rules=rules, policy=policy))
        (warm_up,) = parse_smt2(WARM_UP)
        portfolio.solve(warm_up, timeout_s=30.0)
        yield portfolio
