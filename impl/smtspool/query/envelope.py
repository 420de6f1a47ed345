"""Files and JSON envelopes in, envelopes out."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

from smtspool.errors import AdmissionError, Reason
from smtspool.query import symcc
from smtspool.query.assembler import Assembler
from smtspool.query.compression import MAGIC, UNPACKERS
from smtspool.query.jsonplaces import locate_member
from smtspool.query.lexer import split, tokenize
from smtspool.query.limits import DEFAULT, Limits
from smtspool.query.members import (
    hex_bytes,
    integer,
    object_of,
    priority_of,
    strings,
    text,
    timeout_of,
    witness_of,
)
from smtspool.query.places import locate, place_at
from smtspool.query.smtlib import EVERYTHING, parse_smt2, smallest_logic
from smtspool.query.strictjson import load_object
from smtspool.query.value import Query, Witness

__all__ = ["SCHEMA", "known_suffix", "parse_envelope", "parse_file", "suffix_for", "to_envelope"]

SCHEMA = "smtspool-query-v1"
_MEMBERS = frozenset(
    {"schema", "logic", "declarations", "prefix", "target", "witness", "metadata", "timeout_ms", "priority"}
)
_SUFFIXES = tuple(f"{kind}{packed}" for kind in (".smt2", ".json") for packed in ("", *UNPACKERS))
_BEGINNING = 4096  # bytes
_BYTE_SORT = "(_ BitVec 8)"


def parse_file(name: str, data: bytes, limits: Limits | None = None) -> tuple[Query, ...]:
    """The queries of one spool file: ``*.smt2`` holds scripts, ``*.json`` one envelope, as they are or
    compressed (``*.smt2.gz``, ``*.json.xz``). A byte order mark is skipped.

    Whatever ``data`` is, the only exception is ``AdmissionError``.
    """
    limits = limits or DEFAULT
    limits.hold("file", len(data))
    if not known_suffix(name):
        wanted = "in .smt2 nor in .json, with .gz or .xz behind it or without"
        raise AdmissionError(Reason.SUFFIX, f"{name[:64]!r} ends neither {wanted}")
    for suffix, unpack in UNPACKERS.items():
        if name.endswith(suffix):
            name = name.removesuffix(suffix)
            data = unpack(data, limits.file + 1)
            limits.hold("file", len(data))
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        content = data.decode()
    except UnicodeDecodeError as error:
        readable = data[: error.start].decode()
        message = f"not UTF-8: {error.reason} at byte {error.start}"
        raise AdmissionError(Reason.ENCODING, message, place=place_at(readable, len(readable))) from None
    if name.endswith(".smt2"):
        return parse_smt2(content, limits)
    document = load_object(content, limits)
    try:
        return (parse_envelope(document, limits),)
    except AdmissionError as error:
        locate_member(error, content)
        raise


def known_suffix(name: str) -> bool:
    """Whether :func:`parse_file` reads files of such a name."""
    return name.endswith(_SUFFIXES)


def suffix_for(data: bytes) -> str:
    """The suffix for a file with this content, told from its first bytes."""
    packed = next((suffix for suffix, magic in MAGIC.items() if data.startswith(magic)), "")
    with suppress(AdmissionError):  # of a damaged file: parse_file will say so
        data = UNPACKERS[packed](data, _BEGINNING) if packed else data
    envelope = data[:_BEGINNING].removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")
    return (".json" if envelope else ".smt2") + packed


def parse_envelope(document: Mapping[str, Any], limits: Limits | None = None) -> Query:
    """The query of one decoded envelope. Raises ``AdmissionError``.

    Of ``smtspool-query-v1``, ``schema``, ``logic`` and ``target`` are required, and an unknown member is
    refused by name.
    """
    limits = limits or DEFAULT
    schema = text(document, "schema")
    if schema == symcc.SCHEMA:
        return symcc.parse_ir(document, limits)
    if schema != SCHEMA:
        message = f"schema {schema[:64]!r} is neither {SCHEMA} nor {symcc.SCHEMA}"
        raise AdmissionError(Reason.SCHEMA, message, at="schema")
    unknown = document.keys() - _MEMBERS
    if unknown:
        name = min(map(str, unknown))
        raise AdmissionError(Reason.SCHEMA, f"unknown member {name[:64]!r}", at=name)
    declarations, prefix = strings(document, "declarations"), strings(document, "prefix")
    target = text(document, "target")
    logic = text(document, "logic")
    if logic in EVERYTHING:
        logic = _needed((*declarations, *prefix, target), limits)
    try:
        assembler = Assembler(logic, limits)
    except AdmissionError as error:
        error.at = "logic"
        raise
    _read("declarations", declarations, assembler.declare_text, limits)
    _read("prefix", prefix, assembler.assert_text, limits)
    _read("target", [target], assembler.assert_text, limits)
    return assembler.query(
        metadata=object_of(document, "metadata", limits),
        timeout_ms=timeout_of(document, limits),
        priority=priority_of(document, limits),
        witness=_witness(document, assembler, limits),
    )


def _needed(sources: Sequence[str], limits: Limits) -> str:
    """The smallest logic for the declarations and terms of an envelope with the logic ``ALL``."""
    tokens: list[str] = []
    ends = [len(tokens)]
    for source in sources:
        tokens += split(source, limits)
        ends.append(len(tokens))
    return smallest_logic(tokens, list(pairwise(ends)))


def _read(
    member: str, texts: Sequence[str], take: Callable[[str, Sequence[str] | None], None], limits: Limits
) -> None:
    """Call ``take`` with each text of ``member``; a refusal gets its place in the envelope."""
    for number, source in enumerate(texts):
        try:
            take(source, None)
        except AdmissionError as error:
            name = member if member == "target" else f"{member}[{number}]"
            locate(error, source, split(source, limits), partial(take, source), member=name)
            raise


def to_envelope(query: Query) -> dict[str, Any]:
    """``query`` as ``smtspool-query-v1``; parsing it gives an equal query."""
    envelope: dict[str, Any] = {
        "schema": SCHEMA,
        "logic": query.logic,
        "declarations": list(query.declarations),
        "prefix": list(query.prefix),
        "target": query.target,
        "metadata": dict(query.metadata),
        "timeout_ms": query.timeout_ms,
        "priority": query.priority,
    }
    if query.witness is not None:
        envelope["witness"] = {
            "input_hex": query.witness.input.hex(),
            "symbols": dict(query.witness.symbols),
        }
    return envelope


def _witness(document: Mapping[str, Any], assembler: Assembler, limits: Limits) -> Witness | None:
    witness = document.get("witness")
    if witness is None:
        return None
    if not isinstance(witness, Mapping) or not witness.keys() <= {"input_hex", "symbols"}:
        raise AdmissionError(Reason.SCHEMA, "'witness' must be an object of 'input_hex' and 'symbols'")
    symbols = witness.get("symbols", {})
    if not isinstance(symbols, Mapping):
        raise AdmissionError(Reason.SCHEMA, "'symbols' of the witness must be an object")
    limits.hold("witness_symbols", len(symbols))
    places = tuple(_places(symbols, assembler, limits))
    if len({offset for _, offset in places}) != len(places) or len(dict(places)) != len(places):
        raise AdmissionError(Reason.SCHEMA, "two symbols of the witness stand for one byte, or one for two")
    return witness_of(hex_bytes(witness, "input_hex", limits), places, limits)


def _places(
    symbols: Mapping[object, object], assembler: Assembler, limits: Limits
) -> Iterator[tuple[str, int]]:
    for name, offset in symbols.items():
        declaration = assembler.find(name) if isinstance(name, str) else None
        if declaration is None and isinstance(name, str) and len(tokens := tokenize(name, limits)) == 1:
            declaration = assembler.find(tokens[0])  # it is spelled otherwise here
        symbol = None if declaration is None or declaration.defined else declaration.symbol
        if symbol is None or symbol.sort != _BYTE_SORT or symbol.params:
            raise AdmissionError(Reason.SYMBOL, f"the witness symbol {name!r:.64} is not a declared byte")
        yield symbol.name, integer(offset, f"the offset of {symbol.name[:64]}", 0, limits.witness - 1)
