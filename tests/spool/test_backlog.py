from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from math import ceil
from pathlib import Path

import pytest

from smtspool.spool import Spool
from tests.sampling import WHOLE
from tests.spool.support import BROKEN, Ledger, assert_in_order, envelope, folder

FILES = 100_000 if WHOLE else 20_000
BATCH = 1024  # files, by default
PEAK = 96 << 20  # an interpreter, all names, one batch; all queries together take several times as much


@pytest.mark.slow
@pytest.mark.sampled
def test_a_large_backlog_is_listed_once_and_in_bounded_memory(
    root: Path, spool: Spool, ledger: Ledger, consumer: Callable[..., subprocess.Popen[str]]
) -> None:
    for number in range(FILES):
        with (root / "incoming" / f"{number:06}.json").open("wb") as file:
            file.write(BROKEN if number % 1000 == 0 else envelope(number, padding=1000))

    child = consumer()
    output, _ = child.communicate(timeout=600)
    assert child.returncode == 0
    figures = json.loads(output)
    print(f"peak: {figures['peak'] >> 20} MiB")

    assert (figures["accepted"], figures["rejected"]) == (FILES - FILES // 1000, FILES // 1000)
    assert (figures["finished"], figures["backlog"]) == (True, 0)
    assert ledger.stored == figures["created"] == figures["accepted"]
    assert figures["steps"]["List"] == 1
    assert figures["steps"]["Commit"] == figures["calls"] == ceil(FILES / BATCH)
    assert figures["peak"] < PEAK
    assert len(folder(root, "accepted")) == figures["accepted"]
    assert_in_order(root)
