"""A refusal says where in the user's own text it was noticed: line, column, and what stands around it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.errors import AdmissionError, Place, Reason
from smtspool.query import parse_envelope, parse_file, places
from smtspool.query.places import place_at
from tests.query.generate import scripts

BASE: dict[str, Any] = {
    "schema": "smtspool-query-v1",
    "logic": "QF_BV",
    "declarations": ["(declare-const b Bool)"],
    "prefix": ["b", "(not b)"],
    "target": "b",
}


def refusal(data: str | bytes, name: str = "q.smt2") -> AdmissionError:
    with pytest.raises(AdmissionError) as caught:
        parse_file(name, data if isinstance(data, bytes) else data.encode())
    return caught.value


def place(data: str | bytes, name: str = "q.smt2") -> Place:
    found = refusal(data, name).place
    assert found is not None
    return found


class TestScripts:
    @pytest.mark.parametrize(
        ("script", "line", "column"),
        [
            ("(declare-const p Bool)\n(assert (and p\n\t(or p q)))", 3, 8),
            ("(assert p)\n(check-sat)", 1, 9),
            ("; é (\r\n(maximize 1)", 2, 2),
            ('(set-logic QF_BV)\n(set-option :regular-output-channel "f")', 2, 13),
            ("(check-sat)(pop 3)", 1, 12),
            ("(push\n 1 2)", 2, 2),
            ("stray (check-sat)", 1, 1),
            ("(assert true)\n(set-logic QF_BV)", 2, 2),
            ("(assert true)\n (assert (= true false)", 2, 2),
            ("(assert true))", 1, 14),
            ("(declare-const @p Bool)(declare-const !@p Bool)", 1, 16),
            ("(assert (= ( _ ; two\n bv1 8) (_ bv1 8)))\n(assert q)", 3, 9),
            ("(assert true)\n(assert ( _ bv1 8", 2, 9),
            ("(declare-const p Bool)\n(assert (let ((q p) (r q)) p))", 2, 24),
            ("(assert (! true :named n))(assert (and n m))", 1, 42),
            ("(define-sort B () Bool)(declare-const p B)\n(assert (or p x x))", 2, 15),
        ],
    )
    def test_lines_and_columns_are_those_of_the_text(self, script: str, line: int, column: int) -> None:
        found = place(script)
        assert (found.line, found.column) == (line, column)

    def test_the_characters_around_it_are_of_its_line(self) -> None:
        found = place("(set-logic QF_BV)\n(declare-const p Bool)\n(assert (and p q r))\n(check-sat)")
        assert found == Place(3, 16, "(assert (and p q r))")
        longer = place(f"(assert (and {'true ' * 100} q {'false ' * 100}))")
        assert " q " in longer.near
        assert len(longer.near) < 80

    def test_the_sentence_has_it_all(self) -> None:
        error = refusal("\n(assert q)")
        assert error.reason is Reason.SYMBOL
        assert error.of("q.smt2") == "q.smt2:2:9: 'q' is not declared here, near '(assert q)'"
        assert str(error) == "line 2, column 9: 'q' is not declared here, near '(assert q)'"

    def test_a_limit_is_passed_at_some_command(self) -> None:
        assert place("(push 1)\n(push 999999) (push 1)")[:2] == (2, 15)

    def test_what_is_missing_has_no_place(self) -> None:
        error = refusal("(assert true)")
        assert error.place is None
        assert error.of("q.smt2") == f"q.smt2: {error}"

    def test_the_first_byte_that_is_no_text(self) -> None:
        assert place("(assert true) ; ü\n(assert ".encode() + b"\xff)")[:2] == (2, 9)

    @pytest.mark.parametrize("marks", [2, 7, 1 << 20])
    def test_one_of_very_many(self, marks: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(places, "_MARKS", marks)  # what is told apart at a time is bounded
        script = f"(push)\n(set-info :x ({'( ) ' * 200}))\n(push)(pop)(pop)(pop)(check-sat)"
        assert place(script)[:2] == (3, 17)

    @given(scripts(), st.data())
    def test_a_wrong_command_is_found_wherever_it_stands(self, text: str, data: st.DataObject) -> None:
        starts = [match.start() for match in re.finditer(r"^\(assert", text, re.MULTILINE)]
        at = data.draw(st.sampled_from([*starts, text.index("(check-sat)")]))
        broken = f"{text[:at]}(nowhere){text[at:]}"
        found = place(broken)
        assert (found.line, found.column) == place_at(broken, at + 1)[:2]


class TestEnvelopes:
    @pytest.mark.parametrize("indent", [None, 2])
    @pytest.mark.parametrize(
        ("member", "changes"),
        [
            ("target", {"target": '(or b ; é \U0001f600 \\ "x"\n \t q)'}),
            ("prefix[1]", {"prefix": ["b", "(and b q)"]}),
            ("declarations[1]", {"declarations": ["(declare-const b Bool)", "(define-fun c () Bool q)"]}),
        ],
    )
    def test_a_string_is_read_where_it_stands(
        self, member: str, changes: dict[str, Any], indent: int | None
    ) -> None:
        text = json.dumps({**BASE, **changes}, indent=indent)
        found = place(text, "q.json")
        assert found.member == member
        assert found[:2] == place_at(text, text.index("q)"))[:2]
        assert found.near.endswith("q)")

    def test_an_envelope_that_is_a_value_names_member_and_place_in_it(self) -> None:
        with pytest.raises(AdmissionError) as caught:
            parse_envelope({**BASE, "prefix": ["b", "(and b\n q)"]})
        assert caught.value.place == Place(2, 2, "q)", "prefix[1]")
        assert str(caught.value) == "line 2, column 2: 'q' is not declared here, in prefix[1] near 'q)'"

    @pytest.mark.parametrize(
        ("member", "value"),
        [("target", 7), ("prefix", {}), ("timeout_ms", True), ("priority", "x"), ("surprise", 1)],
    )
    def test_a_wrong_member_is_shown(self, member: str, value: object) -> None:
        text = json.dumps({**BASE, member: value})
        found = place(text, "q.json")
        assert found.member == member
        assert text[found.column - 1 :].startswith(json.dumps(value))

    def test_a_node_of_a_graph_is_shown(self) -> None:
        leaf = {"id": 0, "op": "bool", "bits": 1, "attrs": {"value": True}}
        nodes = [leaf, {"id": 1, "op": "nothing", "bits": 1}]
        graph = {"schema": "symcc-query-ir-v1", "nodes": nodes, "target_root": 0}
        texts = dict.fromkeys(("smt2", "prefix_smt2", "target_smt2"), "x")
        text = json.dumps({**graph, **texts}, indent=1)
        found = place(text, "q.json")
        assert found.member == "nodes[1]"
        assert found[:2] == place_at(text, text.index('{\n   "id": 1'))[:2]

    @pytest.mark.parametrize(
        ("text", "line", "column"),
        [
            ('{"a": 1,\n "b": {"a": 1, "a": 2}}', 2, 16),
            ('{"a": 1, "b": {"a": 1},\n "a": 2}', 2, 2),
            ('{"a": "NaN",\n "b": NaN}', 2, 7),
            ('{"a": [1,\n 99999999999999999999999]}', 2, 2),
            ('{"a": [1,\n 1e999]}', 2, 2),
            ('{"a": [1,\n }', 2, 2),
        ],
    )
    def test_json_is_shown_where_it_is_none(self, text: str, line: int, column: int) -> None:
        assert place(text, "q.json")[:2] == (line, column)
