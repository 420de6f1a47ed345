"""Ages as people type them: ``90m``, ``1.5h``, ``30d``."""

from __future__ import annotations

import re

__all__ = ["seconds_of"]

_AGE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def seconds_of(age: str) -> float | None:
    """A number and s, m, h, d or w, in seconds; None for any other text."""
    found = _AGE.fullmatch(age)
    return None if found is None else float(found[1]) * _UNITS[found[2]]
