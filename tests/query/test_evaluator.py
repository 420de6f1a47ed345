"""The evaluator agrees with all three engines: every operator on small widths, random terms on any."""

from __future__ import annotations

import itertools
import os
import re
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from time import monotonic, process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smtspool.errors import AdmissionError, ModelError
from smtspool.query import Query, Status, complete, evaluate, parse_file, parse_smt2, script
from smtspool.query.arrays import Bits, Value
from smtspool.query.operators import ARRAYS, BIT_VECTORS, CORE
from smtspool.query.semantics import OPERATORS, indexed_or_literal
from smtspool.solve import ForkServer, PersistentSolver, parse_engine
from tests.query.engines import ENGINES
from tests.query.generate import script_of
from tests.query.sorted_terms import sorted_script

BOOLEANS = (False, True)
ONE = "bvnot bvneg bvinc bvdec bvredor bvredand bvredxor bvnego"
ANY = "bvand bvor bvxor bvadd bvmul"
TWO = """
    bvand bvor bvxor bvadd bvmul bvnand bvnor bvxnor bvsub bvudiv bvurem bvsdiv bvsrem bvsmod bvshl bvlshr
    bvashr bvrol bvror bvcomp bvult bvule bvugt bvuge bvslt bvsle bvsgt bvsge
    bvuaddo bvsaddo bvumulo bvsmulo bvusubo bvssubo bvsdivo = distinct
"""
INDEXED = ("zero_extend", "sign_extend", "repeat", "rotate_left", "rotate_right")

Case = tuple[str, tuple[Value, ...]]  # an operator as it is written, and arguments


def vectors(*widths: int) -> list[Bits]:
    return [(width, number) for width in widths for number in range(1 << width)]


def literal(value: Value) -> str:
    if isinstance(value, tuple):
        return f"#b{value[1]:0{value[0]}b}"
    return str(value).lower()


def meaning(operator: str) -> Any:
    """The evaluator's function."""
    return OPERATORS.get(operator) or indexed_or_literal(operator)


def claim(case: Case) -> str:
    """That it has the value that the evaluator has for it."""
    operator, arguments = case
    value = meaning(operator)(*arguments)
    return f"(= ({operator} {' '.join(map(literal, arguments))}) {literal(value)})"


def small(operator: str, width: int) -> Iterator[Case]:
    """All applications to vectors of ``width`` bits, or to Booleans."""
    for count, names in ((1, ONE), (2, TWO), (3, ANY if width < 3 else "")):
        if operator in names.split():
            for arguments in itertools.product(vectors(width), repeat=count):
                yield operator, arguments
    if operator == "concat":
        for other in range(1, width + 1):
            for one, two in itertools.product(vectors(width), vectors(other)):
                yield from ((operator, pair) for pair in ((one, two), (two, one), (two, one, two)))
    if operator in ("bvite", "ite"):
        conditions = vectors(1) if operator == "bvite" else BOOLEANS
        for arguments in itertools.product(conditions, vectors(width), vectors(width)):
            yield operator, arguments
    if operator == "extract":
        for last, first in itertools.combinations_with_replacement(range(width), 2):
            yield from ((f"(_ extract {first} {last})", (vector,)) for vector in vectors(width))
    if operator in INDEXED:
        for index in range(operator == "repeat", width + 3):
            yield from ((f"(_ {operator} {index})", (vector,)) for vector in vectors(width))


def boolean(operator: str) -> Iterator[Case]:
    counts = {"not": [1], "ite": [3]}.get(operator, [1, 2, 3, 4] if operator in ("and", "or") else [2, 3, 4])
    for count in counts if operator in CORE else []:
        yield from ((operator, arguments) for arguments in itertools.product(BOOLEANS, repeat=count))


EVERY = [*sorted(CORE | BIT_VECTORS), "extract", *INDEXED]


def refuted(claims: list[str]) -> list[str]:
    """Engines that have another value for one of these, as the reader writes them for engines."""
    text = f"(set-logic QF_BV)(assert (not (and {' '.join(claims)})))(check-sat)"
    (query,) = parse_smt2(text)
    assert evaluate(query, {}) is False
    return [engine for engine, ask in ENGINES.items() if ask(script(query)) != "unsat"]


def test_the_evaluator_knows_every_operator() -> None:
    assert OPERATORS.keys() == CORE.keys() | BIT_VECTORS.keys() | ARRAYS.keys()


@pytest.mark.parametrize("operator", EVERY)
def test_all_values_up_to_three_bits(operator: str) -> None:
    claims = [claim(case) for width in (1, 2, 3) for case in small(operator, width)]
    claims += map(claim, boolean(operator))
    assert claims
    assert refuted(claims) == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [4, 5])
@pytest.mark.parametrize("operator", EVERY)
def test_all_values_of_more_bits(operator: str, width: int) -> None:
    claims = list(map(claim, small(operator, width)))
    assert not claims or refuted(claims) == []


def test_a_wrong_value_is_noticed() -> None:
    (query,) = parse_smt2("(set-logic QF_BV)(assert (= (bvudiv #b01 #b00) #b00))(check-sat)")
    assert evaluate(query, {}) is False
    assert {ask(script(query)) for ask in ENGINES.values()} == {"unsat"}


@st.composite
def wide_cases(draw: st.DrawFn) -> Case:
    width = draw(st.sampled_from((31, 32, 33, 63, 64, 65, 100, 128, 257, 1000)) | st.integers(1, 300))
    top = (1 << width) - 1
    numbers = st.integers(0, top) | st.sampled_from((0, 1, top, top >> 1, (top >> 1) + 1, width & top))
    operator = draw(st.sampled_from(sorted({*ONE.split(), *TWO.split(), "extract", *INDEXED} - {"bvredxor"})))
    if operator == "extract":
        first = draw(st.integers(0, width - 1))
        operator = f"(_ extract {first} {draw(st.integers(0, first))})"
    elif operator in INDEXED:
        operator = f"(_ {operator} {draw(st.integers(1, 3 if operator == 'repeat' else 300))})"
    count = 2 if operator in TWO.split() else 1
    return operator, tuple((width, draw(numbers)) for _ in range(count))


@settings(max_examples=40)
@given(st.lists(wide_cases(), min_size=1, max_size=20))
def test_values_of_any_width(cases: list[Case]) -> None:
    assert refuted(list(map(claim, cases))) == []


# -- whole queries ----------------------------------------------------------------------------------------


def ask(query: Query, model: dict[str, str]) -> set[bool]:
    """What the engines say of the model."""
    return {engine(script(query, model=model)) == "sat" for engine in ENGINES.values()}


def value_of(rnd: Random, sort: str) -> str:
    if sort == "Bool":
        return rnd.choice(("true", "false"))
    if sort.startswith("(Array"):
        value = f"((as const {sort}) {value_of(rnd, '(_ BitVec 8)')})"
        for _ in range(rnd.randrange(6)):
            value = f"(store {value} {value_of(rnd, '(_ BitVec 3)')} {value_of(rnd, '(_ BitVec 8)')})"
        return value
    width = int(sort.split()[2].rstrip(")"))
    return f"#b{rnd.randrange(1 << width):0{width}b}"


def function_of(rnd: Random) -> str:
    """A table for ``f`` of the random scripts."""
    body = value_of(rnd, "(_ BitVec 8)")
    for _ in range(rnd.randrange(5)):
        key, flag = value_of(rnd, "(_ BitVec 4)"), value_of(rnd, "Bool")
        body = f"(ite (and (= a!0 {key}) (= a!1 {flag})) {value_of(rnd, '(_ BitVec 8)')} {body})"
    return f"(define-fun f ((a!0 (_ BitVec 4)) (a!1 Bool)) (_ BitVec 8) {body})"


def random_model(query: Query, rnd: Random) -> dict[str, str]:
    return {
        symbol.name: function_of(rnd) if symbol.params else value_of(rnd, symbol.sort)
        for symbol in query.symbols
    }


@pytest.mark.parametrize("generate", [script_of, sorted_script])
def test_random_terms_with_arrays_and_functions(generate: Callable[[int], str]) -> None:
    truths = []
    for seed in range(60):
        (query,) = parse_smt2(generate(seed))
        model = random_model(query, Random(seed))
        truths.append(evaluate(query, model))
        assert ask(query, model) == {truths[-1]}, seed
    assert truths.count(True) > 3 < truths.count(False)


def evaluated(text: str, **model: str) -> bool | None:
    (query,) = parse_smt2(text + "(check-sat)")
    said = evaluate(query, model)
    if said is not None:
        assert ask(query, model) == {said}
    return said


BYTES = "(Array (_ BitVec 1) (_ BitVec 8))"
A = f"(set-logic QF_ABV)(declare-const a {BYTES})(declare-const b {BYTES})"


def const(element: str, key: str = "(_ BitVec 1)") -> str:
    return f"((as const (Array {key} (_ BitVec 8))) {element})"


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (const("#x01"), const("#x01"), True),
        (const("#x01"), const("#x02"), False),
        (f"(store {const('#x01')} #b0 #x02)", f"(store {const('#x02')} #b1 #x01)", True),
        (f"(store {const('#x01')} #b0 #x02)", f"(store {const('#x02')} #b0 #x01)", False),
        (f"(store (store {const('#x01')} #b0 #x02) #b1 #x02)", const("#x02"), True),
        (f"(store {const('#x01')} #b0 #x01)", const("#x01"), True),
    ],
)
def test_arrays_that_hold_the_same_are_equal(a: str, b: str, equal: bool) -> None:
    assert evaluated(f"{A}(assert (= a b))", a=a, b=b) is equal
    assert evaluated(f"{A}(assert (distinct a b))", a=a, b=b) is not equal


def test_arrays_of_arrays() -> None:
    sort = "(Array (_ BitVec 1) (Array (_ BitVec 8) (_ BitVec 8)))"
    text = f"""(set-logic QF_ABV)(declare-const m {sort})(declare-const x (_ BitVec 8))
        (assert (= (store m #b0 (store (select m #b0) x x)) m))"""
    inner = const("#x00", "(_ BitVec 8)")
    plain = f"((as const {sort}) {inner})"
    (query,) = parse_smt2(text + "(check-sat)")
    assert evaluate(query, {"m": plain, "x": "#x00"}) is True
    assert evaluate(query, {"m": plain, "x": "#x01"}) is False
    assert evaluate(query, {"m": f"(store {plain} #b0 (store {inner} #x01 #x01))", "x": "#x01"}) is True


def test_old_versions_of_an_array_stay_as_they_are() -> None:
    versions = "(let ((b (store a #b0 #x05))) (let ((c (store b #b1 #x06)) (d (store b #b0 #x07)))"
    holds = {"c": ("05", "06"), "a": ("00", "00"), "d": ("07", "00"), "b": ("05", "00")}
    held = " ".join(
        f"(= (select {name} #b{key}) #x{value})"
        for name, values in holds.items()
        for key, value in enumerate(values)
    )
    assert evaluated(f"{A}(assert {versions} (and {held} {held}))))", a=const("#x00"), b=const("#x00"))


def test_names_mean_what_is_nearest() -> None:
    text = """(set-logic QF_BV)(declare-const x (_ BitVec 8))
        (define-fun y () (_ BitVec 8) (bvadd x #x01))
        (define-fun f ((x (_ BitVec 8))) (_ BitVec 8) (bvmul x y))
        (define-fun g ((y (_ BitVec 8))) (_ BitVec 8) (let ((x y) (y x)) (bvsub (f x) (f y))))
        (assert (let ((x #x07) (y x)) (let ((y (bvadd x y))) (= (g y) (bvsub (f #x09) (f #x02))))))
        (assert (= x #x02))"""
    assert evaluated(text, x="#x02") is True
    assert evaluated(text, x="#x03") is False


def test_words_of_other_logics_are_names() -> None:
    text = """(set-logic QF_BV)(declare-const select (_ BitVec 8))
        (define-fun store ((a (_ BitVec 8))) Bool (let ((const a)) (= const select)))
        (assert (let ((x select) (select #x01)) (store (bvadd x select))))"""
    assert evaluated(text, select="#x01") is False


SORT = "(declare-sort S 0)(declare-const a S)(declare-const b S)(declare-fun f (S) S)"


def test_declared_sorts() -> None:
    text = f"(set-logic QF_UFBV){SORT}(assert (distinct a b (f a)))(assert (= (f (f a)) (f b)))"
    f = "(define-fun f ((x S)) S (ite (= x @0) @2 @3))"
    assert evaluated(text, a="@0", b="@1", f=f) is True
    assert evaluated(text, a="@0", b="@0", f=f) is False


@pytest.mark.parametrize("key", ["@0", "@1"])
def test_keys_and_elements_of_a_declared_sort(key: str) -> None:
    text = f"(set-logic QF_AUFBV){SORT}(declare-const m (Array S S))(assert (= (select m a) (f b)))"
    model = {"m": f"(store ((as const (Array S S)) @0) {key} @1)", "f": "(define-fun f ((x S)) S @1)"}
    assert evaluated(text, a="@0", b="@0", **model) is (key == "@0")


def test_what_is_no_model_is_refused() -> None:
    (query,) = parse_smt2("(declare-const x (_ BitVec 8))(assert (= x #x01))(check-sat)")
    for model in ({}, {"x": "#x1"}, {"x": "(bvadd #x00 #x01)"}, {"x": "true"}):
        with pytest.raises(ModelError):
            evaluate(query, model)


# -- size -------------------------------------------------------------------------------------------------

DEEP = 100_000  # levels


def test_depth_is_no_limit() -> None:
    texts = (
        f"(assert {'(not ' * DEEP}p{')' * DEEP})",
        f"(assert {''.join(f'(let ((v{n} p)) ' for n in range(DEEP // 2))}p{')' * (DEEP // 2)})",
        f"(assert {'(let ((v ' * (DEEP // 2)}p{')) v)' * (DEEP // 2)})",
        "".join(f"(define-fun d{n} () Bool {f'd{n - 1}' if n else 'p'})" for n in range(DEEP // 10))
        + f"(assert d{DEEP // 10 - 1})",
        "".join(
            f"(define-fun d{n} ((p Bool)) Bool {f'(d{n - 1} p)' if n else 'p'})" for n in range(DEEP // 100)
        )
        + f"(assert (d{DEEP // 100 - 1} p))",
    )
    for text in texts:
        (query,) = parse_smt2(f"(declare-const p Bool){text}(check-sat)")
        assert evaluate(query, {"p": "true"}) is True


def test_a_chain_of_stores_takes_memory_for_each_store_alone() -> None:
    length = DEEP // 10
    stores = "".join(f"(let ((a{n + 1} (store a{n} (_ bv{n} 32) #x01))) " for n in range(length))
    held = f"(and (= (select a{length} #x00000101) #x01) (= (select a200 #x00000101) #x00))"
    text = f"(set-logic QF_ABV)(declare-const a0 (Array (_ BitVec 32) (_ BitVec 8)))(assert {stores}{held}"
    (query,) = parse_smt2(f"{text}{')' * length})(check-sat)")
    tracemalloc.start()
    try:
        assert evaluate(query, {"a0": const("#x00", "(_ BitVec 32)")}) is True
        assert tracemalloc.get_traced_memory()[1] < 2000 * length
    finally:
        tracemalloc.stop()


V8 = "(_ BitVec 8)"


def test_what_two_terms_share_is_evaluated_once() -> None:
    doubling = "".join(f"(define-fun f{n + 1} ((x {V8})) {V8} (bvadd (f{n} x) (f{n} x)))" for n in range(200))
    text = f"(declare-const x {V8})(define-fun f0 ((x {V8})) {V8} x){doubling}(assert (= (f200 x) #x00))"
    (query,) = parse_smt2(text + "(check-sat)")
    assert evaluate(query, {"x": "#x03"}) is True


def test_an_evaluation_ends_though_its_answer_is_far() -> None:
    sort = "(_ BitVec 64)"
    spread = "".join(
        f"(define-fun f{n + 1} ((x {sort})) {sort} (bvadd (f{n} (bvmul x (_ bv3 64))) (f{n} (bvnot x))))"
        for n in range(60)
    )
    wide = "(declare-const y (_ BitVec 1000000))(assert (= (bvudiv y (bvnot y)) y))"
    calls = f"(declare-const x {sort})(define-fun f0 ((x {sort})) {sort} x){spread}(assert (= (f60 x) x))"
    for text, model in ((calls, {"x": f"#x{3:016x}"}), (wide, {"y": f"#x{3:0250000x}"})):
        (query,) = parse_smt2(text + "(check-sat)")
        before = process_time()
        assert evaluate(query, model) is None
        assert process_time() - before < 10


def test_arrays_as_keys_are_left_to_others() -> None:
    text = f"{A}(declare-const m (Array {BYTES} Bool))(assert (select m a))(check-sat)"
    (query,) = parse_smt2(text)
    m = f"((as const (Array {BYTES} Bool)) true)"
    assert evaluate(query, {"a": const("#x00"), "b": const("#x00"), "m": m}) is None


def test_what_is_ill_sorted_has_no_value() -> None:
    """Version 0.1 stored queries without a look at sorts."""
    (query,) = parse_smt2("(declare-const x (_ BitVec 8))(assert (= x #x01))(check-sat)")
    for term in (
        "(= x #b1)",
        "(distinct x true)",
        "(and x x)",
        "(bvult x true)",
        "(= (bvadd x #b1) x)",
        "(bvult x x x)",
        "(= (bvsub x x x) x)",
        "((_ extract 8 0) x)",
        "(= ((_ extract 8 0) x) #b000000000)",
        "(x x)",
        "(nobody x)",
        "()",
        "x",
        "(let ((y x)) )",
        "(select x x)",
    ):
        level = query.levels[0]._replace(assertion=term)
        assert evaluate(replace(query, target=term, levels=(level,)), {"x": "#x01"}) is None, term


# -- real queries -----------------------------------------------------------------------------------------

_LITERAL = re.compile(r"#b[01]+|#x[0-9a-f]+|\btrue\b|\bfalse\b")
_FOLDERS = [
    pytest.param(variable, id=mark, marks=[getattr(pytest.mark, mark), pytest.mark.slow])
    for variable, mark in (("SMTSPOOL_CORPUS", "corpus"), ("SMTSPOOL_CLIENTS", "clients"))
]


def altered(model: dict[str, str], rnd: Random) -> dict[str, str]:
    """``model`` with one bit of it different."""
    name = rnd.choice([name for name, value in model.items() if _LITERAL.search(value)])
    place = rnd.choice(list(_LITERAL.finditer(model[name])))
    old = place[0]
    if old in ("true", "false"):
        new = str(old == "false").lower()
    else:
        base, bits = (2, 1) if old[1] == "b" else (16, 4)
        number = int(old[2:], base) ^ 1 << rnd.randrange(bits * (len(old) - 2))
        new = f"{old[:2]}{number:0{len(old) - 2}{'b' if base == 2 else 'x'}}"
    return {**model, name: model[name][: place.start()] + new + model[name][place.end() :]}


@pytest.mark.parametrize("variable", _FOLDERS)
def test_models_of_real_queries(variable: str) -> None:
    """Engines' models, and each with one bit different, satisfy a query if another engine says so."""
    if variable not in os.environ:
        pytest.skip(f"{variable} is unset")
    rnd, said = Random(0), Counter[bool]()
    files = sorted(Path(os.environ[variable]).rglob("*.smt2"))
    with ForkServer(parse_engine("bitwuzla")) as first, ForkServer(parse_engine("z3")) as second:
        solver, checker = PersistentSolver(first), PersistentSolver(second)
        for number, path in enumerate(files):
            with suppress(AdmissionError):
                for at, query in enumerate(parse_file(path.name, path.read_bytes())[:3]):
                    attempt = f"{number}.{at}"
                    found = solver.solve(query, attempt_id=attempt, deadline=monotonic() + 0.5)
                    if found.status is not Status.SAT or not found.model:
                        continue
                    model = complete(query, found.model)
                    for turn, candidate in enumerate((model, altered(model, rnd))):
                        checked = checker.solve(
                            query, attempt_id=f"{attempt}/{turn}", deadline=monotonic() + 20, model=candidate
                        )
                        assert evaluate(query, candidate) is (checked.status is Status.SAT), path
                        said[checked.status is Status.SAT] += 1
        solver.close(5)
        checker.close(5)
    assert said[True] > 100 < said[False] + 50
