"""The same with 63 % repeats up to names, where reuse must pay."""

from __future__ import annotations

from collections.abc import Iterator

from ..calibration import calibrate
from ..inputs import source_name, with_repeats
from ..measure import Bench, Row, at_least, interleaved
from ..product import limit_rate, service_rate


def run(bench: Bench) -> Iterator[Row]:
    problems = calibrate(bench, with_repeats(bench, bench.choose(15, 1_600, 10_000)))
    rates = interleaved(
        bench, {"smtspool": lambda: service_rate(bench, problems), "limit": lambda: limit_rate(problems)}
    )
    what = f"63 % repeats up to names, {source_name(bench)}"
    note = f"{len(problems)} queries, per CPU"
    yield Row.ratio(what, "q/s", rates["smtspool"], "bare engines", rates["limit"], at_least(1.5), note)
