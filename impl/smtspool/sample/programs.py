"""Small parsers, written the way one writes them: over octets, with loops, tables and early refusals.

Nothing here knows about symbols. Each parser runs on ``bytes`` and, unchanged, on the symbolic octets of
:mod:`.symbolic`. Only one habit differs from everyday Python: numbers never go below zero or past the
program's machine word, as in the C parsers that these stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index

__all__ = ["PROGRAMS", "Malformed", "Program"]

Octets = Sequence[int]


class Malformed(ValueError):
    """The input is not what the parser reads; the text says where it went wrong."""


def octet(data: Octets, at: int) -> int:
    if at >= len(data):
        raise Malformed("ends too early")
    return data[at]


def tlv(data: Octets) -> int:
    """Records of tag, length and value; adds up the numbers (tag 1) and skips the texts (tag 2)."""
    at = total = 0
    while at < len(data):
        tag, length = data[at], octet(data, at + 1)
        at += 2
        if tag == 0:
            break
        if length > len(data) - at:
            raise Malformed("value runs past the end")
        value = data[at : at + index(length)]
        at += len(value)
        if tag == 1:
            if len(value) > 2:
                raise Malformed("number too long")
            number = 0
            for digit in value:
                number = number << 8 | digit
            total = total + number
        elif tag == 2:
            for char in value:
                if char < 0x20:
                    raise Malformed("control character in a text")
        elif tag & 0x80 == 0:
            raise Malformed("unknown tag that must be understood")
    return total


def utf8(data: Octets) -> int:
    """UTF-8 as RFC 3629 has it: nothing overlong, no surrogates, nothing past U+10FFFF. Counts characters."""
    at = characters = 0
    while at < len(data):
        lead = data[at]
        if lead < 0x80:
            tail, point, least = 0, lead, 0
        elif lead < 0xC0:
            raise Malformed("tail octet without a lead")
        elif lead < 0xE0:
            tail, point, least = 1, lead & 0x1F, 0x80
        elif lead < 0xF0:
            tail, point, least = 2, lead & 0x0F, 0x800
        elif lead < 0xF8:
            tail, point, least = 3, lead & 0x07, 0x10000
        else:
            raise Malformed("no such lead octet")
        for distance in range(1, tail + 1):
            following = octet(data, at + distance)
            if following & 0xC0 != 0x80:
                raise Malformed("tail octet missing")
            point = point << 6 | following & 0x3F
        if point < least:
            raise Malformed("longer than need be")
        if point >> 11 == 0x1B:
            raise Malformed("surrogate")
        if point > 0x10FFFF:
            raise Malformed("past the last code point")
        at += 1 + tail
        characters += 1
    return characters


def leb128(data: Octets) -> int:
    """A vector as WebAssembly writes it: how many, then that many LEB128 numbers, here in rising order."""
    count, at = _leb128(data, 0)
    if count > 6:
        raise Malformed("too many")
    largest = 0
    for _ in range(count):
        number, at = _leb128(data, at)
        if number <= largest:
            raise Malformed("not rising")
        largest = number
    return largest


def _leb128(data: Octets, at: int) -> tuple[int, int]:
    number = 0
    for shift in (0, 7, 14, 21):
        digit = octet(data, at)
        at += 1
        number = number | (digit & 0x7F) << shift
        if digit < 0x80:
            if shift > 0 and digit == 0:
                raise Malformed("longer than need be")
            return number, at
    raise Malformed("too large")


def base64(data: Octets) -> int:
    """Base64 of RFC 4648 with padding, canonical: unused bits are zero. Counts the octets it stands for."""
    if len(data) % 4 != 0:
        raise Malformed("not a multiple of four")
    decoded = 0
    for at in range(0, len(data), 4):
        _sextet(data[at])
        second = _sextet(data[at + 1])
        last = at + 4 == len(data)
        if last and data[at + 3] == ord("="):
            if data[at + 2] == ord("="):
                unused = second & 0x0F
                decoded += 1
            else:
                unused = _sextet(data[at + 2]) & 0x03
                decoded += 2
            if unused != 0:
                raise Malformed("unused bits are set")
        else:
            _sextet(data[at + 2])
            _sextet(data[at + 3])
            decoded += 3
    return decoded


def _sextet(char: int) -> int:
    if char >= ord("a") and char <= ord("z"):
        return char - ord("a") + 26
    if char >= ord("A") and char <= ord("Z"):
        return char - ord("A")
    if char >= ord("0") and char <= ord("9"):
        return char - ord("0") + 52
    if char == ord("+"):
        return 62
    if char == ord("/"):
        return 63
    raise Malformed("not in the alphabet")


def fletcher16(data: Octets) -> int:
    """A packet: version, flags, payload, and its Fletcher-16 checksum (RFC 1146 shape, modulo 255)."""
    if len(data) < 4:
        raise Malformed("no room for a checksum")
    if data[0] != 1:
        raise Malformed("unknown version")
    if data[1] & 0xFC != 0:
        raise Malformed("reserved flags are set")
    low = high = 0
    for value in data[:-2]:
        low = (low + value) % 255
        high = (high + low) % 255
    if low != data[-2] or high != data[-1]:
        raise Malformed("wrong checksum")
    if data[1] & 0x01 != 0:
        return high << 8 | low
    return low


def crc8(data: Octets) -> int:
    """A frame closed by its CRC-8 (polynomial 0x07), one bit at a time: eight branches for each octet."""
    crc = 0
    for value in data:
        crc = crc ^ value
        for _ in range(8):
            crc = (crc << 1 ^ 0x107) & 0xFF if crc & 0x80 != 0 else crc << 1
    if crc != 0:
        raise Malformed("wrong checksum")
    return len(data)


def date(data: Octets) -> int:
    """``2024-02-29``: a day of the Gregorian calendar. Gives it as the number 20240229."""
    year = _digits(data, 0, 4)
    if octet(data, 4) != ord("-"):
        raise Malformed("no dash after the year")
    month = _digits(data, 5, 2)
    if month < 1:
        raise Malformed("month zero")
    if month > 12:
        raise Malformed("no such month")
    if octet(data, 7) != ord("-"):
        raise Malformed("no dash after the month")
    day = _digits(data, 8, 2)
    if month == 2:
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        days = 29 if leap else 28
    elif month in (4, 6, 9, 11):
        days = 30
    else:
        days = 31
    if day < 1:
        raise Malformed("day zero")
    if day > days:
        raise Malformed("no such day")
    return (year * 100 + month) * 100 + day


def _digits(data: Octets, at: int, count: int) -> int:
    number = 0
    for place in range(at, at + count):
        char = octet(data, place)
        if char < ord("0"):
            raise Malformed("not a digit")
        if char > ord("9"):
            raise Malformed("not a digit")
        number = number * 10 + (char - ord("0"))
    return number


def keyword(data: Octets) -> int:
    """A lower-case word and a colon; reserved words are found by their FNV-1a hash, as a ``switch`` does."""
    fingerprint, length = 0x811C9DC5, 0
    while octet(data, length) != ord(":"):
        char = data[length]
        if char < ord("a") or char > ord("z"):
            raise Malformed("not a lower-case letter")
        fingerprint = (fingerprint ^ char) * 0x01000193 & 0xFFFFFFFF
        length += 1
    if fingerprint == 0x0DC628CE:
        return 1  # while
    if fingerprint == 0x85EE37BF:
        return 2  # return
    raise Malformed("no such keyword")


def bitmap(data: Octets) -> int:
    """An image header: signature, width, height, bits per pixel. Gives the size, guarded as in C."""
    if octet(data, 0) != ord("B"):
        raise Malformed("wrong signature")
    if octet(data, 1) != ord("M"):
        raise Malformed("wrong signature")
    width, height, depth = octet(data, 2), octet(data, 3), octet(data, 4)
    if width == 0:
        raise Malformed("no columns")
    if height == 0:
        raise Malformed("no rows")
    pixels = width * height
    if pixels // width != height:
        raise Malformed("the product overflowed")
    if depth == 1:
        return (pixels + 7) // 8
    if depth == 8:
        return pixels
    raise Malformed("unknown depth")


@dataclass(frozen=True, slots=True)
class Program:
    """A parser, the word it computes in, and inputs that lead into its corners."""

    name: str
    parse: Callable[[Octets], int]
    seeds: tuple[bytes, ...]
    width: int = 32


_SAMPLES = (
    Program("tlv", tlv, (b"\x01\x02\x01\x00\x02\x03abc\x01\x01\x07\x00\x00", b"\x81\x01\xff\x01\x03abc")),
    Program("utf8", utf8, ("aé€😀z".encode(), b"ok\xed\x9f\xbf!", b"\xf4\x8f\xbf\xbf")),
    Program("leb128", leb128, (b"\x03\x05\x87\x01\xe5\x8e\x26", b"\x02\x01\x80\x80\x80\x01")),
    Program("base64", base64, (b"aGVsbG8=", b"K/9=", b"QQ==")),
    Program("fletcher16", fletcher16, (b"\x01\x01SUM\xf7\xfa", b"\x01\x00abcd\x00\x00")),
    Program("crc8", crc8, (b"123\xc0", b"\x00\x07")),
    Program("date", date, (b"2024-02-29", b"1900-02-28", b"1999-12-31", b"2023-04-30")),
    Program("keyword", keyword, (b"whale:",)),
    Program("bitmap", bitmap, (b"BM\x10\x10\x08", b"BM\x01\x07\x01"), width=16),
)

PROGRAMS = {program.name: program for program in _SAMPLES}
