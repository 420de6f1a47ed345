"""Value profiles: recovery by replay, and what probes gain and cost."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path

from smtspool.files import Directory
from smtspool.profile import Coordinator
from smtspool.query import Query, parse_envelope
from smtspool.sample import PROGRAMS, campaign, runs, telemetry
from smtspool.service import Increments, Prober
from smtspool.solve import Cancellation, Portfolio

from ..measure import Bench, Row, Sample, at_most
from ..product import open_portfolio

WINDOW = 10_000
BUDGET_SECONDS = 0.1
LIMIT_SECONDS = 60.0
MUTANTS = 40  # inputs made of each seed


def run(bench: Bench) -> Iterator[Row]:
    yield from _replay(bench)
    yield from _probes(bench)


# -- recovery -----------------------------------------------------------------------------------------------


def _replay(bench: Bench) -> Iterator[Row]:
    counts = bench.choose((50, 100), (1_000, 3_000, 10_000), (1_000, 3_000, 10_000))
    processor: dict[int, Sample] = {}
    for count in counts:
        bench.say(f"{count} records")
        with bench.directory() as directory:
            size = _checkpoint(bench, directory, count)
            times = list(_recover(directory, bench.choose(3, 20, 60)))
        wall, processor[count] = (Sample(part) for part in zip(*times, strict=True))
        note = (
            f"a checkpoint of {size / 1e6:.1f} MB, of runs of the sample programs on inputs near their seeds"
        )
        what = f"profile replay, {count:,} records"
        if count == counts[-1]:
            yield Row.value(f"{what}, P50", "s", wall.median, wall, None, note)
            yield Row.value(f"{what}, P95", "s", wall.quantile(0.95), wall, at_most(0.5), note)
        yield Row.value(f"{what}, CPU time", "s", processor[count].median, processor[count], None, note)
    few, many = counts[0], counts[-1]
    small, large = processor[few], processor[many]
    growth = large.median / small.median
    spread = (large.low / small.high, large.high / small.low)
    yield Row(
        f"profile replay, {many:,} records, CPU time",
        "s",
        large.median,
        f"{few:,} records",
        small.median,
        growth,
        spread,
        None,
        f"{many / few:g} times the records",
    )


def _checkpoint(bench: Bench, directory: Path, count: int) -> int:
    """A published profile of so many records; the size of its checkpoint in bytes."""
    chance = bench.random("profile")
    records = []
    for program in PROGRAMS.values():
        for seed in program.seeds:
            for _ in range(MUTANTS):
                data = bytearray(seed)
                if data:
                    data[chance.randrange(len(data))] = chance.randrange(256)
                records.append(telemetry(program, bytes(data)))
    chance.shuffle(records)
    with Directory.open(directory) as folder:
        coordinator = Coordinator(folder, window=WINDOW)
        for record in islice(cycle(records), count):
            coordinator.observe(record)
        coordinator.publish(force=True)
        if coordinator.dirty:
            raise RuntimeError("the profile to be replayed could not be published")
    return (directory / "state.json").stat().st_size


def _recover(directory: Path, times: int) -> Iterator[tuple[float, float]]:
    """Seconds of wall and of CPU time, time after time."""
    with Directory.open(directory) as folder:
        for _ in range(times):
            gc.collect()
            started, used = time.perf_counter(), time.process_time()
            recovered = Coordinator(folder, window=WINDOW)
            elapsed = (time.perf_counter() - started, time.process_time() - used)
            if recovered.dirty:
                raise RuntimeError(f"the replay found something: {recovered.snapshot().doubts}")
            yield elapsed


# -- probes -------------------------------------------------------------------------------------------------


def _probes(bench: Bench) -> Iterator[Row]:
    """Each query on two portfolios in turn: one probes first, the other does not."""
    queries = _queries(bench)
    answered: list[tuple[float, float]] = []
    fallen: list[tuple[float, float]] = []
    with (
        bench.directory() as directory,
        Directory.open(directory) as folder,
        open_portfolio(("bitwuzla", "z3", "cvc5")) as probing,
        open_portfolio(("bitwuzla", "z3", "cvc5")) as plain,
    ):
        coordinator = Coordinator(folder, window=WINDOW)
        for _, record in runs():
            coordinator.observe(record)
        coordinator.publish(force=True)
        prober = Prober(coordinator.serve, Increments(), budget_s=BUDGET_SECONDS)
        for warm in (True, False):  # the first time round pays for the helpers
            for query in queries[:10] if warm else queries:
                ours, hit = _with_probe(probing, prober, query)
                theirs = _without(plain, query)
                if hit is not None and not warm:
                    (answered if hit else fallen).append((ours, theirs))
    note = "the sample campaign without repeats, a portfolio each, query by query in turn; medians, then sums"
    for what, pairs in (("answered by a probe", answered), ("whose probe fell back", fallen)):
        if pairs:
            yield _compared(f"query {what} ({len(pairs)})", pairs, note)
    both = answered + fallen
    ours, theirs = (sum(times) for times in zip(*both, strict=True))
    ratio = ours / theirs
    yield Row(
        f"all {len(both)} probed queries of {len(queries)}",
        "s",
        ours / 1e3,
        "without probes",
        theirs / 1e3,
        ratio,
        (ratio, ratio),
        None,
        note,
    )


def _queries(bench: Bench) -> list[Query]:
    """Those of the campaign that do not repeat others up to names, shorter paths first."""
    asked = (parse_envelope(envelope) for _, envelope in campaign())
    forms = {query.form.digest: query for query in asked}
    queries = sorted(forms.values(), key=lambda query: [level.key for level in query.levels[:-1]])
    return queries[: bench.choose(40, len(queries), len(queries))]


def _with_probe(portfolio: Portfolio, prober: Prober, query: Query) -> tuple[float, bool | None]:
    """Milliseconds, and whether a probe answered; None if there was nothing to probe with."""
    started = time.perf_counter()
    probe = prober.probe(portfolio, query, LIMIT_SECONDS, Cancellation())
    if probe is None or probe.answer is None:
        portfolio.solve(query, timeout_s=LIMIT_SECONDS)
    elapsed = (time.perf_counter() - started) * 1e3
    return elapsed, None if probe is None else probe.answer is not None


def _without(portfolio: Portfolio, query: Query) -> float:
    started = time.perf_counter()
    portfolio.solve(query, timeout_s=LIMIT_SECONDS)
    return (time.perf_counter() - started) * 1e3


def _compared(what: str, pairs: Sequence[tuple[float, float]], note: str) -> Row:
    ours, theirs = (Sample(times) for times in zip(*pairs, strict=True))
    ratios = ours.over(theirs)
    spread = (ratios.quantile(0.25), ratios.quantile(0.75))
    return Row(
        what,
        "ms",
        ours.median,
        "without probes",
        theirs.median,
        ratios.median,
        spread,
        None,
        f"{note}; the spread is that of the quartiles",
    )
