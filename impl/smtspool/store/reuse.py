"""Carrying the model of one query over to another query of the same form."""

from __future__ import annotations

from dataclasses import replace

from smtspool.query import Answer, Query, Symbol

__all__ = ["any_value", "transferred"]

_FUNCTION = "(define-fun "


def transferred(source: Query, answer: Answer, query: Query) -> Answer | None:
    """``answer``, a model of ``source``, in the symbols of ``query``; None if it cannot be carried over.

    Symbols of one form correspond by the order of their first appearance. A declared symbol that no
    assertion mentions may have any value. The result is an offer: nothing here proves that it holds.
    """
    if answer.model is None or len(source.form.order) != len(query.form.order):
        return None
    model: dict[str, str] = {}
    for theirs, ours in zip(source.form.order, query.form.order, strict=True):
        value = answer.model.get(theirs)
        if value is None:
            return None
        model[ours] = _renamed(value, theirs, ours)
    for symbol in query.symbols:
        if symbol.name not in model:
            anything = any_value(symbol)
            if anything is None:
                return None
            model[symbol.name] = anything
    return replace(answer, model=model, verified_by=None)


def _renamed(value: str, theirs: str, ours: str) -> str:
    """A function's value is its definition, and the definition names it."""
    head = f"{_FUNCTION}{theirs} "
    return f"{_FUNCTION}{ours} {value.removeprefix(head)}" if value.startswith(head) else value


def any_value(symbol: Symbol) -> str | None:
    """Some value of the symbol's sort, as SMT-LIB text; None for sorts without literals."""
    value = _default(symbol.sort)
    if value is None or not symbol.params:
        return value
    parameters = " ".join(f"(x{position} {sort})" for position, sort in enumerate(symbol.params))
    return f"{_FUNCTION}{symbol.name} ({parameters}) {symbol.sort} {value})"


def _default(sort: str) -> str | None:
    # An array's default is that of its innermost element, wrapped once per array around it.
    wrappers = []
    while sort.startswith("(Array "):
        wrappers.append(sort)
        sort = _element(sort)
    if sort == "Bool":
        value = "false"
    elif sort.startswith("(_ BitVec "):
        value = "#b" + "0" * int(sort.removeprefix("(_ BitVec ").rstrip(")"))
    else:
        return None
    for array in reversed(wrappers):
        value = f"((as const {array}) {value})"
    return value


def _element(array: str) -> str:
    """``E`` of the sort ``(Array I E)``."""
    inside = array[len("(Array ") : -1]
    depth = 0
    for position, character in enumerate(inside):
        depth += (character == "(") - (character == ")")
        if character == " " and depth == 0:
            return inside[position + 1 :]
    return ""
