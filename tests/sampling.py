"""A test that goes through all of something takes a sample in ``make test``, and all in ``make whole``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["WHOLE", "sample"]

T = TypeVar("T")

WHOLE = os.environ.get("SMTSPOOL_WHOLE") == "1"


def sample(cases: Sequence[T], every: int) -> Sequence[T]:
    """All cases, or every so many of them, beginning with the first."""
    return cases if WHOLE else cases[::every]
