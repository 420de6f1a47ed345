"""The values of the terms of a ``get-value`` under a model, as a query of its own for any engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import NamedTuple

from smtspool.query.assembler import Assembler
from smtspool.query.limits import DEFAULT
from smtspool.query.model import defined
from smtspool.query.value import Query

__all__ = ["Valuation", "value_query"]


class Valuation(NamedTuple):
    """``query`` has one model, in which each term equals the constant that ``names`` gives for it."""

    query: Query
    names: Mapping[str, str]  # term -> constant


def value_query(query: Query, model: Mapping[str, str]) -> Valuation:
    """The question for the values of :attr:`Query.values` under a ``model`` of ``query``.

    Terms of declared sorts are left out: SMT-LIB cannot write their values. Raises ``AdmissionError`` where
    there are declared sorts with parameters.
    """
    assembler = _declared(query.logic, defined(query, model))
    there = _declared(query.logic, query.declarations)
    terms = [text for text in dict.fromkeys(query.values) if _sort(assembler, text) == _sort(there, text)]
    free = (name for name in map("value!{}".format, count()) if assembler.find(name) is None)
    names = dict(zip(terms, free, strict=False))
    for text, name in names.items():
        assembler.declare_text(f"(declare-const {name} {_sort(assembler, text)})")
        assembler.assert_text(f"(= {name} {text})")
    asked = assembler.query(metadata={}, timeout_ms=query.timeout_ms, priority=query.priority)
    return Valuation(asked, names)


def _declared(logic: str, commands: Iterable[str]) -> Assembler:
    assembler = Assembler(logic, DEFAULT)
    for command in commands:
        assembler.declare_text(command)
    return assembler


def _sort(assembler: Assembler, text: str) -> str:
    return assembler.term_text(text).sort
