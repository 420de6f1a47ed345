"""Z3, through the SMT-LIB interpreter in its library."""

from __future__ import annotations

import z3
from z3.z3core import (
    Z3_ast_vector_dec_ref,
    Z3_ast_vector_get,
    Z3_ast_vector_inc_ref,
    Z3_ast_vector_size,
    Z3_eval_smtlib2_string,
    Z3_get_bool_value,
    Z3_parse_smtlib2_string,
    Z3_simplify,
)

from smtspool.query import Status

from ..spec import EngineSpec
from .base import Engine, EngineError
from .text import TextSession

__all__ = ["Z3Engine"]


class Z3Engine(Engine):
    """One context for the life of the process: ``(reset)`` costs 0.5 ms, a new context 5 ms."""

    def __init__(self, spec: EngineSpec) -> None:
        self._context = z3.Context()
        self._evaluation = z3.Context()  # its own context, so that it does not disturb the scopes of sessions
        self._options = "".join(f"(set-option {key} {value})" for key, value in spec.options)

    def open(self, *, incremental: bool) -> Z3Session:
        return Z3Session(self._context, f"(reset)(set-option :produce-models true){self._options}")

    def evaluate(self, closed: str) -> Status | None:
        """By raw calls without wrapper objects: 0.4 ms of CPU time; ``check-sat`` takes 1 ms."""
        context = self._evaluation.ref()
        try:
            assertions = Z3_parse_smtlib2_string(context, closed, 0, None, None, 0, None, None)
            Z3_ast_vector_inc_ref(context, assertions)
            try:
                terms = (
                    Z3_ast_vector_get(context, assertions, at)
                    for at in range(Z3_ast_vector_size(context, assertions))
                )
                truths = {Z3_get_bool_value(context, Z3_simplify(context, term)) for term in terms}
            finally:
                Z3_ast_vector_dec_ref(context, assertions)
        except z3.Z3Exception as error:
            raise _refused(error) from error
        if z3.Z3_L_FALSE in truths:
            return Status.UNSAT
        return Status.SAT if truths == {z3.Z3_L_TRUE} else None


class Z3Session(TextSession):
    def __init__(self, context: z3.Context, preamble: str) -> None:
        self._context = context
        self.load(preamble)

    def run(self, commands: str) -> str:
        try:
            printed: str = Z3_eval_smtlib2_string(self._context.ref(), commands)
        except z3.Z3Exception as error:
            raise _refused(error) from error
        if printed.startswith("(error"):
            raise EngineError(printed.strip())
        return printed

    def limit(self, timeout_ms: int) -> None:
        self.load(f"(set-option :timeout {timeout_ms})")

    def close(self) -> None:
        self.load("(reset)")


def _refused(error: z3.Z3Exception) -> EngineError:
    """The error with its message as text, since raw calls raise with bytes."""
    words = error.value
    return EngineError(words.decode(errors="replace") if isinstance(words, bytes) else str(words))
