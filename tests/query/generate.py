"""Random well-formed queries: text that the reader must accept, over names the test chooses."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ["x", "y1", "?v_0", "k!0", "|a b|", "|(|", "$t", "T1_120", "a-b", "~", "|;|", "!@odd"]
_BINARY = ["bvadd", "bvmul", "bvand", "bvudiv", "bvshl"]
_PREDICATES = ["=", "bvult", "bvsle", "distinct"]


@st.composite
def scripts(draw: st.DrawFn) -> str:
    """A one-question QF_BV script of 8-bit constants, lets, definitions and several assertions."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    defined = draw(st.booleans())
    bound = [name for name in NAMES if name not in names][:3]
    lines = ["(set-logic QF_BV)"]
    lines += [f"(declare-fun {name} () (_ BitVec 8))" for name in names]
    if defined:
        lines.append(f"(define-fun twice ((p (_ BitVec 8))) (_ BitVec 8) (bvadd p {names[0]}))")
    for _ in range(draw(st.integers(1, 3))):
        lines.append(f"(assert {draw(_formulas(names, bound, defined))})")
    return "\n".join([*lines, "(check-sat)"])


@st.composite
def _formulas(draw: st.DrawFn, names: list[str], bound: list[str], defined: bool) -> str:
    term = st.recursive(
        st.sampled_from(names) | st.sampled_from(["#x00", "#x7f", "(_ bv3 8)"]),
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, st.sampled_from(_BINARY), inner, inner),
            st.builds("((_ rotate_left {}) {})".format, st.integers(0, 7), inner),
            st.builds("(twice {})".format, inner) if defined else inner,
        ),
        max_leaves=8,
    )
    atom = st.builds("({} {} {})".format, st.sampled_from(_PREDICATES), term, term)
    formula = draw(atom)
    for name in draw(st.lists(st.sampled_from(bound), max_size=3)) if bound else []:
        formula = f"(let (({name} {draw(term)})) (and {formula} (bvult {name} {draw(term)})))"
    return formula
