"""Every limit holds at its value and refuses one more."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from smtspool.errors import AdmissionError, Reason
from smtspool.query import Limits, parse_envelope, parse_file, parse_smt2

CHECK = "(check-sat)"


def nested(depth: int) -> str:
    """A script that opens ``depth`` parentheses at once."""
    return "(assert " + "(not " * (depth - 1) + "true" + ")" * depth + CHECK


def envelope(**members: Any) -> dict[str, Any]:
    return {"schema": "smtspool-query-v1", "logic": "QF_BV", "target": "true", **members}


def with_bytes(count: int, last: int, data: str = "") -> dict[str, Any]:
    declarations = [f"(declare-const b{n} (_ BitVec 8))" for n in range(count)]
    offsets = {f"b{n}": last - n for n in range(count)}
    return envelope(declarations=declarations, witness={"input_hex": data, "symbols": offsets})


def graph(nodes: int) -> dict[str, Any]:
    true = {"op": "bool", "bits": 1, "children": [], "attrs": {"value": True}}
    return {
        "schema": "symcc-query-ir-v1",
        "nodes": [{"id": at, **true} for at in range(nodes)],
        "target_root": 0,
        "smt2": "x",
        "prefix_smt2": "x",
        "target_smt2": "x",
    }


def deep(depth: int) -> object:
    return {"a": deep(depth - 1)} if depth else 1


def shortened(count: int) -> str:
    """Declarations of the sort S."""
    return "".join(f"(declare-const b{at} S)" for at in range(count))


Read = Callable[[int, Limits], object]

SCRIPTS: dict[str, tuple[int, Callable[[int], str]]] = {
    "script": (100, lambda n: CHECK + ";" * (n - len(CHECK))),
    "depth": (50, nested),
    "symbol": (20, lambda n: f"(declare-const {'x' * n} Bool){CHECK}"),
    "width": (16, lambda n: f"(declare-const b (_ BitVec {n})){CHECK}"),
    "declarations": (7, lambda n: "".join(f"(declare-const b{at} Bool)" for at in range(n)) + CHECK),
    "assertions": (7, lambda n: "(assert true)" * n + CHECK),
    "queries": (7, lambda n: CHECK * n),
    "replicated": (7, lambda n: "(declare-const p Bool)" + CHECK + "(assert p)" * (n - 3) + CHECK),
    "replicated_text": (30, lambda n: f"(declare-const {'a' * (n - 26)} Bool){CHECK}"),
    "expansion": (8, lambda n: f"(define-sort S () Bool){shortened(-(-n // len('Bool')))}{CHECK}"),
    "written": (30, lambda n: "(declare-const p Bool)" + "(assert p)" * (n - 23) + CHECK),
    "model_bits": (9, lambda n: f"(declare-const a Bool)(declare-const b (_ BitVec {n - 1})){CHECK}"),
}
ENVELOPES: dict[str, tuple[int, Callable[[int], dict[str, Any]]]] = {
    "nodes": (5, graph),
    "witness": (9, lambda n: with_bytes(0, 0, "00" * n)),
    "witness_extension": (5, lambda n: with_bytes(1, n - 1)),
    "witness_symbols": (3, lambda n: with_bytes(n, 5)),
    "metadata_depth": (4, lambda n: envelope(metadata=deep(n))),
    "metadata_list": (4, lambda n: envelope(metadata={"a": [0] * n})),
    "metadata_members": (4, lambda n: envelope(metadata={str(at): 0 for at in range(n)})),
    "metadata_key": (4, lambda n: envelope(metadata={"k" * n: 0})),
}


def accepted(read: Callable[[], object]) -> bool:
    try:
        read()
    except AdmissionError as error:
        assert error.reason is Reason.TOO_LARGE
        return False
    return True


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(name: str) -> None:
    limit, text = SCRIPTS[name]
    limits = Limits(**{name: limit})
    assert accepted(lambda: parse_smt2(text(limit), limits))
    assert not accepted(lambda: parse_smt2(text(limit + 1), limits))


@pytest.mark.parametrize("name", ENVELOPES)
def test_envelopes(name: str) -> None:
    limit, document = ENVELOPES[name]
    limits = Limits(**{name: limit})
    assert accepted(lambda: parse_envelope(document(limit), limits))
    assert not accepted(lambda: parse_envelope(document(limit + 1), limits))


def test_the_sort_an_abbreviation_stands_for() -> None:
    """Twenty doublings would be a million characters of sort."""
    doubling = "(define-sort S0 () Bool)" + "".join(
        f"(define-sort S{n} () (Array S{n - 1} S{n - 1}))" for n in range(1, 20)
    )
    assert not accepted(lambda: parse_smt2(doubling + CHECK))
    sort = "(Array Bool (_ BitVec 8))"
    spaced = len(sort.replace("(Array", "( Array").replace("8))", "8) )")) + 1
    assert accepted(lambda: parse_smt2(f"(declare-const m {sort}){CHECK}", Limits(sort=spaced)))
    assert not accepted(lambda: parse_smt2(f"(declare-const m {sort}){CHECK}", Limits(sort=spaced - 1)))


def test_abbreviations_in_terms_are_counted_before_they_are_written() -> None:
    array = "((as const (Array S S)) #x00)"
    script = f"(define-sort S () (_ BitVec 8))(assert (= {array} {array})){CHECK}"
    written = 4 * len("(_ BitVec 8)")
    assert accepted(lambda: parse_smt2(script, Limits(expansion=written)))
    assert not accepted(lambda: parse_smt2(script, Limits(expansion=written - 1)))


def test_an_array_has_the_bits_of_what_it_holds() -> None:
    script = f"(declare-const m (Array Bool (Array Bool (_ BitVec 9)))){CHECK}"
    assert accepted(lambda: parse_smt2(script, Limits(model_bits=9)))
    assert not accepted(lambda: parse_smt2(script, Limits(model_bits=8)))


@pytest.mark.parametrize("suffix", ["smt2", "json"])
def test_the_bytes_of_a_file(suffix: str) -> None:
    data = CHECK.encode() if suffix == "smt2" else json.dumps(envelope()).encode()
    assert accepted(lambda: parse_file(f"q.{suffix}", data, Limits(file=len(data))))
    assert not accepted(lambda: parse_file(f"q.{suffix}", data, Limits(file=len(data) - 1)))


def test_text_is_measured_in_utf8() -> None:
    text = CHECK + ";é"
    assert accepted(lambda: parse_smt2(text, Limits(script=len(CHECK) + 3)))
    assert not accepted(lambda: parse_smt2(text, Limits(script=len(CHECK) + 2)))


def test_indices_and_literals_are_widths_too() -> None:
    limits = Limits(width=16)
    for bits, term in [
        (16, "#xabcd"),
        (16, "#b" + "0" * 16),
        (16, "((_ zero_extend 15) #b1)"),
        (16, "(concat #xab #xcd)"),
        (16, "(_ bv1 16)"),
    ]:
        assert accepted(lambda term=term: parse_smt2(f"(assert (= {term} {term})){CHECK}", limits)), bits
    for term in (
        "#xabcde",
        "#b" + "0" * 17,
        "((_ zero_extend 17) #b1)",
        "((_ zero_extend 16) #b1)",
        "(concat #xab #xcd #b1)",
        "(_ bv1 17)",
        "(_ bv1 9999999999)",
    ):
        assert not accepted(lambda term=term: parse_smt2(f"(assert (= {term} {term})){CHECK}", limits))


def test_a_decimal_constant_too_long_to_convert() -> None:
    for digits, verdict in ((4000, True), (4001, False), (100_000, False)):
        term = f"(_ bv{'9' * digits} 100000)"
        assert accepted(lambda term=term: parse_smt2(f"(assert (= {term} {term})){CHECK}")) is verdict


def test_scopes_count_as_depth() -> None:
    limits = Limits(depth=5)
    assert accepted(lambda: parse_smt2("(push 4)" + CHECK, limits))
    assert not accepted(lambda: parse_smt2("(push 5)" + CHECK, limits))
    assert not accepted(lambda: parse_smt2("(push 999999999)" + CHECK))


def test_offsets_end_where_the_longest_input_does() -> None:
    limits = Limits(witness=9)
    assert accepted(lambda: parse_envelope(with_bytes(1, 8), limits))
    with pytest.raises(AdmissionError):
        parse_envelope(with_bytes(1, 9), limits)


@pytest.mark.parametrize("member", ["timeout_ms", "priority"])
def test_ranges(member: str) -> None:
    limit = getattr(Limits(), member)
    assert getattr(parse_envelope(envelope(**{member: limit})), member) == limit
    with pytest.raises(AdmissionError):
        parse_envelope(envelope(**{member: limit + 1}))


def test_assertions_of_a_graph() -> None:
    document = {**graph(1), "prefix_roots": [0] * 3}
    assert accepted(lambda: parse_envelope(document, Limits(assertions=4)))
    assert not accepted(lambda: parse_envelope(document, Limits(assertions=3)))


def test_texts_of_a_graph() -> None:
    document = {**graph(1), "smt2": "xxxx"}
    assert accepted(lambda: parse_envelope(document, Limits(text=40)))
    assert not accepted(lambda: parse_envelope({**document, "smt2": "x" * 41}, Limits(text=40)))


@pytest.mark.parametrize("member", ["declarations", "prefix"])
def test_an_envelope_is_bounded_as_a_whole(member: str) -> None:
    """Its texts are read one by one, each far below the limit of a script."""
    texts = {
        "declarations": [f"(define-fun d{at} () Bool (and true true))" for at in range(10)],
        "prefix": ["(and true true)"] * 10,
    }
    document = envelope(**{member: texts[member]})
    written = sum(map(len, texts[member])) + len("true")
    assert accepted(lambda: parse_envelope(document, Limits(written=written)))
    assert not accepted(lambda: parse_envelope(document, Limits(written=written - 1)))


def test_a_script_may_write_out_all_it_has_room_for() -> None:
    """Canonical text takes less than twice the place of its source, abbreviations apart."""
    assert Limits().written >= 2 * Limits().script


def test_the_list_is_complete() -> None:
    elsewhere = {"file", "timeout_ms", "priority", "json_depth", "json_values", "sort", "text"}
    assert {field.name for field in fields(Limits)} == SCRIPTS.keys() | ENVELOPES.keys() | elsewhere
