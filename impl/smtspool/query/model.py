"""Models as text: completing, renaming, checking them against a query, and the new input they stand for.

A model maps the name of every declared constant to a value, and that of every declared function to a
``(define-fun f (...) sort body)`` command. Values of declared sorts are numbered: see :mod:`.abstract`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from smtspool.errors import AdmissionError, MisuseError, ModelError
from smtspool.query.abstract import Interpretation, declares_sorts, numbered
from smtspool.query.assembler import Assembler
from smtspool.query.lexer import depths, items, one_term, spell, tokenize
from smtspool.query.limits import Limits
from smtspool.query.operators import BOOL, bit_vector
from smtspool.query.value import Form, Query, Symbol, Witness

__all__ = ["candidate", "complete", "default_value", "defined", "definitions", "rename_model", "script"]

_BYTE = re.compile(r"#x([0-9a-fA-F]{2})|#b([01]{8})|\(_ bv([0-9]{1,3}) 8\)", re.ASCII)
_LITERAL = re.compile(r"#x[0-9a-fA-F]+|#b[01]+|true|false", re.ASCII)
_WIDTH = re.compile(r"\(_ BitVec ([0-9]{1,7})\)", re.ASCII)


def script(query: Query, *, model: Mapping[str, str] | None = None) -> str:
    """The query as one SMT-LIB script.

    With ``model`` every declared symbol is defined as its value there, so ``sat`` means that the model
    satisfies the query. All assertions are then one, which takes z3 two thirds of the time.
    Raises ``ModelError`` as :func:`defined` does.
    """
    declarations = query.declarations
    assertions = (*query.prefix, query.target)
    if model is not None:
        assertions = (f"(and {' '.join(assertions)})",) if query.prefix else assertions
        declarations = defined(query, model)
    lines = [f"(set-logic {query.logic})", *declarations]
    lines += [f"(assert {assertion})" for assertion in assertions]
    return "\n".join((*lines, "(check-sat)", ""))


def defined(query: Query, model: Mapping[str, str]) -> tuple[str, ...]:
    """The declarations of ``query``, every symbol defined as its value and every sort as bit-vectors.

    The engine that gave the model is not trusted. Each value must be exactly one closed term, that of a
    bit-vector or Bool one literal; otherwise, or if a value is missing, ``ModelError`` is raised.
    """
    with _reading_values():
        return _defined(query, model)


def _defined(query: Query, model: Mapping[str, str]) -> tuple[str, ...]:
    sorts = Interpretation.of(query, model) if declares_sorts(query) else None
    values = {symbol.declaration: _definition(query, symbol, model, sorts) for symbol in query.symbols}
    declarations = [values.get(text, text) for text in query.declarations]
    return tuple(declarations if sorts is None else map(sorts.declaration, declarations))


def definitions(query: Query, model: Mapping[str, str]) -> list[str]:
    """The model as one ``define-fun`` command per declared symbol; raises as :func:`defined` does."""
    if not declares_sorts(query):
        with _reading_values():
            return [_definition(query, symbol, model) for symbol in query.symbols]
    defined(query, model)
    return [
        model[symbol.name]
        if symbol.params
        else f"(define-fun {symbol.name} () {symbol.sort} {model[symbol.name]})"
        for symbol in query.symbols
    ]


def default_value(sort: str) -> str:
    """A value of ``sort``: zero, ``false``, ``@0`` for a declared sort, a constant array of one of these."""
    arrays = []
    while sort.startswith("(Array "):
        arrays.append(sort)
        tokens = tokenize(sort, Limits())
        _, element = items(tokens, depths(tokens, Limits()), 2, len(tokens) - 1)
        sort = spell(tokens[slice(*element)])
    width = _WIDTH.fullmatch(sort)
    if width is not None:
        bits = int(width[1])
        value = f"#b{'0' * bits}" if bits % 4 else f"#x{'0' * (bits // 4)}"
    elif sort == "Bool":
        value = "false"
    else:
        value = "@0"
    for array in reversed(arrays):
        value = f"((as const {array}) {value})"
    return value


def complete(query: Query, partial: Mapping[str, str]) -> dict[str, str]:
    """A value for every declared symbol of ``query``: that of ``partial``, else the default.

    An engine's names for elements of declared sorts become numbers. If ``query`` declares sorts, a text that
    is no value raises ``ModelError``.
    """
    if declares_sorts(query):
        with _reading_values():
            partial = numbered(query, partial)
    return {
        symbol.name: partial[symbol.name] if symbol.name in partial else _default(symbol)
        for symbol in query.symbols
    }


def rename_model(model: Mapping[str, str], from_form: Form, to_form: Form) -> dict[str, str]:
    """The model of a query of ``from_form`` as one for a query of the equal ``to_form``.

    Symbols outside the form are dropped; :func:`complete` gives them values.
    """
    if from_form.digest != to_form.digest or len(from_form.order) != len(to_form.order):
        raise MisuseError("a model can only be renamed between queries of one form")
    names = dict(zip(from_form.order, to_form.order, strict=True))
    return {
        new: _rename_function(model[old], new) if model[old].startswith("(define-fun") else model[old]
        for old, new in names.items()
        if old in model
    }


def candidate(witness: Witness, model: Mapping[str, str]) -> bytes:
    """The witness's input with every byte that has a symbol set to its value.

    A symbol past the end extends the input with zero bytes up to it. A symbol without value keeps its byte.
    Raises ``ModelError`` for a value that is not an 8-bit literal.
    """
    data = bytearray(witness.input)
    for name, offset in witness.symbols:
        if name not in model:
            continue
        if offset >= len(data):
            data.extend(bytes(offset + 1 - len(data)))
        data[offset] = _byte(name, model[name])
    return bytes(data)


def _byte(name: str, text: str) -> int:
    literal = _BYTE.fullmatch(text)
    if literal is not None:
        hexadecimal, binary, decimal = literal.groups()
        number = int(hexadecimal, 16) if hexadecimal else int(binary, 2) if binary else int(decimal)
        if number < 256:
            return number
    raise ModelError(f"the value of {name[:64]} is not an 8-bit literal: {text[:64]!r}")


@contextmanager
def _reading_values() -> Iterator[None]:
    """The reader of queries reads values too. What it refuses here is no bad input of a producer."""
    try:
        yield
    except AdmissionError as refusal:
        raise ModelError(refusal.message) from refusal


def _default(symbol: Symbol) -> str:
    value = default_value(symbol.sort)
    if not symbol.params:
        return value
    parameters = " ".join(f"(a!{at} {sort})" for at, sort in enumerate(symbol.params))
    return f"(define-fun {symbol.name} ({parameters}) {symbol.sort} {value})"


def _rename_function(text: str, name: str) -> str:
    tokens = tokenize(text, Limits())
    return spell([*tokens[:2], name, *tokens[3:]])


def _definition(
    query: Query, symbol: Symbol, model: Mapping[str, str], declared: Interpretation | None = None
) -> str:
    """The define-fun of ``symbol``, with its name and sorts; its body is checked to be one closed term."""
    value = model.get(symbol.name)
    if value is None:
        raise ModelError(f"the model has no value for {symbol.name[:64]}")
    if declared is not None:
        value, symbol = declared.value(symbol, value), declared.symbol(symbol)
    head = f"(define-fun {symbol.name} () {symbol.sort}"
    if not symbol.params and _LITERAL.fullmatch(value) is not None and _literal_sort(value) == symbol.sort:
        return f"{head} {value})"
    limits = Limits()
    if not symbol.params and not symbol.sort.startswith("(Array ") and len(tokenize(value, limits)) != 1:
        raise ModelError(f"the value of {symbol.name[:64]} is not a literal")
    tokens = tokenize(value if symbol.params else f"{head} {value})", limits)
    levels = depths(tokens, limits)
    if tokens[:2] != ["(", "define-fun"] or not one_term(tokens, levels, 0, len(tokens)):
        raise ModelError(f"the value of {symbol.name[:64]} is not one value")
    assembler = Assembler(query.logic, limits)
    assembler.declare(tokens, levels)
    definition = assembler.find(symbol.name)
    if definition is None or definition.symbol != symbol:
        raise ModelError(f"the value of {symbol.name[:64]} is for another signature")
    return definition.text


def _literal_sort(value: str) -> str:
    if value[0] != "#":
        return BOOL
    return bit_vector((len(value) - 2) * (4 if value[1] == "x" else 1))
