"""Ill-sorted and malformed terms are refused, at the token that is to blame."""

from __future__ import annotations

import pytest
from bitwuzla import BitwuzlaException
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from smtspool.errors import AdmissionError, Reason
from smtspool.query import parse_envelope, parse_smt2, script
from tests.query.engines import ENGINES, ask_bitwuzla
from tests.query.sorted_terms import mutated, sorted_script

DECLARED = """(set-logic QF_AUFBV)
(declare-const p Bool) (declare-const q Bool)
(declare-const x (_ BitVec 8)) (declare-const y (_ BitVec 8)) (declare-const w (_ BitVec 4))
(declare-const b (_ BitVec 1))
(declare-const m (Array (_ BitVec 4) (_ BitVec 8)))
(declare-fun f ((_ BitVec 8) Bool) (_ BitVec 4))
(declare-sort S 0) (declare-const s S) (declare-fun g (S) S) (declare-fun h (S) (_ BitVec 8))
(define-fun d ((a (_ BitVec 8)) (c Bool)) Bool (and c (= a x)))
(define-sort Byte () (_ BitVec 8))
"""


def refusal(text: str) -> AdmissionError:
    with pytest.raises(AdmissionError) as caught:
        parse_smt2(f"{DECLARED}{text}(check-sat)")
    return caught.value


WELL_SORTED = """
    (not p) | (and p q p) | (or p (xor p q q)) | (=> p q p) | (= x y x) | (distinct x y) | (= p q)
    (ite p p q) | (= (ite p x y) x) | (= (concat x w) #xabc) | (= ((_ extract 7 4) x) w)
    (= ((_ repeat 2) w) x) | (= ((_ zero_extend 4) w) x) | (= ((_ sign_extend 0) w) w)
    (= ((_ rotate_left 9) w) w) | (= (bvcomp x y) #b1) | (= (select m w) x) | (= (store m w x) m)
    (= ((as const (Array (_ BitVec 4) (_ BitVec 8))) #x00) m)
    (= ((as const (Array (_ BitVec 4) Byte)) #x00) m) | (= (f x p) w) | (= (h (g (g s))) x) | (d x p)
    (bvsmulo x y) | (let ((x w)) (= x w)) | (let ((x w) (w x)) (= x ((_ extract 3 0) w)))
    (= (bvadd x y #x01) (bvmul x y x)) | (let ((a x)) (let ((a (= a x)) (c a)) (and a (= c x))))
    (= x (bvnot (bvneg (bvsub x y)))) | (bvnego x) | p | (= (bvredor x) b (bvredand w))
    (= (bvite b x y) x) | (and p) | (let ((p x)) (let ((q (= p p))) q)) | true
"""
ILL_SORTED = """
    (bvadd x w) | (= x w) | (distinct p x) | (not x) | (and p x) | (ite x p q) | (ite p x w)
    (bvnot p) | x | s | (let ((y x)) x) | (select m x) | (store m w w) | (select x w) | (bvult x p)
    (= (f p x) w) | (= (f x) w) | ((_ extract 8 0) x) | ((_ extract 4 0) w) | ((_ repeat 2) p)
    ((_ zero_extend 1) p) | (= (g x) s) | (d p x) | ((as const (Array (_ BitVec 4) (_ BitVec 8))) w)
    (let ((x p)) (= x y)) | (bvite p x y) | (concat p x) | (bvcomp x y) | (= f f) | f | bvadd
    (= bvadd bvadd) | (g s) | (= S S) | (let ((h f)) p) | (select m w) | (not p q) | (not) | (and)
    (or) | (xor p) | (=> p) | (= x) | (distinct x) | (ite p q) | (bvneg x y) | (bvsub x y x)
    (bvult x y x) | (bvxnor x y x) | (= (concat x) x) | (= x (bvadd x)) | (select m) | (store m w)
    (d x) | (d x p p) | (= (f x p p) w) | (p) | (x) | (true) | (#xff) | ((_ bv1 8)) | ((bvadd x x))
    ((not p)) | (S) | (S s)
"""
MALFORMED = """
    (let ((y x)) (= x y) (distinct x y)) | (let ((y x))) | (let ((y)) p) | (let ((y x y)) p)
    (let (y) p) | (let) | () | (let () p) | (let ((a p) (a q)) a) | (let p q) | (and let p) | let
    (= x ()) | (let ((y ())) p) | (()) | (as m p) | ((as const (_ BitVec 8)) x) | ((as const) x)
    (as) | const | Bool | (= Bool Bool) | (Array p q) | (_ BitVec 8) | ((_ extract 0 1) x)
    ((_ extract 1) x) | ((_ repeat 0) x) | ((_ zero_extend) x) | (= (_ bv256 8) x) | ((_ huh 1) x)
    (let ((true p)) true) | (let ((#xff p)) p) | (let (((p) q)) p) | (= z z) | (let ((a p) (c a)) c)
    p q
"""


def terms(table: str) -> list[str]:
    return [term.strip() for line in table.strip().splitlines() for term in line.split("|")]


@pytest.mark.parametrize("term", terms(WELL_SORTED))
def test_a_well_sorted_term_is_admitted_and_every_engine_reads_it(term: str) -> None:
    (query,) = parse_smt2(f"{DECLARED}(assert {term})(check-sat)")
    assert {ask(script(query)) for ask in ENGINES.values()} <= {"sat", "unsat"}


@pytest.mark.parametrize("term", terms(ILL_SORTED))
def test_an_ill_sorted_term_is_refused(term: str) -> None:
    error = refusal(f"(assert {term})")
    assert error.reason is Reason.SORT
    assert error.at is not None


@pytest.mark.parametrize("term", terms(MALFORMED))
def test_a_malformed_term_is_refused(term: str) -> None:
    error = refusal(f"(assert {term})")
    assert error.reason in (Reason.SYNTAX, Reason.SYMBOL)
    assert error.at is not None


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("(define-fun e () Bool (let ((a p)) a a))", Reason.SYNTAX),
        ("(define-fun e () Bool x)", Reason.SORT),
        ("(define-fun e ((a Bool)) (_ BitVec 8) a)", Reason.SORT),
        ("(define-fun e ((a Bool) (a Bool)) Bool a)", Reason.SYMBOL),
        ("(define-const e (_ BitVec 8) w)", Reason.SORT),
        ("(define-const e Bool p q)", Reason.SYNTAX),
        ("(declare-const e (_ BitVec 0))", Reason.SYNTAX),
        ("(declare-const e (S S))", Reason.SYMBOL),
        ("(declare-const e (Array S))", Reason.SYNTAX),
        ("(push)(declare-const e Bool)(pop)(assert e)", Reason.SYMBOL),
        ("(push)(declare-const iff Bool)(assert iff)(pop)(assert iff)", Reason.SORT),
        ("(define-fun e ((a Bool)) Bool a)(assert a)", Reason.SYMBOL),
        ("(define-fun e ((x Bool)) Bool x)(assert (e x))", Reason.SORT),
    ],
)
def test_commands(command: str, reason: Reason) -> None:
    error = refusal(command)
    assert error.reason is reason
    assert error.at is not None


@pytest.mark.parametrize(
    ("term", "at", "message"),
    [
        (
            "(and p (bvult x w))",
            "bvult",
            r"takes two bit-vectors of one width, not \(_ BitVec 8\), \(_ BitVec 4\)",
        ),
        (
            "(and p (= (f y w) (f x p)))",
            "f",
            r"f takes \(_ BitVec 8\) and Bool, not \(_ BitVec 8\), \(_ BitVec 4\)",
        ),
        ("(or p x)", "or", r"or takes Bools, not Bool, \(_ BitVec 8\)"),
        ("(= ((_ extract 8 1) x) x)", "(_ extract 8 1)", "takes one bit-vector of more than 8 bits"),
        ("(bvadd x)", "bvadd", "two or more"),
        ("(not)", "not", "nothing"),
        ("(let ((v p) (v q)) v)", "v", "bound twice"),
        ("(= x nowhere)", "nowhere", "not declared"),
        ("(and p q p q p (x p))", "x", "applied like a function"),
        ("(let ((v x)) v v)", ")", "the body of a let is not one term"),
    ],
)
def test_the_message_names_what_is_wrong_and_where(term: str, at: str, message: str) -> None:
    error = refusal(f"(assert {term})")
    assert error.at == at
    with pytest.raises(AdmissionError, match=message):
        raise error


def test_the_place_is_that_of_the_very_token() -> None:
    """Of many that look alike, the one that was read."""
    text = "\n(assert (bvult x y))\n(assert (and (bvult x y) (not (bvult x w)) (bvult x y)))"
    place = refusal(text).place
    assert place is not None
    line = (DECLARED + text).splitlines()[place.line - 1]
    assert line[place.column - 1 :].startswith("bvult x w")


@pytest.mark.parametrize(("member", "text"), [("target", "(bvadd x #x01)"), ("prefix", ["(bvult x #x001)"])])
def test_envelopes_are_read_as_strictly(member: str, text: object) -> None:
    envelope = {
        "schema": "smtspool-query-v1",
        "logic": "QF_BV",
        "declarations": ["(declare-const x (_ BitVec 8))"],
        "prefix": ["(bvult x #x10)"],
        "target": "true",
    }
    parse_envelope(envelope)
    with pytest.raises(AdmissionError) as caught:
        parse_envelope({**envelope, member: text})
    assert caught.value.reason is Reason.SORT


def test_a_term_that_is_refused_leaves_no_name_behind() -> None:
    """A value that cannot be given is left out, and reading goes on."""
    asked = "(check-sat)(get-value ((let ((z x) (x p)) (let ((y z)) (bvadd x z))) (bvadd x y) z))"
    (query,) = parse_smt2(f"{DECLARED}(assert p){asked}")
    assert query.values == ("(bvadd x y)",)


def test_a_width_past_the_limit_is_refused_wherever_it_arises() -> None:
    doubled = "(let ((x (concat x x)))" * 30
    error = refusal(f"(assert {doubled} (= x x){')' * 30})")
    assert error.reason is Reason.TOO_LARGE


def test_the_sorts_of_one_script_are_not_those_of_the_next() -> None:
    """What was read before is remembered by text, and is read again where a name means something else."""
    for sort, fits in (
        ("(_ BitVec 8)", True),
        ("Bool", False),
        ("(_ BitVec 8)", True),
        ("(_ BitVec 4)", False),
    ):
        text = f"(declare-const v {sort})(assert (bvult v #x10))(check-sat)"
        if fits:
            parse_smt2(text)
        else:
            with pytest.raises(AdmissionError, match="bvult takes"):
                parse_smt2(text)


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1))
def test_what_is_well_sorted_is_admitted_and_read_by_every_engine(seed: int) -> None:
    (query,) = parse_smt2(sorted_script(seed))
    for ask in ENGINES.values():
        assert ask(script(query)) in ("sat", "unsat")


@settings(max_examples=300)
@given(st.integers(0, 2**32 - 1))
def test_we_refuse_what_a_strict_engine_refuses_and_it_reads_all_else(seed: int) -> None:
    """One token of a well-sorted script is replaced, dropped or doubled."""
    text = mutated(seed)
    try:
        (query,) = parse_smt2(text)
    except AdmissionError as error:
        # Engines let a script bind theory symbols, and bind a name to a function that is not applied.
        assume("is a theory symbol" not in str(error) and "which is no term" not in str(error))
        with pytest.raises(BitwuzlaException):
            ask_bitwuzla(text)
    else:
        assert ask_bitwuzla(script(query)) in ("sat", "unsat")
