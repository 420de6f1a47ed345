"""Queries of known difficulty."""

from smtspool.query import parse_smt2

(EASY,) = parse_smt2(
    "(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= (bvadd x #x01) #x06))(check-sat)"
)
(EASY_UNSAT,) = parse_smt2(
    "(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (bvult x #x05))(assert (bvugt x #x05))(check-sat)"
)
# No engine finds in minutes that this prime, 2^62 - 57, has no two factors.
(HARD,) = parse_smt2(
    """
    (set-logic QF_BV)
    (declare-const p (_ BitVec 32))
    (declare-const q (_ BitVec 32))
    (assert (bvugt p (_ bv1 32)))
    (assert (bvule p q))
    (assert (= (bvmul ((_ zero_extend 32) p) ((_ zero_extend 32) q)) (_ bv4611686018427387847 64)))
    (check-sat)
    """
)
