"""Random well-formed queries: text that the reader must accept, over names it might stumble on."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

NAMES = ["x", "y1", "?v_0", "k!0", "|a b|", "|(|", "$t", "T1_120", "a-b", "~", "|;|", "!@odd"]
_BINARY = ["bvadd", "bvmul", "bvand", "bvudiv", "bvshl"]
_PREDICATES = ["=", "bvult", "bvsle", "distinct"]
_CONSTANTS = ["#x00", "#x7f", "(_ bv3 8)"]


def scripts() -> st.SearchStrategy[str]:
    """One-question QF_BV scripts of 8-bit constants, lets, a definition and several assertions."""
    return st.integers(0, 2**32 - 1).map(script_of)


def script_of(seed: int) -> str:
    """The script that belongs to ``seed``."""
    rnd = Random(seed)
    names = rnd.sample(NAMES, rnd.randint(1, 5))
    bound = [name for name in NAMES if name not in names][:3]
    functions = ["twice"] if rnd.random() < 0.5 else []
    lines = ["(set-logic QF_BV)"]
    lines += [f"(declare-fun {name} () (_ BitVec 8))" for name in names]
    lines += [f"(define-fun {f} ((p (_ BitVec 8))) (_ BitVec 8) (bvadd p {names[0]}))" for f in functions]
    lines += [f"(assert {_formula(rnd, names, bound, functions)})" for _ in range(rnd.randint(1, 3))]
    return "\n".join([*lines, "(check-sat)"])


def _formula(rnd: Random, names: list[str], bound: list[str], functions: list[str]) -> str:
    def term(depth: int = 3) -> str:
        shape = rnd.randrange(6) if depth else 0
        if shape < 2:
            return rnd.choice(names + _CONSTANTS)
        if shape == 2:
            return f"((_ rotate_left {rnd.randrange(8)}) {term(depth - 1)})"
        if shape == 3 and functions:
            return f"({functions[0]} {term(depth - 1)})"
        return f"({rnd.choice(_BINARY)} {term(depth - 1)} {term(depth - 1)})"

    formula = f"({rnd.choice(_PREDICATES)} {term()} {term()})"
    for name in rnd.sample(bound, rnd.randint(0, len(bound))):
        formula = f"(let (({name} {term()})) (and {formula} (bvult {name} {term()})))"
    return formula
