"""Path prefixes that grow by one, against the same engines without reuse."""

from __future__ import annotations

from collections.abc import Iterator

from ..calibration import calibrate
from ..inputs import chains
from ..measure import Bench, Row, at_least, interleaved
from ..product import limit_rate, service_rate


def run(bench: Bench) -> Iterator[Row]:
    problems = calibrate(bench, chains(bench, bench.choose(1, 12, 100))[: bench.choose(20, 1_000, 10_000)])
    rates = interleaved(
        bench, {"smtspool": lambda: service_rate(bench, problems), "fresh": lambda: limit_rate(problems)}
    )
    note = f"{len(problems)} generated queries in chains of 30 to 60, per CPU"
    against = "bare engines, fresh for each query"
    ours, theirs = rates["smtspool"], rates["fresh"]
    yield Row.ratio("path prefix chains", "q/s", ours, against, theirs, at_least(3), note)
