"""How fast a race returns once it is won, how soon the loser's engine is ready, what is left behind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from smtspool.actions import Step, observed_by
from smtspool.query import parse_file
from smtspool.solve import Hedge

from ..inputs import chains
from ..measure import Bar, Bench, Row, Sample
from ..product import open_portfolio

ENGINES = ("bitwuzla", "cvc5")  # on these queries the second is far slower and nearly always cut off
LIMIT_SECONDS = 20.0
DEEP = 20  # assertions; below that the race may be over before the loser has begun


class Watch:
    """Takes the times of one race after the other; an observer of the protocol's steps."""

    def __init__(self) -> None:
        self.returns: list[float] = []  # milliseconds from the winner's settled answer to the return
        self.ready: list[float] = []  # milliseconds until a cancelled engine could be sent the next request
        self._lock = threading.Lock()
        self._settled: float | None = None
        self._over = False
        self._registered: dict[object, float] = {}
        self._cold: set[object] = set()

    def before(self, step: Step) -> None:
        now = time.perf_counter()
        with self._lock:
            if step.name in ("CancelFuture", "CancelSolver"):
                self._over = True
            solver = step.params.get("solver")
            if step.name == "Exchange" and solver in self._cold:
                self._cold.discard(solver)
                self.ready.append((now - self._registered[solver]) * 1e3)

    def after(self, step: Step) -> None:
        now = time.perf_counter()
        with self._lock:
            solver = step.params.get("solver")
            if step.name == "Settle" and not self._over:
                self._settled = now
            if step.name == "Register":
                self._registered[solver] = now
            if step.name == "Retire":
                self._cold.add(solver)

    def returned(self) -> None:
        """The race is back."""
        now = time.perf_counter()
        with self._lock:
            if self._over and self._settled is not None:
                self.returns.append((now - self._settled) * 1e3)
            self._settled, self._over = None, False


def run(bench: Bench) -> Iterator[Row]:
    wanted = bench.choose(5, 1_000, 10_000)
    queries = [
        query
        for problem in chains(bench, 10)
        for query in parse_file(problem.name, problem.data)
        if len(query.levels) > DEEP
    ]
    before = _belongings()
    watch, cancelled, races = Watch(), 0, 0
    with open_portfolio(ENGINES, Hedge.TOGETHER) as portfolio, observed_by(watch):
        # A loser is timed only if it had begun: in a few races there may be none.
        while (cancelled < wanted or not watch.ready) and races < 10 * wanted:
            answer = portfolio.solve(queries[races % len(queries)], timeout_s=LIMIT_SECONDS)
            watch.returned()
            races += 1
            cancelled += any(attempt.cancelled for attempt in answer.attempts)
            if races % 50 == 0:
                bench.say(f"{cancelled}/{wanted} cancelled")
    left = {name: _belongings()[name] - count for name, count in before.items()}
    note = f"{cancelled} losers cancelled in {races} races of {' and '.join(ENGINES)}"
    returns, ready = Sample(tuple(watch.returns)), Sample(tuple(watch.ready))
    for what, sample, median, tail in (
        ("race returns after its answer", returns, Bar("<", 1), Bar("<", 10)),
        ("cancelled engine ready", ready, Bar("<", 10), None),
    ):
        yield Row.value(f"{what}, median", "ms", sample.median, sample, median, note)
        yield Row.value(f"{what}, P99", "ms", sample.quantile(0.99), sample, tail, note)
    for name, count in left.items():
        yield Row.value(f"{name} left behind", "", count, Sample((count,)), Bar("≤", 0), note)


def _belongings() -> dict[str, int]:
    return {
        "processes": _descendants(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
    }


def _descendants() -> int:
    """Processes below this one, zombies too."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except (FileNotFoundError, ProcessLookupError):  # it ended while we looked
            continue
        parents[int(stat.parent.name)] = int(text.rpartition(")")[2].split()[1])
    found, seen = [os.getpid()], 0
    while found:
        parent = found.pop()
        children = [pid for pid, above in parents.items() if above == parent]
        seen += len(children)
        found += children
    return seen
