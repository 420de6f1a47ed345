"""A JSON text that readers could understand in two ways is refused with what is wrong in it."""

from __future__ import annotations

import pytest

from smtspool.jsonvalue import BadNumber, RepeatedMember, value_of


def test_a_text_with_one_meaning_has_a_value() -> None:
    assert value_of('{"a": [1, 2.5, null], "b": {"a": 1e308}}') == {"a": [1, 2.5, None], "b": {"a": 1e308}}


def test_a_member_that_stands_twice_is_named() -> None:
    with pytest.raises(RepeatedMember, match="'x' stands twice") as refused:
        value_of('{"a": [{"x": 1, "y": 2, "x": 1}]}')
    assert refused.value.member == "x"


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_a_number_that_no_float_holds_is_named(literal: str) -> None:
    with pytest.raises(BadNumber) as refused:
        value_of(f"[{literal}]")
    assert refused.value.literal == literal
