"""Small real queries, and answers to them."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from dataclasses import replace

from smtspool.query import Answer, Query, Status, Witness, parse_smt2
from smtspool.store import Lease

LEASE_S = 10.0
UNSAT = Answer(Status.UNSAT, engine="bitwuzla")
TIMEOUT = Answer(Status.UNKNOWN, reason="timeout", at_limit=True)


def query(
    number: int,
    *,
    name: str = "x",
    path: tuple[int, ...] = (),
    priority: float = 0.0,
    timeout_ms: int = 10_000,
    witness: bytes | None = None,
) -> Query:
    """A query of form ``number``: equal numbers with other names are other queries of the same form.

    ``path`` are the numbers of the assertions before the target.
    """
    asserts = "".join(f"(assert (bvult {name} (_ bv{bound} 32)))" for bound in path)
    (parsed,) = parse_smt2(
        f"(set-logic QF_BV)(declare-const {name} (_ BitVec 32))(declare-const unused (_ BitVec 8))"
        f"{asserts}(assert (= {name} (_ bv{number} 32)))(check-sat)",
        timeout_ms=timeout_ms,
        priority=priority,
    )
    return parsed if witness is None else replace(parsed, witness=Witness(witness, (("unused", 0),)))


def in_child(work: Callable[[], int]) -> int:
    """Exit code of a forked process that does ``work``; minus the signal that ended it."""
    return wait_for(start_child(work))


def start_child(work: Callable[[], int]) -> int:
    """Process id of a forked process that does ``work`` and exits with what that returns."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        code = work()
    finally:
        if code:
            traceback.print_exc()
        os._exit(code)


def wait_for(child: int) -> int:
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def sat(lease: Lease, value: str = "#x00000007") -> Answer:
    """A sat answer that may be committed: complete, and confirmed by another engine."""
    model = {symbol.name: value if symbol.name != "unused" else "#x2a" for symbol in lease.query.symbols}
    return Answer(Status.SAT, model=model, engine="bitwuzla", verified_by="cvc5")
