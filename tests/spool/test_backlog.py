from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from smtspool.actions import Step, observed_by
from smtspool.spool import Spool
from tests.spool.support import BROKEN, Ledger, assert_in_order, envelope, files, scan

FILES = 100_000
MEMORY = 96 << 20  # names, one batch and the report; not the queries of the whole backlog


@pytest.mark.slow
def test_a_hundred_thousand_files_are_listed_once_in_bounded_memory(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    for number in range(FILES):
        with (root / "incoming" / f"{number:06}.json").open("wb") as file:
            file.write(BROKEN if number % 1000 == 0 else envelope(number, padding=1000))
    steps = {"List": 0, "Commit": 0}

    class Count:
        def before(self, step: Step) -> None: ...

        def after(self, step: Step) -> None:
            if step.name in steps:
                steps[step.name] += 1

    tracemalloc.start()
    try:
        with observed_by(Count()):
            report = scan(spool, ledger)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (report.accepted, report.rejected, report.backlog) == (FILES - FILES // 1000, FILES // 1000, 0)
    assert ledger.stored == report.created == report.accepted
    assert steps["List"] == 1
    assert steps["Commit"] == ledger.calls < FILES // 100
    assert peak < MEMORY
    assert len(files(root)["accepted"]) == report.accepted
    assert_in_order(root)
