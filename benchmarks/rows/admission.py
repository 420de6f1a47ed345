"""Durable admission against bare reading, inserting and renaming.

Files per second from ``incoming/`` to ``accepted/`` with the queries committed; and whether that stays the
same when the store is full.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from smtspool.spool import Spool
from smtspool.store import Store

from ..files import BATCH, bare_admission, fill
from ..inputs import Problem, small, source_name
from ..measure import Bench, Row, at_least, interleaved
from ..stores import filled_store

BUDGET_SECONDS = 3600.0


def run(bench: Bench) -> Iterator[Row]:
    problems = small(bench, bench.choose(20, 2_000, 10_000))
    rates = interleaved(
        bench, {"ours": partial(admit, bench, problems), "limit": partial(limit, bench, problems)}
    )
    bytes_each = sum(len(problem.data) for problem in problems) / len(problems)
    note = f"{len(problems)} files of {bytes_each:,.0f} bytes on average from the {source_name(bench)}"
    what = f"admission, {source_name(bench)}"
    limit_name = "read, insert, rename"
    yield Row.ratio(what, "files/s", rates["ours"], limit_name, rates["limit"], at_least(0.7), note)
    yield flatness(bench, problems)


def flatness(bench: Bench, problems: Sequence[Problem]) -> Row:
    """The same files into a small store and into a large one."""
    few, many = 1_000, bench.choose(2_000, 100_000, 1_000_000)
    rates = interleaved(
        bench,
        {
            "few": lambda: admit_into_filled(bench, problems, few),
            "many": lambda: admit_into_filled(bench, problems, many),
        },
    )
    what = f"admission at {many:,} stored queries"
    return Row.ratio(what, "files/s", rates["many"], f"at {few:,}", rates["few"], at_least(0.85))


def admit_into_filled(bench: Bench, problems: Sequence[Problem], rows: int) -> float:
    with filled_store(bench, rows) as store_directory:
        return admit(bench, problems, store_directory)


def admit(bench: Bench, problems: Sequence[Problem], store_directory: Path | None = None) -> float:
    """Files per second through :meth:`Spool.scan`, into a new store unless one is given."""
    with bench.directory() as directory, Spool.open(directory / "spool", create=True) as spool:
        fill(directory / "spool" / "incoming", problems)
        with Store.open(store_directory or directory / "store", create=True) as store:
            started = time.perf_counter()
            report = spool.scan(store.admit, consumer="benchmark", budget_s=BUDGET_SECONDS, batch=BATCH)
            taken = time.perf_counter() - started
    if report.accepted != len(problems):
        raise RuntimeError(f"{report.accepted} of {len(problems)} files were accepted: {report}")
    return report.accepted / taken


def limit(bench: Bench, problems: Sequence[Problem]) -> float:
    with bench.directory() as directory:
        fill(directory / "incoming", problems)
        taken = bare_admission(directory / "incoming", directory / "accepted", directory / "limit.sqlite3")
    return len(problems) / taken
