"""The parsers are right, and do not notice whether they run on bytes or on symbols."""

from __future__ import annotations

import base64
import datetime
import sys
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.sample import BV, PROGRAMS, Malformed, Path, Program, programs

ALL = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


def lines_of(program: Program, data: object) -> tuple[list[int], int | str]:
    """The lines of the parsers that a run visits, and how it ends. Nothing symbolic takes part in this."""
    lines: list[int] = []

    def on_line(frame: FrameType, event: str, _: object):
        if event == "line":
            lines.append(frame.f_lineno)
        return on_line

    def on_call(frame: FrameType, event: str, _: object):
        return on_line if frame.f_code.co_filename == programs.__file__ else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        result = program.parse(data)
        end: int | str = result.value if isinstance(result, BV) else result
    except Malformed as refusal:
        end = str(refusal)
    finally:
        sys.settrace(before)
    return lines, end


def inputs(program: Program) -> st.SearchStrategy[bytes]:
    """Near the seeds, where the deep branches are, and far away."""
    edits = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 255)), max_size=3)
    near = st.builds(_edited, st.sampled_from(program.seeds), edits, st.integers(0, 20))
    return near | st.binary(max_size=12)


def _edited(seed: bytes, edits: list[tuple[int, int]], length: int) -> bytes:
    changed = bytearray(seed)
    for at, value in edits:
        changed[at % len(seed)] = value
    return bytes(changed[: max(length, len(seed) - length)])


@ALL
@given(data=st.data())
def test_a_run_on_symbols_takes_the_very_lines_of_a_run_on_bytes(program, data):
    octets = data.draw(inputs(program))
    symbols = Path(program.width).octets(octets, 0)
    assert lines_of(program, symbols) == lines_of(program, octets)


@given(st.binary(max_size=12))
def test_utf8_is_the_utf8_of_python(data):
    try:
        expected: int | None = len(data.decode())
    except UnicodeDecodeError:
        expected = None
    assert answer("utf8", data) == expected


@given(st.text(max_size=6))
def test_utf8_reads_every_text(text):
    assert answer("utf8", text.encode("utf-8", "ignore")) == len(text.encode("utf-8", "ignore").decode())


@given(st.binary(max_size=12))
def test_base64_reads_what_python_writes(data):
    assert answer("base64", base64.b64encode(data)) == len(data)


@given(st.dates())
def test_every_day_of_the_calendar_is_a_date(day):
    assert answer("date", day.isoformat().encode()) == (day.year * 100 + day.month) * 100 + day.day


@given(st.integers(1, 9999), st.integers(0, 13), st.integers(0, 32))
def test_a_date_is_a_day_of_the_calendar(year, month, day):
    try:
        expected: int | None = (year * 100 + month) * 100 + day if datetime.date(year, month, day) else None
    except ValueError:
        expected = None
    assert answer("date", f"{year:04}-{month:02}-{day:02}".encode()) == expected


@given(st.lists(st.integers(1, 2**28 - 1), max_size=6, unique=True).map(sorted))
def test_leb128_reads_what_an_encoder_writes(numbers):
    data = b"".join(map(leb128, [len(numbers), *numbers]))
    assert answer("leb128", data) == max(numbers, default=0)


@given(st.binary(max_size=8), st.integers(0, 63), st.integers(1, 255))
def test_checksums_accept_their_own_and_see_one_changed_octet(payload, place, change):
    framed = payload + bytes([crc8(payload)])
    assert answer("crc8", framed) == len(framed)
    place %= len(framed)
    damaged = bytes([*framed[:place], framed[place] ^ change, *framed[place + 1 :]])
    assert answer("crc8", damaged) is None
    packet = b"\x01\x01" + payload
    assert answer("fletcher16", packet + fletcher16(packet)) is not None


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("tlv", b"\x01\x02\x01\x00\x02\x03abc\x01\x01\x07\x00\x00", 263),
        ("tlv", b"\x05\x00", None),
        ("tlv", b"\x85\x00\x01\x01\x09", 9),
        ("tlv", b"\x02\x01\x1f", None),
        ("tlv", b"\x01\x02\x01", None),
        ("leb128", b"\x01\x80\x00", None),
        ("leb128", b"\x02\x05\x05", None),
        ("base64", b"QR==", None),
        ("keyword", b"while:", 1),
        ("keyword", b"return:", 2),
        ("keyword", b"whale:", None),
        ("bitmap", b"BM\xff\xff\x08", 255 * 255),
        ("bitmap", b"BM\x09\x01\x01", 2),
        ("bitmap", b"BM\x00\x01\x01", None),
        ("crc8", b"123456789\xf4", 10),
    ],
)
def test_examples(name, data, expected):
    assert answer(name, data) == expected


def answer(name: str, data: bytes) -> int | None:
    try:
        return PROGRAMS[name].parse(data)
    except Malformed:
        return None


def leb128(number: int) -> bytes:
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


def crc8(data: bytes) -> int:
    """The remainder of the message polynomial by x⁸ + x² + x + 1, by long division."""
    remainder = int.from_bytes(data) << 8
    while remainder.bit_length() > 8:
        remainder ^= 0x107 << remainder.bit_length() - 9
    return remainder


def fletcher16(data: bytes) -> bytes:
    low = sum(data) % 255
    high = sum((len(data) - at) * value for at, value in enumerate(data)) % 255
    return bytes([low, high])
