"""The sample campaign: every question raised by the seeds of every program, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator

from smtspool.sample.programs import PROGRAMS
from smtspool.sample.telemetry import telemetry
from smtspool.sample.walk import Envelope, Walk

__all__ = ["campaign", "runs"]

HEADER = b"EXIF"  # the same parsers again, behind a header: the same questions about other symbols
CALIBRATION = 4  # runs of each seed, as a fuzzer begins with


def campaign() -> Iterator[tuple[str, Envelope]]:
    """``(file name, smtspool-query-v1 envelope)`` of some hundreds of queries, the same in every process.

    Neighbouring queries share long prefixes, and some targets are infeasible. The queries behind the header
    repeat those without it, up to names. ``keyword`` asks for preimages of a hash, which are hard to find.
    """
    for program in PROGRAMS.values():
        for header in (b"", HEADER):
            walk = Walk(program, len(header))
            for number, seed in enumerate(program.seeds):
                for envelope in walk.queries(header + seed):
                    branch = envelope["metadata"]["branch"]
                    yield f"{program.name}-{len(header)}-{number}-{branch:03}.json", envelope


def runs() -> Iterator[tuple[str, dict[str, object]]]:
    """``(file name, telemetry record)`` of every run of a seed, as a fuzzer would produce them."""
    for program in PROGRAMS.values():
        for header in (b"", HEADER):
            for number, seed in enumerate(program.seeds):
                record = telemetry(program, header + seed, len(header))
                for run in range(CALIBRATION):
                    yield f"{program.name}-{len(header)}-{number}-{run}.json", record
