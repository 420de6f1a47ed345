"""Many small queries, from file to committed verified answer, against the bare engines.

The limit solves with the fastest engine of each query and checks every model with the fastest other one:
fresh solvers in one process per CPU, no files, no database.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..calibration import calibrate
from ..inputs import small, source_name
from ..measure import Bench, Row, at_least, interleaved
from ..product import limit_rate, service_rate


def run(bench: Bench) -> Iterator[Row]:
    problems = calibrate(bench, small(bench, bench.choose(10, 600, 4_000)))
    rates = interleaved(
        bench, {"smtspool": lambda: service_rate(bench, problems), "limit": lambda: limit_rate(problems)}
    )
    what = f"small queries end to end, {source_name(bench)}"
    note = f"{len(problems)} queries, per CPU"
    yield Row.ratio(what, "q/s", rates["smtspool"], "bare engines", rates["limit"], at_least(0.6), note)
