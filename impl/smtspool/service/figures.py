"""Numbers as people read them: ``1.2 k``, ``3 min``, ``12 GB``."""

from __future__ import annotations

__all__ = ["ago", "amount", "duration", "per_second", "size"]

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


def amount(count: float) -> str:
    """How many: exact below 10,000, then three figures: ``9,876``, ``12.3 k``, ``4.56 M``."""
    return f"{count:,.0f}" if count < 10_000 else _scaled(count, ("k", "M", "G"))


def size(count: float) -> str:
    """Bytes, in powers of 1,000: ``512 B``, ``1.5 MB``."""
    return f"{count:.0f} B" if count < 1000 else _scaled(count, ("kB", "MB", "GB", "TB"))


def duration(seconds: float) -> str:
    """A span in its two largest units: ``1.5 ms``, ``42 s``, ``3 min``, ``2 h 5 min``, ``3 d 4 h``."""
    seconds = max(0.0, seconds)
    if seconds < 1:
        return f"{_three(1000 * seconds)} ms" if seconds else "0 s"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def ago(seconds: float) -> str:
    """How long since: ``now``, ``3 min ago``."""
    if seconds < 1:
        return "now"
    return f"{int(seconds)} s ago" if seconds < _MINUTE else f"{duration(seconds)} ago"


def per_second(rate: float) -> str:
    """A rate in the unit that gives a number to read: ``12/s``, ``4.5/min``, ``2/h``."""
    for seconds, unit in ((1, "s"), (_MINUTE, "min")):
        if rate * seconds >= 1:
            return f"{_short(rate * seconds)}/{unit}"
    return f"{_short(rate * _HOUR)}/h" if rate else "0"


def _scaled(count: float, units: tuple[str, ...]) -> str:
    power = 1
    while power < len(units) and count >= 999.5 * 1000**power:
        power += 1
    return f"{_three(count / 1000**power)} {units[power - 1]}"


def _short(value: float) -> str:
    return amount(value) if value >= 9.95 else f"{value:.1f}"


def _three(value: float) -> str:
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"
