"""What not every engine knows is written out, and means what it means to the engine that knows it."""

from __future__ import annotations

from time import process_time

import pytest

from smtspool.errors import AdmissionError, Reason
from smtspool.query import Limits, parse_smt2, script
from tests.query.engines import ENGINES

# Who knows the operator, and what it is applied to.
OPERATORS = {
    **dict.fromkeys(("bvrol", "bvror"), ("bitwuzla", "x y")),
    **dict.fromkeys(("bvinc", "bvdec", "bvredxor"), ("bitwuzla", "x")),
    "bvite": ("cvc5", "b x y"),
    **dict.fromkeys(("ext_rotate_left", "ext_rotate_right"), ("z3", "x y")),
    **dict.fromkeys(("bvudiv_i", "bvurem_i", "bvsdiv_i", "bvsrem_i", "bvsmod_i"), ("z3", "x y")),
    **dict.fromkeys(("bvumul_noovfl", "bvsmul_noovfl", "bvsmul_noudfl"), ("z3", "x y")),
    **dict.fromkeys(("implies", "iff"), ("z3", "p q r")),
    **dict.fromkeys(("and", "or"), ("z3", "p")),
    "if": ("z3", "p x y"),
}
PARTS = {
    "x": "(bvnot x)",
    "y": "(bvadd y x)",
    "b": "((_ extract 0 0) y)",
    "p": "(not p)",
    "q": "q",
    "r": "r",
}


def declared(width: int) -> str:
    vectors = "".join(f"(declare-const {name} (_ BitVec {width}))" for name in "xy")
    booleans = "".join(f"(declare-const {name} Bool)" for name in "pqr")
    return f"{vectors}{booleans}(declare-const b (_ BitVec 1))"


def written(term: str, width: int = 8) -> str:
    """What is emitted for ``term``."""
    (query,) = parse_smt2(f"{declared(width)}(assert (= {term} {term}))(check-sat)")
    text = query.target.removeprefix("(= ").removesuffix(")")
    half = len(text) // 2
    assert text[:half] == text[half + 1 :]
    return text[:half]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_it_means_the_same(operator: str, width: int) -> None:
    knows, names = OPERATORS[operator]
    for arguments in (names, " ".join(PARTS[name] for name in names.split())):
        term = f"({operator} {arguments})"
        text = written(term, width)
        assert f"({operator} {arguments}" not in text
        logic = "" if knows == "z3" else "(set-logic QF_BV)"  # with this logic z3 knows less
        assert (
            ENGINES[knows](f"{logic}{declared(width)}(assert (distinct {term} {text}))(check-sat)") == "unsat"
        )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_engine_reads_it(operator: str, engine: str) -> None:
    term = f"({operator} {OPERATORS[operator][1]})"
    (query,) = parse_smt2(f"{declared(8)}(assert (= {term} {term}))(check-sat)")
    assert ENGINES[engine](script(query)) == "sat"


def test_what_is_written_is_read_again_as_the_same_query() -> None:
    for operator, (_, names) in OPERATORS.items():
        text = f"{declared(8)}(assert (= ({operator} {names}) ({operator} {names})))(check-sat)"
        (query,) = parse_smt2(text)
        assert parse_smt2(script(query)) == (query,)


def test_names_in_arguments_are_those_of_the_script() -> None:
    """The names that bind an argument are in nobody's way, even if a script uses them."""
    term = "(let ((arg!1 y) (arg!2 x)) (bvrol (bvadd arg!2 arg!1) (bvredxor8 (bvsub arg!1 arg!2))))"
    raw = term.replace("bvredxor8 ", "(_ zero_extend 7) (bvredxor ").replace("))))", ")))))")
    text = written(raw)
    assert (
        ENGINES["bitwuzla"](f"(set-logic QF_BV){declared(8)}(assert (distinct {raw} {text}))(check-sat)")
        == "unsat"
    )


def test_a_script_may_use_names_that_only_z3_gives_a_meaning() -> None:
    text = "(declare-const iff Bool)(define-fun if ((implies Bool)) Bool implies)(assert (if iff))(check-sat)"
    (query,) = parse_smt2(text)
    assert query.target == "(if iff)"
    assert query.form.order == ("iff",)


def test_definitions_are_written_out_too() -> None:
    text = f"{declared(8)}(define-fun d ((v (_ BitVec 8))) Bool (implies p (= (bvinc v) x)))"
    (query,) = parse_smt2(f"{text}(assert (d x))(check-sat)")
    assert "(=> p (= (bvadd v (_ bv1 8)) x))" in query.declarations[-1]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("(bvrol (bvnot ", ") y)"), ("(bvinc (bvnot ", "))"), ("((_ zero_extend 7) (bvredxor ", "))")],
)
def test_time_and_text_grow_with_the_script(opening: str, closing: str) -> None:
    def cost(depth: int) -> float:
        text = f"{declared(8)}(assert (= x {opening * depth}x{closing * depth}))(check-sat)"
        started = process_time()
        (query,) = parse_smt2(text)
        assert query.size < 40 * len(text)
        return process_time() - started

    small = min(cost(500) for _ in range(3))
    assert cost(8_000) < 80 * small


def test_the_text_that_is_added_is_limited() -> None:
    text = f"{declared(8)}(assert (= x (bvinc (bvinc x))))(check-sat)"
    added = 2 * len("( bvadd arg!1 (_ bv1 8) )")
    parse_smt2(text, Limits(expansion=added))
    with pytest.raises(AdmissionError, match="expansion") as caught:
        parse_smt2(text, Limits(expansion=added - 1))
    assert caught.value.reason is Reason.TOO_LARGE
