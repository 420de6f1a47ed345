"""Numbers as people read them."""

from __future__ import annotations

import pytest

from smtspool.service.figures import ago, amount, duration, per_second, size


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"), (999, "999"), (9_999, "9,999"), (10_000, "10.0 k"), (123_456, "123 k"), (999_499, "999 k"),
        (999_999, "1.00 M"), (4_560_000, "4.56 M"), (7.2e12, "7200 G"),
    ],
)  # fmt: skip
def test_an_amount(count: float, text: str) -> None:
    assert amount(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"), (0, "0 s"), (0.0015, "1.50 ms"), (0.25, "250 ms"), (4.25, "4.2 s"), (59.9, "59 s"),
        (60, "1 min"), (3599, "59 min"), (3600, "1 h 0 min"), (7500, "2 h 5 min"), (100 * 3600, "4 d 4 h"),
    ],
)  # fmt: skip
def test_a_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_size() -> None:
    sizes = [size(count) for count in (0, 999, 1500, 12e9, 3e15)]
    assert sizes == ["0 B", "999 B", "1.50 kB", "12.0 GB", "3000 TB"]


def test_a_moment() -> None:
    assert [ago(seconds) for seconds in (-1, 0.5, 3.7, 200)] == ["now", "now", "3 s ago", "3 min ago"]


def test_a_rate() -> None:
    rates = [per_second(rate) for rate in (0, 123.4, 1.25, 0.5, 0.002)]
    assert rates == ["0", "123/s", "1.2/s", "30/min", "7.2/h"]
