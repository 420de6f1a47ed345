"""The capabilities of an engine, found by a trial, since it may fail in a logic that it claims to support."""

from __future__ import annotations

import itertools
import re
from collections.abc import Container
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache

from smtspool.errors import InfrastructureError
from smtspool.query import Query, Status, parse_smt2

from .forkserver import EngineUnusable, ForkServer
from .generation import Generation
from .request import Op, Reply, Request

__all__ = ["LOGICS", "Capabilities", "trial"]

_FIVE = re.compile(r"#x05|#b00000101|\(_ bv5 8\)")

_ARRAY = "(declare-const a (Array (_ BitVec 8) (_ BitVec 8)))"
_FUNCTION = "(declare-fun f ((_ BitVec 8)) (_ BitVec 8))"
_TRIES = 3  # per logic
_ALWAYS = "QF_BV"  # tells whether an engine works at all

_DECLARATIONS = {
    "QF_BV": "",
    "QF_ABV": _ARRAY,
    "QF_UFBV": _FUNCTION,
    "QF_AUFBV": _ARRAY + _FUNCTION,
}
# Each leaves x = 5 as the only choice.
_ASSERTIONS = {
    "QF_BV": "(assert (bvult x #x09))(assert (= (bvadd x #x01) #x06))",
    "QF_ABV": "(assert (= (select (store a #x01 x) #x01) #x05))(assert (= (select a x) #x07))",
    "QF_UFBV": "(assert (= (f x) #x07))(assert (= (bvadd x #x01) #x06))",
    "QF_AUFBV": "(assert (= (f (select a x)) #x07))(assert (= (bvadd x #x01) #x06))",
}

LOGICS: tuple[str, ...] = tuple(_DECLARATIONS)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """``logics`` are those in which the engine was right twice, with a usable model for ``sat``."""

    engine: str
    logics: frozenset[str]
    incremental: bool
    trouble: tuple[str, ...] = ()  # why a logic is missing

    def takes(self, logic: str) -> bool:
        return logic in self.logics


def trial(server: ForkServer, deadline: float, *, logics: Container[str] = LOGICS) -> Capabilities:
    """Ask a helper of its own two tiny queries per logic. An engine that fails them all has no logics.

    Of the logics besides ``QF_BV`` only those in ``logics`` are tried. The helper is replaced when it fails:
    starting one takes longer than all queries.
    """
    found = set()
    trouble = []
    incremental = False
    generation: Generation | None = None
    with ExitStack() as helpers:
        for logic in (one for one in LOGICS if one == _ALWAYS or one in logics):
            complaint: str | None = None
            for _ in range(_TRIES):
                try:
                    if generation is None or not generation.valid:
                        generation = server.spawn(deadline)
                        helpers.callback(generation.retire, "trial over")
                    sat, unsat = _ask(generation, logic, deadline)
                except EngineUnusable as error:
                    return Capabilities(server.spec.name, frozenset(), False, (error.cause,))
                except InfrastructureError as error:
                    # If the helper was killed or could not be started, nothing is known about the engine.
                    complaint = str(error)
                    continue
                complaint = _judge(sat, unsat)
                incremental = incremental or (complaint is None and unsat.held_levels > 0)
                break
            if complaint is None:
                found.add(logic)
            else:
                trouble.append(f"{logic}: {complaint}")
    return Capabilities(server.spec.name, frozenset(found), incremental, tuple(trouble))


_numbers = itertools.count(1)


def _ask(generation: Generation, logic: str, deadline: float) -> tuple[Reply, Reply]:
    """Ask a satisfiable query, then the same with one contradicting assertion, on the stack if possible."""
    sat, unsat = (
        generation.exchange(
            Request(f"trial-{next(_numbers)}", Op.SOLVE, logic, query.levels, query.symbols), deadline
        )
        for query in _queries(logic)
    )
    return sat, unsat


@cache
def _queries(logic: str) -> tuple[Query, ...]:
    text = f"(set-logic {logic})(declare-const x (_ BitVec 8)){_DECLARATIONS[logic]}"
    text += f"{_ASSERTIONS[logic]}(check-sat)"
    text += "(assert (not (= x #x05)))(check-sat)"
    return parse_smt2(text)


def _judge(sat: Reply, unsat: Reply) -> str | None:
    for reply, expected in ((sat, Status.SAT), (unsat, Status.UNSAT)):
        if reply.status is not expected:
            return f"{reply.status} ({reply.reason}) where {expected} is right"
    if sat.model is None or not _FIVE.fullmatch(sat.model.get("x", "")):
        return f"no usable model: {sat.model}"
    return None
