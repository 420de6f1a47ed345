"""Models with values of declared sorts: numbered alike whatever engine they come from, and checked by all."""

from __future__ import annotations

import pytest

from smtspool.errors import ModelError
from smtspool.query import Query, complete, definitions, parse_smt2, refutable, rename_model, script
from tests.query.engines import ENGINES

DECLARED = "(set-logic QF_AUFBV)(declare-sort S 0)(declare-const a S)(declare-const b S)"
TEXT = DECLARED + "(declare-fun f (S) (_ BitVec 8))(assert (distinct (f a) (f b)))(check-sat)"
# The same model as the engines print it.
MODELS = {
    "z3": {
        "a": "S!val!1",
        "b": "S!val!0",
        "f": "(define-fun f ((x!0 S)) (_ BitVec 8) (ite (= x!0 S!val!1) #x80 #x00))",
    },
    "bitwuzla": {
        "a": "(as @const_1 S)",
        "b": "(as @const_2 S)",
        "f": "(define-fun f ((x!0 S)) (_ BitVec 8) (ite (= x!0 (as @const_1 S)) #x80 #x00))",
    },
    "cvc5": {
        "a": "(as @S_0 S)",
        "b": "(as @S_1 S)",
        "f": "(define-fun f ((x!0 S)) (_ BitVec 8) (ite (= x!0 (as @S_0 S)) #x80 #x00))",
    },
}
NUMBERED = {"a": "@0", "b": "@1", "f": "(define-fun f ((x!0 S)) (_ BitVec 8) (ite (= x!0 @0) #x80 #x00))"}


def one(text: str) -> Query:
    (query,) = parse_smt2(text)
    return query


def check(query: Query, model: dict[str, str]) -> set[str]:
    return {ask(script(query, model=model)) for ask in ENGINES.values()}


@pytest.mark.parametrize("engine", MODELS)
def test_every_engines_model_is_numbered_alike(engine: str) -> None:
    query = one(TEXT)
    model = complete(query, MODELS[engine])
    assert model == NUMBERED
    assert complete(query, model) == model
    assert check(query, model) == {"sat"}


def test_a_wrong_model_is_refuted() -> None:
    query = one(TEXT)
    assert check(query, {**NUMBERED, "b": "@0"}) == {"unsat"}
    assert refutable(one(TEXT.replace("QF_AUFBV", "QF_UFBV")))
    assert not refutable(query)  # arrays might tell apart what is equal for want of elements


def test_numbers_that_differ_are_elements_that_differ() -> None:
    names = [f"c{at}" for at in range(9)]
    declared = "".join(f"(declare-const {name} S)" for name in names)
    query = one(
        f"(set-logic QF_UFBV)(declare-sort S 0){declared}(assert (distinct {' '.join(names)}))(check-sat)"
    )
    assert check(query, {name: f"@{at}" for at, name in enumerate(names)}) == {"sat"}
    assert check(query, {name: f"@{at % 8}" for at, name in enumerate(names)}) == {"unsat"}


def test_a_symbol_without_value_gets_an_element() -> None:
    query = one(DECLARED + "(declare-const m (Array S S))(declare-fun g (S) S)(check-sat)")
    model = complete(query, {})
    assert model["a"] == "@0"
    assert check(query, model) == {"sat"}


def test_arrays_and_functions_hold_elements() -> None:
    query = one(
        DECLARED + "(declare-const m (Array S (Array S (_ BitVec 4))))(declare-fun g (S S) S)"
        "(define-fun d ((x S)) S (g x (g b x)))(define-sort T () S)(declare-const c T)"
        "(assert (= c (d a)))(assert (= #x3 (select (select m a) c)))(assert (not (= a b c)))(check-sat)"
    )
    values = "((as const (Array S (_ BitVec 4))) #x0)"
    inner = f"(store {values} S!val!7 #x3)"
    model = complete(
        query,
        {
            "a": "S!val!0",
            "b": "S!val!1",
            "c": "S!val!7",
            "m": f"(store ((as const (Array S (Array S (_ BitVec 4)))) {values}) S!val!0 {inner})",
            "g": "(define-fun g ((x!0 S) (x!1 S)) S (ite (= x!0 S!val!0) S!val!7 S!val!0))",
        },
    )
    assert check(query, model) == {"sat"}


def test_sorts_with_parameters() -> None:
    query = one(
        "(set-logic QF_UFBV)(declare-sort L 1)(declare-sort |odd S| 0)"
        "(declare-const a (L |odd S|))(declare-const b (L Bool))"
        "(declare-fun f ((L |odd S|)) (L Bool))(assert (= b (f a)))(check-sat)"
    )
    model = complete(
        query,
        {
            "a": "L!val!0",
            "b": "(as |@(L Bool)_0| (L Bool))",
            "f": "(define-fun f ((x (L |odd S|))) (L Bool) L!val!1)",
        },
    )
    assert model["f"] == "(define-fun f ((x (L |odd S|))) (L Bool) @2)"
    text = script(query, model={**model, "b": "@2"})
    assert [ENGINES[engine](text) for engine in ("z3", "cvc5")] == ["sat", "sat"]


def test_a_model_moves_to_a_query_with_other_names() -> None:
    there = one(TEXT)
    here = one(TEXT.replace("S", "Sort").replace(" f ", " g ").replace("(f ", "(g "))
    assert here.form.digest == there.form.digest
    model = complete(here, rename_model(NUMBERED, there.form, here.form))
    assert model["g"].startswith("(define-fun g ((x!0 Sort)) ")
    assert check(here, model) == {"sat"}


@pytest.mark.parametrize(
    "values",
    [
        {"a": ""},
        {"a": "@0 @1"},
        {"a": "(as const (Array Other S))"},
        {"f": "#x00"},
        {"f": "(define-fun f () (_ BitVec 8) #x00)"},
        {"f": "(define-fun f ((x S) (y S)) (_ BitVec 8) #x00)"},
        {"f": "(define-fun f ((x S)) (_ BitVec 8) #x00) (exit)"},
    ],
    ids=str,
)
def test_what_is_no_value_is_refused(values: dict[str, str]) -> None:
    with pytest.raises(ModelError):
        complete(one(TEXT), {**NUMBERED, **values})


@pytest.mark.parametrize(
    "value", ["#x00", "true", "(bvnot #b0)", "a", "S", "(f @0)", "@x", "(_ bv1 1) (exit)", "(not true)"]
)
def test_a_value_of_another_sort_is_no_model(value: str) -> None:
    with pytest.raises(ModelError):
        script(one(TEXT), model={**NUMBERED, "a": value})


def test_the_model_is_shown_with_its_numbers() -> None:
    assert definitions(one(TEXT), NUMBERED) == [
        "(define-fun a () S @0)",
        "(define-fun b () S @1)",
        NUMBERED["f"],
    ]
