"""JSON with one meaning, refused before it can grow."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.errors import AdmissionError, Reason
from smtspool.query import Limits
from smtspool.query.strictjson import load_object

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def refusal(text: str, limits: Limits | None = None) -> Reason:
    with pytest.raises(AdmissionError) as caught:
        load_object(text, limits or Limits())
    return caught.value.reason


@given(st.dictionaries(st.text(), VALUES))
def test_plain_json_is_read_as_it_is(document: dict[str, object]) -> None:
    assert load_object(json.dumps(document), Limits()) == document


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "1",
        '"x"',
        "null",
        "{",
        "{}{}",
        "\ufeff{}",
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": 1, "a": 1}',
        '{"x": [{"a": 1, "b": 2, "a": 3}]}',
        '{"a": 18446744073709551616}',
        '{"a": -9223372036854775809}',
        '{"a": ' + "9" * 5000 + "}",
        '{"a": 1,}',
        "{'a': 1}",
        '{"a": 01}',
        '{"a": "\t"}',
        '{"a": "\\x"}',
    ],
)
def test_anything_looser_is_refused(text: str) -> None:
    assert refusal(text) is Reason.JSON


def nested(depth: int) -> str:
    return '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)


def test_nesting_has_a_limit() -> None:
    limits = Limits(json_depth=5)
    load_object(nested(5), limits)
    assert refusal(nested(6), limits) is Reason.TOO_LARGE


def test_brackets_in_strings_are_not_nesting() -> None:
    text = json.dumps({"a": "[{" * 100, "b": '\\"[[[', "c": [[]]})
    assert load_object(text, Limits(json_depth=3))["a"] == "[{" * 100


def test_the_number_of_values_has_a_limit() -> None:
    limits = Limits(json_values=4)
    load_object('{"a":[1,2,3]}', limits)
    load_object('{"a":["x,y,z,{",2,3]}', limits)
    assert refusal('{"a":[1,2,3,4]}', limits) is Reason.TOO_LARGE


@pytest.mark.parametrize(
    "text", ["[" * 5_000_000, '{"a":' * 1_000_000, "[]," * 100_000, '"' + "\\" * 3_000_001]
)
def test_depth_and_length_never_reach_the_parser(text: str) -> None:
    assert refusal(text) in (Reason.TOO_LARGE, Reason.JSON)


def many_members(size: int) -> str:
    """The last one stands twice."""
    return "{" + "".join(f'"{n}":0,' for n in range(size)) + f'"{size - 1}":0}}'


def escaped_quotes(size: int) -> str:
    """In a string that never ends, behind brackets enough to be counted one by one."""
    return '{"a":"' + "[]" * 70 + '\\"' * size


@pytest.mark.parametrize("shape", [many_members, escaped_quotes])
def test_a_refusal_takes_time_in_proportion(shape: Callable[[int], str]) -> None:
    """Sixteen times the text takes far less than the 256 times of anything quadratic."""

    def cost(size: int) -> float:
        text = shape(size)
        started = process_time()
        assert refusal(text) is Reason.JSON
        return process_time() - started

    small, large = (min(cost(size) for _ in range(3)) for size in (2_000, 32_000))
    assert large < 80 * small


def test_a_member_that_stands_twice_is_named() -> None:
    with pytest.raises(AdmissionError, match="'1' stands twice"):
        load_object('{"0": 0, "1": 0, "2": 0, "1": 0, "2": 0}', Limits())


@given(st.text())
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        load_object(text, Limits())
    except AdmissionError as error:
        assert error.reason in (Reason.JSON, Reason.TOO_LARGE)
