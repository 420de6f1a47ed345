"""One module per figure. Each has a docstring whose first line is its title, and ``run(bench)``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from ..measure import Bench, Row

__all__ = ["ROWS", "Benchmark"]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Imported when it runs, so that nothing is loaded that nobody measures."""

    module: str
    title: str

    def run(self, bench: Bench) -> Iterator[Row]:
        found: Iterator[Row] = import_module(f".{self.module}", __name__).run(bench)
        return found


ROWS = {
    "admission": Benchmark("admission", "durable admission against bare reading, inserting and renaming"),
    "queues": Benchmark("queues", "durable admission against litequeue, persist-queue and huey"),
    "small": Benchmark("small", "small queries, from file to committed answer, against the bare engines"),
    "repeats": Benchmark("repeats", "the same with 63 % repeats up to names, where reuse must pay"),
    "cold": Benchmark("cold", "the same against one z3 process per query"),
    "pysmt": Benchmark("pysmt", "the same against the portfolio of pySMT"),
    "chains": Benchmark("chains", "path prefixes that grow by one, against the engines without reuse"),
    "hard": Benchmark("hard", "hard mixed queries against the best engine of each"),
    "cancellation": Benchmark("cancellation", "how fast a race returns, and what it leaves behind"),
    "queue": Benchmark("queue", "claim, complete and status on a full store against a small one"),
    "profile": Benchmark("profile", "value profiles: recovery by replay, and what probes gain and cost"),
    "qualification": Benchmark("qualification", "proving locks between masters, against bare MPI messages"),
    "start": Benchmark("start", "CPU time of --help, status and solve of one small query"),
    "actions": Benchmark("actions", "a protocol step that nobody observes"),
}
