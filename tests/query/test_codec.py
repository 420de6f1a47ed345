"""The body a store keeps: exact, checked, and read back without reading terms."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.errors import InfrastructureError
from smtspool.query import Query, Witness, decode, decode_remarks, encode, parse_envelope, parse_smt2
from tests.query.generate import script_of, scripts


def full() -> Query:
    return parse_envelope(
        {
            "schema": "smtspool-query-v1",
            "logic": "QF_AUFBV",
            "declarations": [
                "(declare-fun b () (_ BitVec 8))",
                "(declare-fun f (Bool (_ BitVec 8)) (Array Bool Bool))",
                "(declare-sort U 0)",
                "(define-fun g ((x Bool)) Bool (select (f x b) x))",
            ],
            "prefix": ["(g true)", "(= b #x00)"],
            "target": "(g false)",
            "witness": {"input_hex": "00ff", "symbols": {"b": 7}},
            "metadata": {"site": 4, "note": "é\u2028", "list": [1, None, {"x": 1.5}]},
            "timeout_ms": 77,
            "priority": -3.25,
        }
    )


@given(scripts())
def test_a_script_comes_back_as_it_was(text: str) -> None:
    (query,) = parse_smt2(text)
    assert decode(encode(query)) == query


def test_every_field_comes_back_as_it_was() -> None:
    query = full()
    assert decode(encode(query)) == query
    assert query.witness == Witness(b"\x00\xff", (("b", 7),))


def test_what_is_said_beside_the_question_can_be_read_alone() -> None:
    assert decode_remarks(encode(full())) == (full().id, (full().metadata, ()))
    noted = replace(full(), notes=("the option :x is unknown and dropped",), values=("b",))
    assert decode_remarks(encode(noted)) == (full().id, (full().metadata, noted.notes))
    again = decode(encode(noted))
    assert (again.notes, again.values) == (noted.notes, noted.values)


def test_without_notes_the_bytes_are_those_of_earlier_versions() -> None:
    assert len(json.loads(encode(full())[18:])) == 14


def test_equal_queries_have_equal_bodies() -> None:
    assert encode(full()) == encode(full())
    assert encode(full()) != encode(replace(full(), priority=0.0))


@given(st.integers(0), st.integers(1, 255))
def test_a_flipped_byte_is_noticed(place: int, flip: int) -> None:
    body = bytearray(encode(parse_smt2(script_of(1))[0]))
    body[place % len(body)] ^= flip
    for read in (decode, decode_remarks):
        with pytest.raises(InfrastructureError, match="damaged"):
            read(bytes(body))


@given(st.binary() | st.binary().map(lambda tail: b"Q1" + tail))
def test_bytes_that_are_no_body_are_noticed(data: bytes) -> None:
    with pytest.raises(InfrastructureError, match="damaged"):
        decode(data)


def test_a_torn_body_is_noticed_at_every_length() -> None:
    body = encode(full())
    for length in range(len(body)):
        with pytest.raises(InfrastructureError, match="damaged"):
            decode(body[:length])
