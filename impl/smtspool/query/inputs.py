"""The input that a model stands for when its query has no witness, told from the names of its symbols.

Symbolic executors name the bytes of the input by known patterns, so a plain script can give an input too. If
the names can be read in two ways, there is no input, and a reason says why; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from smtspool.query.lexer import depths, items, spell, tokenize
from smtspool.query.limits import DEFAULT
from smtspool.query.value import Query, Symbol

__all__ = ["LONGEST_INPUT", "ImpliedInput", "implied_input"]

# AFL++ reads no longer inputs, and the number in a name must not decide how large a file gets.
LONGEST_INPUT = 1 << 20

_BYTE = "(_ BitVec 8)"
# A constant for each byte, numbered by its offset: of SymCC and QSYM (both k and stdin), Triton, and the
# envelope symcc-query-ir-v1; the others are names that users of executors give.
_BYTES = ("k!N", "stdinN", "stdin_N", "SymVar_N", "in_N", "input_N", "byte!N")
_NUMBERED = {naming: re.compile(re.escape(naming[:-1]) + "(0|[1-9][0-9]*)", re.ASCII) for naming in _BYTES}
# One constant for the whole standard input, its first byte the most significant. Only angr gives such names.
# In a constant that a user named, such as `input`, the first byte may be at either end.
_WIDE = re.compile(r"(?:file|packet)_[0-9]+_stdin(?:_[0-9a-f]+)+", re.ASCII)
_WIDTH = re.compile(r"\(_ BitVec ([0-9]{1,8})\)", re.ASCII)
_ARRAY_SORT = re.compile(r"\(Array \(_ BitVec (?:32|64)\) \(_ BitVec 8\)\)", re.ASCII)
# Arrays that KLEE adds to those of the input: constant arrays, its version, the result of stat().
_NO_INPUT = re.compile(r"const_arr[0-9]*|model_version|.*[-_]stat", re.ASCII)

_VALUE = r"(?:#x[0-9a-fA-F]+|#b[01]+|\(_ bv[0-9]+ [0-9]+\))"
_INDEXED = re.compile(rf" ({_VALUE}) ({_VALUE})\)", re.ASCII)
# Stores upon the array that holds one value, or upon one that a `let` names.
_STORES = re.compile(
    rf"(?:\(store )*(?:\(\(as const [^#]*?\)\) ({_VALUE})\)|([^ ()]+))((?: {_VALUE} {_VALUE}\))*)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class ImpliedInput:
    """The input and the naming it was taken from, or neither and why."""

    data: bytes | None
    naming: str | None
    why: str | None = None


def implied_input(query: Query, model: Mapping[str, str], base: bytes = b"") -> ImpliedInput:
    """The bytes that ``model`` gives to symbols of a known naming, written over ``base``.

    A byte that is neither in ``base`` nor has a symbol is zero, since the query does not depend on it. The
    model must be complete and satisfy the query.
    """
    readings: list[tuple[str, dict[int, int] | str]] = [
        *_numbered(query.symbols, model),
        *_wide(query.symbols, model),
        *_arrays(query, model),
    ]
    if not readings:
        return ImpliedInput(None, None, "no symbol has a name that is known to be a byte of the input")
    if len(readings) > 1:
        names = " and ".join(naming for naming, _ in readings)
        return ImpliedInput(None, None, f"two readings, {names}")
    ((naming, found),) = readings
    if isinstance(found, str):
        return ImpliedInput(None, None, f"{naming}: {found}")
    if max(found, default=0) >= LONGEST_INPUT:
        return ImpliedInput(None, None, f"{naming}: byte {max(found)} is beyond {LONGEST_INPUT}")
    data = bytearray(base.ljust(max(found, default=-1) + 1, b"\0"))
    for offset, value in found.items():
        data[offset] = value
    return ImpliedInput(bytes(data), naming)


def _numbered(
    symbols: Iterable[Symbol], model: Mapping[str, str]
) -> Iterator[tuple[str, dict[int, int] | str]]:
    """One constant for each byte. If some are of another sort, the numbers in the names are no offsets."""
    for naming, pattern in _NUMBERED.items():
        named = [(match, symbol) for symbol in symbols if (match := pattern.fullmatch(symbol.name))]
        if not named:
            continue
        if all(symbol.sort == _BYTE and not symbol.params for _, symbol in named):
            yield naming, {int(match[1]): _number(model[symbol.name]) for match, symbol in named}
        else:
            yield naming, "not all of them are bytes"


def _wide(symbols: Iterable[Symbol], model: Mapping[str, str]) -> Iterator[tuple[str, dict[int, int] | str]]:
    for symbol in symbols:
        width = _WIDTH.fullmatch(symbol.sort)
        if width is None or symbol.params or int(width[1]) <= 8 or _WIDE.fullmatch(symbol.name) is None:
            continue
        size, rest = divmod(int(width[1]), 8)
        if rest:
            yield symbol.name, "it is no whole number of bytes"
        else:
            yield symbol.name, dict(enumerate(_number(model[symbol.name]).to_bytes(size, "big")))


def _arrays(query: Query, model: Mapping[str, str]) -> Iterator[tuple[str, dict[int, int] | str]]:
    """An array of bytes, indexed by offset: KLEE, Manticore."""
    for symbol in query.symbols:
        if symbol.params or not _ARRAY_SORT.fullmatch(symbol.sort) or _NO_INPUT.fullmatch(symbol.name):
            continue
        yield f"the array {symbol.name}", _array(query, symbol.name, model[symbol.name])


def _array(query: Query, name: str, value: str) -> dict[int, int] | str:
    """The bytes that the query reads at known offsets, and those that the model lists."""
    parsed = _stored(value)
    if parsed is None:
        return "its value is neither constant nor a list of elements"
    default, stored = parsed
    texts = [text for text in query.declarations if not text.startswith(f"(declare-fun {name} ")]
    body = "\n".join((*texts, *query.prefix, query.target))
    read = re.findall(rf"\(select {re.escape(name)} ({_VALUE})\)", body)
    mentioned = re.findall(rf"(?<![^\s()]){re.escape(name)}(?![^\s()])", body)
    if len(read) < len(mentioned) and default:
        return "it is read at offsets that are terms, so the length of the input is unknown"
    return {offset: stored.get(offset, default) for offset in sorted({*map(_number, read), *stored})}


def _stored(value: str) -> tuple[int, dict[int, int]] | None:
    """The default element of an array value and its elements at single indices; None for other values."""
    tokens = tokenize(value, DEFAULT)
    levels = depths(tokens, DEFAULT)
    named: dict[str, str] = {}
    start, end = 0, len(tokens)
    while tokens[start : start + 2] == ["(", "let"]:
        bindings, body = items(tokens, levels, start + 2, end - 1)
        for first, last in items(tokens, levels, bindings[0] + 1, bindings[1] - 1):
            named[tokens[first + 1]] = spell(tokens[first + 2 : last - 1])
        start, end = body
    below: str | None = spell(tokens[start:end])
    stored: dict[int, int] = {}
    while below is not None and (found := _STORES.fullmatch(below)) is not None:
        default, name, pairs = found.groups()
        for index, element in reversed(_INDEXED.findall(pairs)):  # the outermost first, which counts
            stored.setdefault(_number(index), _number(element))
        if default is not None:
            return _number(default), stored
        below = named.pop(name, None)
    return None


def _number(literal: str) -> int:
    if literal.startswith("#x"):
        return int(literal[2:], 16)
    return int(literal[2:], 2) if literal.startswith("#b") else int(literal.split()[1][2:])
