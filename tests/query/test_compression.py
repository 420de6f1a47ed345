"""Compressed files and byte order marks: the same queries, and never more than a bounded amount of memory."""

from __future__ import annotations

import gzip
import json
import lzma
import tracemalloc
import zlib
from collections.abc import Callable
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.errors import AdmissionError, Reason
from smtspool.query import Limits, parse_file, suffix_for

SCRIPT = "(declare-const p Bool)\n(assert p)(check-sat)"
ENVELOPE = json.dumps({"schema": "smtspool-query-v1", "logic": "QF_BV", "target": "true"})
PACKERS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress}


def refusal(name: str, data: bytes, limits: Limits | None = None) -> AdmissionError:
    with pytest.raises(AdmissionError) as caught:
        parse_file(name, data, limits)
    return caught.value


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize(("name", "text"), [("q.smt2", SCRIPT), ("q.json", ENVELOPE)])
def test_what_is_packed_is_the_same_query(name: str, text: str, suffix: str) -> None:
    packed = PACKERS[suffix](text.encode())
    assert parse_file(name + suffix, packed) == parse_file(name, text.encode())


@pytest.mark.parametrize("packed", ["", *PACKERS])
@pytest.mark.parametrize(
    ("name", "text"), [("q.json.smt2", SCRIPT), ("q.smt2.json", ENVELOPE), (".smt2", SCRIPT)]
)
def test_the_end_of_the_name_says_what_is_packed(name: str, text: str, packed: str) -> None:
    """An envelope is often called after the script that it was made of."""
    data = text.encode()
    assert parse_file(name + packed, PACKERS[packed](data) if packed else data)


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_file_may_have_several_members(suffix: str) -> None:
    whole = SCRIPT.encode()
    pieces = [PACKERS[suffix](whole[:9]), PACKERS[suffix](whole[9:])]
    assert parse_file("q.smt2" + suffix, b"".join(pieces)) == parse_file("q.smt2", whole)
    assert parse_file("q.smt2" + suffix, pieces[0] + pieces[1] + bytes(8)) == parse_file("q.smt2", whole)


@pytest.mark.parametrize("suffix", PACKERS)
def test_damage_is_refused(suffix: str) -> None:
    packed = PACKERS[suffix](SCRIPT.encode() * 100)
    for data in (packed[:-1], packed[:20], SCRIPT.encode(), packed + b"more", packed[:-4] + b"rot!"):
        assert refusal("q.smt2" + suffix, data).reason is Reason.ENCODING


@pytest.mark.parametrize("suffix", PACKERS)
def test_the_limit_is_on_what_it_unpacks_to(suffix: str) -> None:
    packed = PACKERS[suffix](SCRIPT.encode())
    parse_file("q.smt2" + suffix, packed, Limits(file=max(len(SCRIPT), len(packed))))
    script = SCRIPT.encode() + b" " * 1000
    error = refusal("q.smt2" + suffix, PACKERS[suffix](script), Limits(file=len(script) - 1))
    assert error.reason is Reason.TOO_LARGE


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_bomb_does_not_go_off(suffix: str) -> None:
    member = PACKERS[suffix](bytes(16 << 20))
    bomb = member * 20
    tracemalloc.start()
    try:
        assert refusal("q.smt2" + suffix, bomb, Limits(file=1 << 20)).reason is Reason.TOO_LARGE
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("suffix", PACKERS)
def test_time_grows_with_the_file(suffix: str) -> None:
    """However many members it has."""
    member = PACKERS[suffix](b"")

    def cost(members: int) -> float:
        data = member * members + PACKERS[suffix](SCRIPT.encode())
        started = process_time()
        assert parse_file("q.smt2" + suffix, data)
        return process_time() - started

    small = min(cost(2_000) for _ in range(3))
    assert cost(32_000) < 80 * small


@pytest.mark.parametrize("padding", [8, 1 << 16, 3 << 16])
def test_streams_may_be_far_apart(padding: int) -> None:
    whole = SCRIPT.encode()
    packed = lzma.compress(whole[:9]) + bytes(padding) + lzma.compress(whole[9:])
    assert parse_file("q.smt2.xz", packed) == parse_file("q.smt2", whole)
    assert refusal("q.smt2.xz", bytes(padding) + packed).reason is Reason.ENCODING


def test_a_dictionary_of_gigabytes_is_not_made() -> None:
    assert parse_file("q.smt2.xz", lzma.compress(SCRIPT.encode(), preset=9))
    data = bytearray(lzma.compress(SCRIPT.encode()))
    # Its size is one byte of the block's header, which follows 12 bytes of the stream's and ends in a CRC.
    end = 12 + (data[12] + 1) * 4
    data[data.index(b"\x21\x01", 12) + 2] = 40  # four gigabytes
    data[end - 4 : end] = zlib.crc32(data[12 : end - 4]).to_bytes(4, "little")
    error = refusal("q.smt2.xz", bytes(data))
    assert error.reason is Reason.ENCODING
    assert "emory" in error.message


@pytest.mark.parametrize("name", ["q.gz", "q.smt2.bz2", "q.smt2.gz.gz", "q.xz.smt", ".gz"])
def test_other_suffixes_are_refused(name: str) -> None:
    assert refusal(name, gzip.compress(SCRIPT.encode())).reason is Reason.SUFFIX


@pytest.mark.parametrize(("name", "text"), [("q.smt2", SCRIPT), ("q.json", ENVELOPE)])
def test_a_byte_order_mark_is_skipped(name: str, text: str) -> None:
    marked = "\ufeff".encode() + text.encode()
    assert parse_file(name, marked) == parse_file(name, text.encode())
    assert parse_file(name + ".gz", gzip.compress(marked)) == parse_file(name, text.encode())
    wrong = refusal(name, b"\xef\xbb\xbf" + b"x (assert)")
    assert wrong.place is not None
    assert wrong.place.column == 1


@pytest.mark.parametrize(
    ("data", "suffix"),
    [
        (b"", ".smt2"),
        (SCRIPT.encode(), ".smt2"),
        (b" \n\t{", ".json"),
        (b"\xef\xbb\xbf{", ".json"),
        (gzip.compress(SCRIPT.encode(), mtime=0), ".smt2.gz"),
        (lzma.compress(ENVELOPE.encode()), ".json.xz"),
        (b"\x1f\x8b{", ".smt2.gz"),
    ],
)
def test_content_without_a_name_tells_what_it_is(data: bytes, suffix: str) -> None:
    assert suffix_for(data) == suffix


@given(st.binary(max_size=200), st.sampled_from(sorted(PACKERS)), st.data())
def test_whatever_the_bytes_nothing_else_is_raised(noise: bytes, suffix: str, data: st.DataObject) -> None:
    packed = bytearray(PACKERS[suffix](SCRIPT.encode()))
    for _ in range(data.draw(st.integers(0, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    for content in (noise, bytes(packed)):
        try:
            parse_file("q.smt2" + suffix, content)
        except AdmissionError:
            continue
