"""A protocol step that nobody observes, against an empty ``with``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager

from smtspool.actions import Protocol

from ..measure import Bench, Row, Sample, at_most, interleaved


class Empty:
    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


action = Protocol("spool_admission").action
EMPTY: AbstractContextManager[None] = Empty()


def steps(count: int) -> float:
    """Microseconds per step with two parameters, as most have."""
    started = time.perf_counter()
    for _ in range(count):
        with action("Commit", consumer="c", files=()):
            pass
    return (time.perf_counter() - started) / count * 1e6


def empties(count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        with EMPTY:
            pass
    return (time.perf_counter() - started) / count * 1e6


def run(bench: Bench) -> Iterator[Row]:
    count = bench.choose(1_000, 200_000, 2_000_000)
    taken = interleaved(bench, {"step": lambda: steps(count), "empty": lambda: empties(count)})
    extra = Sample(tuple(a - b for a, b in zip(taken["step"].values, taken["empty"].values, strict=True)))
    note = (
        f"a step takes {taken['step'].median:.3f} µs, an empty `with` of a Python class "
        f"{taken['empty'].median:.3f} µs; the figure is the difference"
    )
    yield Row.value("action, no observer", "µs", extra.median, extra, at_most(0.2), note)
