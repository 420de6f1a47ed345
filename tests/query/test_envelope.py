"""The envelope smtspool-query-v1, and files by their suffix."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from smtspool.errors import AdmissionError, Reason
from smtspool.query import Witness, parse_envelope, parse_file, parse_smt2, to_envelope
from tests.query.generate import scripts

BASE: dict[str, Any] = {
    "schema": "smtspool-query-v1",
    "logic": "QF_BV",
    "declarations": ["(declare-const b (_ BitVec 8))", "(declare-const p Bool)"],
    "prefix": ["p"],
    "target": "(= b #x00)",
}


def refusal(**changes: Any) -> AdmissionError:
    with pytest.raises(AdmissionError) as caught:
        parse_envelope({**BASE, **changes})
    return caught.value


class TestQuery:
    def test_it_is_the_query_of_the_same_script(self) -> None:
        script = (
            "(declare-const b (_ BitVec 8))(declare-const p Bool)(assert p)(assert (= b #x00))(check-sat)"
        )
        assert (parse_envelope(BASE),) == parse_smt2(script)

    @given(scripts())
    def test_there_and_back_is_the_same_query(self, text: str) -> None:
        (query,) = parse_smt2(text, metadata={"a": [1]}, timeout_ms=3, priority=1.5)
        assert parse_envelope(json.loads(json.dumps(to_envelope(query)))) == query

    def test_a_witness_survives_there_and_back(self) -> None:
        query = parse_envelope({**BASE, "witness": {"input_hex": "0aFF", "symbols": {"|b|": 1}}})
        assert query.witness == Witness(b"\x0a\xff", (("b", 1),))
        assert parse_envelope(to_envelope(query)) == query

    def test_prefix_and_declarations_may_be_left_out(self) -> None:
        query = parse_envelope({"schema": "smtspool-query-v1", "logic": "QF_BV", "target": "true"})
        assert (query.prefix, query.target, query.timeout_ms, query.priority) == ((), "true", 10_000, 0.0)


class TestRefusals:
    def test_unknown_members_are_refused_by_name(self) -> None:
        error = refusal(surprise=1)
        assert error.reason is Reason.SCHEMA
        assert "'surprise'" in error.message

    @pytest.mark.parametrize("member", ["schema", "logic", "target"])
    def test_required_members_are_required(self, member: str) -> None:
        document = {name: value for name, value in BASE.items() if name != member}
        with pytest.raises(AdmissionError) as caught:
            parse_envelope(document)
        assert caught.value.reason is Reason.SCHEMA

    @pytest.mark.parametrize(
        "changes",
        [
            {"schema": "smtspool-query-v2"},
            {"schema": 1},
            {"logic": None},
            {"declarations": "(declare-const p Bool)"},
            {"declarations": [1]},
            {"prefix": {}},
            {"prefix": [True]},
            {"target": True},
            {"timeout_ms": 0},
            {"timeout_ms": True},
            {"timeout_ms": 1.0},
            {"timeout_ms": "1"},
            {"priority": True},
            {"priority": "1"},
            {"priority": float("nan")},
            {"priority": 1e13},
            {"metadata": []},
            {"metadata": {"a": 1e300}},
            {"metadata": {"a": float("nan")}},
            {"metadata": {"a": 1 << 64}},
            {"metadata": {"a": -(1 << 63) - 1}},
            {"metadata": {"a": "\ud800"}},
            {"metadata": {"\udfff": 1}},
            {"metadata": {1: 1}},
            {"metadata": {"a": object()}},
            {"witness": []},
            {"witness": {"other": 1}},
            {"witness": {"input_hex": "0"}},
            {"witness": {"input_hex": "0g"}},
            {"witness": {"input_hex": "é0"}},
            {"witness": {"input_hex": 0}},
            {"witness": {"symbols": []}},
            {"witness": {"symbols": {"b": -1}}},
            {"witness": {"symbols": {"b": True}}},
            {"witness": {"symbols": {"b": 0, "|b|": 1}}},
        ],
    )
    def test_members_of_another_type_or_range_are_refused(self, changes: dict[str, Any]) -> None:
        assert refusal(**changes).reason is Reason.SCHEMA

    def test_two_symbols_for_one_byte_are_refused(self) -> None:
        declarations = ["(declare-const b (_ BitVec 8))", "(declare-const c (_ BitVec 8))"]
        error = refusal(
            declarations=declarations, prefix=[], witness={"input_hex": "", "symbols": {"b": 3, "c": 3}}
        )
        assert error.reason is Reason.SCHEMA

    @pytest.mark.parametrize("name", ["p", "nowhere", "b b", "", "bvadd", "(b)"])
    def test_witness_symbols_are_declared_bytes(self, name: str) -> None:
        assert refusal(witness={"input_hex": "", "symbols": {name: 0}}).reason is Reason.SYMBOL

    @pytest.mark.parametrize("text", ["", "true)(assert false", "true true", "true)", "(", "p ;", ") ("])
    def test_a_term_is_exactly_one_term(self, text: str) -> None:
        if text != "p ;":
            assert refusal(target=text).reason is Reason.SYNTAX
            assert refusal(prefix=[text]).reason is Reason.SYNTAX
        else:
            assert parse_envelope({**BASE, "target": text}).target == "p"

    @pytest.mark.parametrize(
        "command",
        ["(assert p)", "(check-sat)", "p", "()", "(exit)", '(set-option :x "y")', "(define-fun-rec)"],
    )
    def test_declarations_only_declare(self, command: str) -> None:
        assert refusal(declarations=[command]).reason is Reason.COMMAND

    def test_declarations_are_one_command_each(self) -> None:
        two = "(declare-const q Bool)(declare-const r Bool)"
        assert refusal(declarations=[two]).reason is Reason.SYNTAX

    def test_other_logics_are_refused_by_name(self) -> None:
        error = refusal(logic="QF_NRA")
        assert error.reason is Reason.LOGIC
        assert "QF_NRA" in error.message

    def test_of_all_logics_the_smallest_is_taken(self) -> None:
        arrays = ["(declare-const m (Array Bool Bool))"]
        functions = ["(declare-fun f (Bool) Bool)", "(declare-const p Bool)"]
        cases = [(BASE["declarations"], "(= b #x00)", "QF_BV"), (functions, "(f p)", "QF_UFBV")]
        cases += [
            (arrays, "(select m true)", "QF_ABV"),
            ([*arrays, *functions], "(f (select m p))", "QF_AUFBV"),
        ]
        for declarations, target, logic in cases:
            document = {**BASE, "declarations": declarations, "prefix": [], "target": target}
            assert parse_envelope({**document, "logic": "ALL"}) == parse_envelope(
                {**document, "logic": logic}
            )


class TestFiles:
    def test_the_suffix_says_what_is_inside(self) -> None:
        assert parse_file("q.json", json.dumps(BASE).encode()) == (parse_envelope(BASE),)
        assert parse_file("a.b.smt2", b"(assert true)(check-sat)(check-sat)")[1].target == "true"

    @pytest.mark.parametrize("name", ["q", "q.smt", "q.json.tmp", "smt2", ".json~", "q.SMT2", ""])
    def test_other_suffixes_are_refused(self, name: str) -> None:
        with pytest.raises(AdmissionError) as caught:
            parse_file(name, b"(check-sat)")
        assert caught.value.reason is Reason.SUFFIX

    @pytest.mark.parametrize("name", ["q.json", "q.smt2"])
    @pytest.mark.parametrize("data", [b"\xff", b"\xed\xa0\x80", b"(\xc3", "é".encode("utf-16")])
    def test_other_encodings_are_refused(self, name: str, data: bytes) -> None:
        with pytest.raises(AdmissionError) as caught:
            parse_file(name, data)
        assert caught.value.reason is Reason.ENCODING
