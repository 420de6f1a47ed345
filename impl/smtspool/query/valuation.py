"""What the terms of a ``get-value`` come to under a model: a question of its own, for any engine."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import NamedTuple

from smtspool.query.assembler import Assembler
from smtspool.query.limits import DEFAULT
from smtspool.query.model import definitions
from smtspool.query.value import Query

__all__ = ["Valuation", "valuation"]


class Valuation(NamedTuple):
    """In the one model of ``query`` constants have the values of terms; ``names`` says which has whose."""

    query: Query
    names: Mapping[str, str]  # term -> constant


def valuation(query: Query, model: Mapping[str, str]) -> Valuation:
    """The question for the values of :attr:`Query.values` under a ``model`` of ``query``.

    Raises ``AdmissionError`` where a model has values that SMT-LIB cannot write.
    """
    assembler = Assembler(query.logic, DEFAULT)
    symbols = [symbol.declaration for symbol in query.symbols]
    values = dict(zip(symbols, definitions(query, model), strict=True))
    for command in query.declarations:
        assembler.declare_text(values.get(command, command))
    free = (name for name in map("value!{}".format, count()) if assembler.find(name) is None)
    names = dict(zip(dict.fromkeys(query.values), free, strict=False))
    for text, name in names.items():
        assembler.declare_text(f"(declare-const {name} {assembler.term_text(text).sort})")
        assembler.assert_text(f"(= {name} {text})")
    asked = assembler.query(metadata={}, timeout_ms=query.timeout_ms, priority=query.priority)
    return Valuation(asked, names)
