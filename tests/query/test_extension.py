"""A query with one more assertion is what reading all of it again would give, but for its form."""

from __future__ import annotations

import pytest

from smtspool.errors import AdmissionError, Reason
from smtspool.query import Query, canonical_term, extended, parse_envelope, parse_smt2, to_envelope
from smtspool.sample import campaign

DEFINED = """
(set-logic QF_BV)
(declare-const x (_ BitVec 8))(declare-const |odd name| (_ BitVec 8))(declare-const z Bool)
(define-fun twice ((v (_ BitVec 8))) (_ BitVec 8) (bvadd v |odd name|))
(push 1)(assert (= x #x01))(check-sat)
"""


def reread(query: Query, assertion: str) -> Query:
    envelope = {**to_envelope(query), "prefix": [*query.prefix, query.target], "target": assertion}
    return parse_envelope(envelope)


def assert_as_reread(query: Query, assertion: str) -> None:
    ours, theirs = extended(query, assertion), reread(query, assertion)
    for name in ("id", "logic", "symbols", "declarations", "prefix", "target", "levels", "size"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.form.digest == ""


@pytest.mark.parametrize(
    "assertion", ["z", "(= (twice x) x)", "(let ((x #x02)) (bvult x |odd name|))", "(! z :named n)"]
)
def test_it_needs_what_it_names(assertion: str) -> None:
    (query,) = parse_smt2(DEFINED)
    assert_as_reread(query, assertion)
    assert_as_reread(extended(query, assertion), "(not z)")


def test_over_real_paths() -> None:
    for _, envelope in list(campaign())[:100]:
        query = parse_envelope(envelope)
        assert_as_reread(query, f"(not {query.target})")


@pytest.mark.parametrize("text", ["", "y", "x x", "(bvadd x", "x)", "(exit)", "(declare-const y Bool)"])
def test_what_is_no_term_is_refused(text: str) -> None:
    (query,) = parse_smt2(DEFINED)
    for read in (extended, canonical_term):
        with pytest.raises(AdmissionError) as refusal:
            read(query, text)
        assert refusal.value.reason in (Reason.SYNTAX, Reason.SYMBOL)
