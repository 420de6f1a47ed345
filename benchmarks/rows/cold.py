"""A set with repeats against one z3 process per query, as scripts around solvers do it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..calibration import Calibrated, calibrate
from ..children import cpus
from ..engines import versions
from ..inputs import source_name, with_repeats
from ..measure import Bench, Row, at_least, interleaved, seconds
from ..product import service_rate

LIMIT_SECONDS = 10


def run(bench: Bench) -> Iterator[Row]:
    problems = calibrate(bench, with_repeats(bench, bench.choose(15, 1_600, 10_000)))
    sample = bench.random("cold").sample(problems, min(len(problems), bench.choose(5, 150, 1_000)))
    rates = interleaved(
        bench, {"smtspool": lambda: service_rate(bench, problems), "cold": lambda: cold_rate(bench, sample)}
    )
    what = f"63 % repeats up to names, {source_name(bench)}"
    against = f"z3 {versions()['z3']}, a process per query"
    note = f"z3 on {len(sample)} of the {len(problems)}, drawn at random, {LIMIT_SECONDS} s at most each"
    yield Row.ratio(what, "q/s", rates["smtspool"], against, rates["cold"], at_least(20), note)


def cold_rate(bench: Bench, problems: Sequence[Calibrated]) -> float:
    """Queries per second and CPU; models are printed by nobody and checked by nobody."""
    z3 = _executable()
    with bench.directory() as directory, ThreadPoolExecutor(cpus()) as pool:
        paths = [directory / f"{number}.smt2" for number in range(len(problems))]
        for path, one in zip(paths, problems, strict=True):
            path.write_text(one.problem.script)
        taken = seconds(lambda: list(pool.map(lambda path: _solve(z3, path), paths)))
    return len(paths) / taken / cpus()


def _executable() -> str:
    """The one of the wheel: same version as the library."""
    found = shutil.which("z3", path=str(Path(sys.executable).parent)) or shutil.which("z3")
    if found is None:
        raise FileNotFoundError("no z3 executable: the z3-solver wheel brings one")
    return found


def _solve(z3: str, path: Path) -> None:
    """Without ``check``: z3 exits with an error when its time is over."""
    subprocess.run([z3, f"-T:{LIMIT_SECONDS}", str(path)], stdout=subprocess.DEVNULL, check=False)
