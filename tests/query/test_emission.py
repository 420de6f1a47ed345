"""What is emitted is taken by all three engines, whatever names and spacing the producer chose."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smtspool.errors import AdmissionError
from smtspool.query import parse_smt2, script
from smtspool.query.operators import DIALECT
from smtspool.query.theory import LOGICS
from tests.query.engines import ENGINES
from tests.query.generate import script_of

_NAMES = """
    @def0 .x |.x| |let| |_| |as| |!| |par| |assert| |check-sat| |exists| |BINARY| || |1| |#x00| |:k|
    |"| |;| |(| |é| |中| ~!@$%^&*_-+=<>.?/ bv5 select store const Array implies iff abs sat nil lambda1
    k!0 x!1 div mod continued-execution to_int seq.len pi to_fp bv2nat union
"""
NAMES = [*_NAMES.split(), "|@def 0|", "|. |", "| |", "|a\nb|", "|a\tb|"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NAMES)
def test_names(engine: str, name: str) -> None:
    text = (
        f"(set-logic QF_BV)(declare-fun {name} () Bool)(assert (let ((z {name})) (and z {name})))(check-sat)"
    )
    assert ENGINES[engine](script(parse_smt2(text)[0])) == "sat"


ARGUMENTS = {
    **dict.fromkeys(("bvnot", "bvneg", "bvredor", "bvredand", "bvredxor", "bvinc", "bvdec", "bvnego"), "a"),
    **dict.fromkeys(("and", "or", "xor", "=>"), "p p"),
    "not": "p",
    "ite": "p a a",
    "bvite": "#b1 a a",
    "if": "p a a",
    **dict.fromkeys(("implies", "iff"), "p p p"),
    "select": "m a",
    "store": "m a a",
}
PLAIN = sorted(DIALECT.keys() | LOGICS["QF_ABV"] - {"let", "true", "false", "Bool", "Array", "as", "const"})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("operator", PLAIN)
def test_theory_symbols(engine: str, operator: str) -> None:
    term = f"({operator} {ARGUMENTS.get(operator, 'a a')})"
    text = (
        "(set-logic QF_ABV)(declare-const a (_ BitVec 8))(declare-const p Bool)"
        f"(declare-const m (Array (_ BitVec 8) (_ BitVec 8)))(assert (= {term} {term}))(check-sat)"
    )
    assert ENGINES[engine](script(parse_smt2(text)[0])) == "sat"


INDEXED = ["extract 3 1", "repeat 2", "zero_extend 3", "sign_extend 0", "rotate_left 9", "rotate_right 3"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("indexed", INDEXED)
def test_indexed_operators(engine: str, indexed: str) -> None:
    term = f"((_ {indexed}) a)"
    text = f"(declare-const a (_ BitVec 8))(assert (= {term} {term}))(check-sat)"
    assert ENGINES[engine](script(parse_smt2(text)[0])) == "sat"


@pytest.mark.parametrize("engine", ENGINES)
def test_scripts_keep_their_answer(engine: str) -> None:
    """The raw text and what is made of it agree."""
    ask = ENGINES[engine]
    for seed in range(25):
        raw = script_of(seed)
        assert ask(script(parse_smt2(raw)[0])) == ask(raw)


@settings(max_examples=60)
@given(st.text(alphabet='|@.!abc0 ()#;:"\n\t_é~', min_size=1, max_size=6))
def test_no_accepted_name_is_refused_by_an_engine(name: str) -> None:
    text = f"(declare-fun {name} () Bool)(assert {name})(check-sat)"
    try:
        (query,) = parse_smt2(text)
    except AdmissionError:
        return
    assert [ask(script(query)) for ask in ENGINES.values()] == ["sat"] * 3
