"""Models as text, and the inputs they stand for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from smtspool.errors import MisuseError, ModelError
from smtspool.query import (
    Query,
    Witness,
    candidate,
    complete,
    default_value,
    parse_envelope,
    parse_smt2,
    rename_model,
    script,
)

BYTES = "(declare-const a (_ BitVec 8))(declare-const b (_ BitVec 8))"
FUNCTIONS = "(set-logic QF_AUFBV)(declare-fun f ((_ BitVec 8) Bool) Bool)(declare-const m (Array Bool Bool))"


def one(text: str) -> Query:
    (query,) = parse_smt2(text + "(check-sat)")
    return query


class TestScript:
    def test_it_is_the_whole_question(self) -> None:
        query = one(BYTES + "(define-fun c () Bool (= a b))(assert c)(assert (not c))")
        assert script(query) == (
            "(set-logic QF_BV)\n"
            "(declare-fun a () (_ BitVec 8))\n"
            "(declare-fun b () (_ BitVec 8))\n"
            "(define-fun c () Bool (= a b))\n"
            "(assert c)\n"
            "(assert (not c))\n"
            "(check-sat)\n"
        )

    def test_a_model_defines_what_was_declared(self) -> None:
        query = one(BYTES + "(define-fun c () Bool (= a b))(assert c)")
        fixed = script(query, model={"a": "#x01", "b": "(_ bv1 8)"})
        assert "(define-fun a () (_ BitVec 8) #x01)\n(define-fun b () (_ BitVec 8) (_ bv1 8))\n" in fixed
        assert "declare-fun" not in fixed
        assert parse_smt2(fixed)[0].symbols == ()

    def test_functions_and_arrays_are_defined_too(self) -> None:
        query = one(FUNCTIONS + "(assert (f #x00 (select m true)))")
        model = {
            "f": "(define-fun f ((x!0 (_ BitVec 8)) (@q Bool)) Bool\n (ite (= x!0 #x00) @q false))",
            "m": "(store ((as const (Array Bool Bool)) false) true true)",
        }
        fixed = parse_smt2(script(query, model=model))[0]
        assert fixed.declarations == (
            "(define-fun f ((x!0 (_ BitVec 8)) (!@q Bool)) Bool (ite (= x!0 #x00) !@q false))",
            f"(define-fun m () (Array Bool Bool) {model['m']})",
        )

    @pytest.mark.parametrize(
        "value",
        [
            "",
            "#x00 #x00",
            "#x00) (assert true",
            "#x00)(exit)(define-fun z () Bool true",
            ") (",
            "b",
            "(bvadd b #x00)",
            "(bvadd #x01 #x00)",
            "(let ((x #x00)) x)",
            "nowhere",
            "|",
            '"text"',
            "(define-fun a () (_ BitVec 8) #x00)",
            "(lambda ((x Bool)) x)",
            "(_ as-array f)",
            "#x0",
            "#b000000000",
            "true",
            "(_ bv0 9)",
        ],
    )
    def test_a_lying_engine_cannot_say_more_than_a_value(self, value: str) -> None:
        query = one(BYTES + "(assert (= a b))")
        with pytest.raises(ModelError):
            script(query, model={"a": value, "b": "#x00"})

    @pytest.mark.parametrize(
        "value",
        [
            "true",
            "(define-fun f () Bool true)",
            "(define-fun g ((x (_ BitVec 8)) (y Bool)) Bool true)",
            "(define-fun f ((x (_ BitVec 8)) (y Bool)) (_ BitVec 8) x)",
            "(define-fun f ((x Bool) (y Bool)) Bool true)",
            "(define-fun f ((x (_ BitVec 8)) (y Bool)) Bool (f x y))",
            "(declare-fun f ((_ BitVec 8) Bool) Bool)",
            "(define-fun f ((x (_ BitVec 8)) (y Bool)) Bool true)(exit)",
            "(assert true)",
        ],
    )
    def test_a_function_is_defined_with_its_signature_alone(self, value: str) -> None:
        query = one(FUNCTIONS + "(assert (f #x00 true))")
        with pytest.raises(ModelError):
            script(query, model={"f": value, "m": "((as const (Array Bool Bool)) false)"})

    def test_a_missing_value_is_refused(self) -> None:
        with pytest.raises(ModelError, match="no value for b"):
            script(one(BYTES + "(assert (= a b))"), model={"a": "#x00"})


class TestDefaults:
    @pytest.mark.parametrize(
        ("sort", "value"),
        [
            ("Bool", "false"),
            ("(_ BitVec 1)", "#b0"),
            ("(_ BitVec 8)", "#x00"),
            ("(_ BitVec 9)", "#b000000000"),
            ("U", "@0"),
            ("(Array U (L Bool))", "((as const (Array U (L Bool))) @0)"),
            ("(Array Bool (_ BitVec 4))", "((as const (Array Bool (_ BitVec 4))) #x0)"),
            (
                "(Array (Array Bool Bool) (Array Bool Bool))",
                "((as const (Array (Array Bool Bool) (Array Bool Bool)))"
                " ((as const (Array Bool Bool)) false))",
            ),
        ],
    )
    def test_every_sort_has_one(self, sort: str, value: str) -> None:
        assert default_value(sort) == value

    def test_a_completed_model_fits_the_query(self) -> None:
        query = one(FUNCTIONS + BYTES + "(assert (f a (select m true)))")
        model = complete(query, {"a": "#x07", "unknown": "true"})
        assert list(model) == ["f", "m", "a", "b"]
        assert (model["a"], model["b"]) == ("#x07", "#x00")
        script(query, model=model)


class TestRenaming:
    def test_values_move_to_the_symbols_of_the_other_query(self) -> None:
        text = "(declare-fun {} ((_ BitVec 8)) Bool)(declare-const {} (_ BitVec 8))(assert ({} {}))"
        there = one("(set-logic QF_UFBV)" + text.format("f", "a", "f", "a"))
        here = one("(set-logic QF_UFBV)(declare-const z Bool)" + text.format("|g h|", "f", "|g h|", "f"))
        model = {"f": "(define-fun f ((f (_ BitVec 8))) Bool (= f #x01))", "a": "#x01"}
        renamed = rename_model(model, there.form, here.form)
        assert renamed == {"|g h|": "(define-fun |g h| ((f (_ BitVec 8))) Bool (= f #x01))", "f": "#x01"}
        script(here, model=complete(here, renamed))

    def test_other_forms_are_refused(self) -> None:
        with pytest.raises(MisuseError):
            rename_model({}, one("(assert true)").form, one("(assert false)").form)


class TestCandidate:
    def witness(self, symbols: Mapping[str, int], data: str = "000102") -> Witness:
        query = parse_envelope(
            {
                "schema": "smtspool-query-v1",
                "logic": "QF_BV",
                "declarations": ["(declare-const a (_ BitVec 8))", "(declare-const b (_ BitVec 8))"],
                "target": "(= a b)",
                "witness": {"input_hex": data, "symbols": dict(symbols)},
            }
        )
        assert query.witness is not None
        return query.witness

    @pytest.mark.parametrize("value", ["#xfe", "#xFE", "#b11111110", "(_ bv254 8)"])
    def test_bytes_with_a_symbol_take_its_value(self, value: str) -> None:
        assert candidate(self.witness({"a": 1}), {"a": value, "b": "#x00"}) == b"\x00\xfe\x02"

    def test_a_symbol_past_the_end_extends_the_input(self) -> None:
        assert candidate(self.witness({"a": 5}), {"a": "#x09"}) == b"\x00\x01\x02\x00\x00\x09"
        assert candidate(self.witness({"a": 0, "b": 1}, ""), {"b": "#x09"}) == b"\x00\x09"

    def test_a_symbol_without_value_keeps_its_byte(self) -> None:
        assert candidate(self.witness({"a": 2}), {}) == b"\x00\x01\x02"

    @pytest.mark.parametrize("value", ["true", "#x1", "#x100", "(_ bv256 8)", "(_ bv1 9)", "", "#xfe "])
    def test_other_values_are_refused(self, value: str) -> None:
        with pytest.raises(ModelError, match="not an 8-bit literal"):
            candidate(self.witness({"a": 1}), {"a": value})
