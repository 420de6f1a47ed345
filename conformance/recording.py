"""A recording of ``smtspool serve --trace``: each protocol that it has steps of, checked by its own model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from conformance.cancellation import windows as solving
from conformance.engine.trace import Recorded, TraceError, read
from conformance.spool_admission import trace as spool

__all__ = ["check_file"]


def check_file(path: Path) -> Iterator[spool.Checked]:
    """What became of the recording, one protocol after the other. Raises :class:`TraceError` when it is no
    whole recording, or has no step of any of them."""
    lines = read(path.read_text(), schema=spool.SCHEMA)
    solved = solving.only_solving(lines)
    if any(_of_admission(line) for line in lines):
        yield spool.check_file(path)
    elif not solved:
        raise TraceError("the recording has no step of admission or of solving")
    if solved:
        checked = solving.check(solved)
        yield spool.Checked(checked.accepted, checked.text)


def _of_admission(line: Recorded) -> bool:
    return "consumer" in line.params or line.action in ("Start", "Crash")
