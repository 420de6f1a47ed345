"""Delays grow with the failures in a row, up to a longest one."""

from __future__ import annotations

from smtspool.backoff import backoff_seconds


def test_the_delay_doubles_up_to_the_longest() -> None:
    delays = [backoff_seconds(failures, first=0.1, most=30.0) for failures in range(1, 2000)]
    assert delays[:4] == [0.1, 0.2, 0.4, 0.8]
    assert max(delays) == delays[-1] == 30.0
