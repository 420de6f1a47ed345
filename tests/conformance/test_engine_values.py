"""TLA+ values: the parser reads everything the printer writes, and refuses everything else by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.values import (
    Model,
    Value,
    ValueSyntaxError,
    function,
    parse,
    parse_state,
    show,
    show_state,
)

IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z_0-9]{0,6}", fullmatch=True).filter(
    lambda name: name not in ("TRUE", "FALSE")
)
ATOMS: list[st.SearchStrategy[Value]] = [
    st.booleans(),
    st.integers(),
    st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"]) | st.sampled_from("\n\t\r\f")),
    IDENTIFIERS.map(Model),
]


def _compound(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    keys = st.one_of(*(st.dictionaries(kind, inner, max_size=4) for kind in ATOMS[1:]))
    return st.one_of(
        st.lists(inner, max_size=4).map(tuple),
        st.one_of(*(st.frozensets(kind, max_size=4) for kind in ATOMS)),
        st.frozensets(st.lists(st.integers(), max_size=3).map(tuple), max_size=3),
        st.dictionaries(IDENTIFIERS, inner, max_size=4).map(function),
        keys.map(function),
    )


VALUES = st.recursive(st.one_of(*ATOMS), _compound, max_leaves=20)


@given(VALUES)
def test_what_is_shown_is_read_back(value: Value) -> None:
    text = show(value)
    assert parse(text) == value
    assert show(parse(text)) == text


@given(VALUES, st.data())
def test_white_space_between_tokens_means_nothing(value: Value, data: st.DataObject) -> None:
    spaced = parse(show(function({"x": value, "y": (value,)})).replace(", y |->", ",\n   y\t|->  "))
    assert spaced == function({"x": value, "y": (value,)})


@given(st.dictionaries(IDENTIFIERS, VALUES, min_size=1, max_size=4))
def test_states_survive_the_round_trip(state: dict[str, Value]) -> None:
    assert parse_state(show_state(state)) == state


@given(st.text(max_size=40))
def test_any_text_is_a_value_or_a_syntax_error(text: str) -> None:
    try:
        value = parse(text)
    except ValueSyntaxError:
        return
    assert parse(show(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1..3", frozenset({1, 2, 3})),
        ("3..1", frozenset()),
        ("(1 :> 5 @@ 2 :> 6)", (5, 6)),
        ("(2 :> 5)", function({2: 5})),
        ("<< >>", ()),
        ("{ {},\n  {-1} }", frozenset({frozenset(), frozenset({-1})})),
        (
            '[k |-> m1, s |-> <<0, "a\\"b\\\\c">>, z |-> TRUE]',
            function({"k": Model("m1"), "s": (0, 'a"b\\c'), "z": True}),
        ),
        ("{n_1, n_2}", frozenset({Model("n_1"), Model("n_2")})),
    ],
)
def test_spellings_of_tlc(text: str, value: Value) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{1",
        "<<1,>>",
        "[a |-> 1, a |-> 2]",
        "(1 :> 2 @@ 1 :> 3)",
        '"\\q"',
        "1 2",
        "()",
        "[a -> 1]",
        "0..9999999",
    ],
)
def test_damaged_values_are_refused(text: str) -> None:
    with pytest.raises(ValueSyntaxError):
        parse(text)


def test_depth_is_no_limit() -> None:
    depth = 50_000
    text = "{" * depth + "}" * depth
    assert show(parse(text)) == text


def test_equal_sets_have_one_text() -> None:
    assert show(frozenset({10, 9, -1})) == "{-1, 9, 10}"
    assert parse("{2, 1}") == parse("{1, 2, 1}")


def test_a_record_is_a_function_of_strings() -> None:
    assert parse("[a |-> 1, b |-> 2]") == function({"b": 2, "a": 1})
    assert show(function({"a": 1, "not a name": 2})) == '("a" :> 1 @@ "not a name" :> 2)'
