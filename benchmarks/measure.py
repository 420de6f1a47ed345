"""What is measured, and against what."""

from __future__ import annotations

import gc
import operator
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeVar

__all__ = ["Bar", "Bench", "Row", "Sample", "Size", "at_least", "at_most", "interleaved", "seconds", "shares"]

T = TypeVar("T")


class Size(IntEnum):
    """How much is measured: to see that it runs, to see where we stand, to publish."""

    TINY = 0
    USUAL = 1
    FULL = 2


@dataclass(frozen=True, slots=True)
class Bench:
    """What every row is given."""

    size: Size
    seed: int
    work: Path  # an empty directory on the disk to measure
    corpus: Path | None  # SMTSPOOL_CORPUS
    say: Callable[[str], None] = lambda text: None  # progress, for people
    calibrated: dict[str, tuple[str, str, str] | None] = field(default_factory=dict)  # see calibration

    def choose(self, tiny: T, usual: T, full: T) -> T:
        return (tiny, usual, full)[self.size]

    @property
    def rounds(self) -> int:
        return self.choose(1, 3, 5)

    def random(self, subject: str) -> Random:
        """The same numbers for the same seed and subject, whatever other rows draw."""
        return Random(f"{self.seed}/{subject}")

    @contextmanager
    def directory(self) -> Iterator[Path]:
        """An empty directory for one measurement; gone with all that is in it afterwards."""
        with TemporaryDirectory(dir=self.work) as path:
            yield Path(path)


@dataclass(frozen=True, slots=True)
class Sample:
    """The figures of the rounds, in order."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def quantile(self, share: float) -> float:
        """The smallest figure that at least ``share`` of all do not exceed."""
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def over(self, other: Sample) -> Sample:
        """The ratio round by round: what disturbed a round disturbed both sides of it."""
        return Sample(tuple(ours / theirs for ours, theirs in zip(self.values, other.values, strict=True)))


_SIGNS = {"≥": operator.ge, "≤": operator.le, "<": operator.lt}


@dataclass(frozen=True, slots=True)
class Bar:
    """What the figure must reach."""

    sign: str
    limit: float

    def met_by(self, figure: float) -> bool:
        return bool(_SIGNS[self.sign](figure, self.limit))

    def __str__(self) -> str:
        return f"{self.sign} {self.limit:g}"


def at_least(limit: float) -> Bar:
    return Bar("≥", limit)


def at_most(limit: float) -> Bar:
    return Bar("≤", limit)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. ``figure`` is what the bar is about: a ratio, or ours if nothing is compared."""

    what: str
    unit: str
    ours: float
    against: str
    theirs: float | None
    figure: float
    spread: tuple[float, float]  # of the figure, lowest and highest round
    bar: Bar | None
    note: str = ""

    @property
    def met(self) -> bool | None:
        return None if self.bar is None else self.bar.met_by(self.figure)

    @classmethod
    def ratio(
        cls, what: str, unit: str, ours: Sample, against: str, theirs: Sample, bar: Bar, note: str = ""
    ) -> Row:
        """Ours over theirs, round by round."""
        ratio = ours.over(theirs)
        spread = (ratio.low, ratio.high)
        return cls(what, unit, ours.median, against, theirs.median, ratio.median, spread, bar, note)

    @classmethod
    def value(
        cls, what: str, unit: str, figure: float, sample: Sample, bar: Bar | None, note: str = ""
    ) -> Row:
        """A figure that stands for itself."""
        return cls(what, unit, figure, "", None, figure, (sample.low, sample.high), bar, note)


def interleaved(bench: Bench, contenders: Mapping[str, Callable[[], float]]) -> dict[str, Sample]:
    """Every contender once a round, in turn, so that a slow minute of the machine hits all of them."""
    figures: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(1, bench.rounds + 1):
        for name, measure in contenders.items():
            bench.say(f"round {number}/{bench.rounds}: {name}")
            gc.collect()
            figures[name].append(measure())
    return {name: Sample(tuple(values)) for name, values in figures.items()}


def seconds(function: Callable[[], object]) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def shares(items: Sequence[T], count: int) -> list[list[T]]:
    """Deal the items out to ``count`` hands."""
    return [list(items[hand::count]) for hand in range(count)]
