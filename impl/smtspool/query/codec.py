"""A query as the bytes of a store row: checked by digest, and read back without parsing any term."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from itertools import chain as flatten
from typing import Any, NamedTuple

from smtspool.errors import InfrastructureError
from smtspool.query.identity import chain
from smtspool.query.memory import Memo
from smtspool.query.value import Form, Level, Query, Symbol, Witness

__all__ = ["Remarks", "decode", "decode_form", "decode_remarks", "encode"]

_VERSION = b"Q1"
_FORM, _METADATA, _NOTES = slice(7, 9), 10, 14  # places among the members
_DIGEST = 16  # bytes of SHA-256 kept: enough to notice damage, not forgery


class Remarks(NamedTuple):
    """What a query has beside its text: metadata and notes."""

    metadata: Mapping[str, object]
    notes: tuple[str, ...]


def encode(query: Query) -> bytes:
    """The query as bytes, the same for equal queries with equal notes.

    Not compressed: on real queries zlib halves the size and doubles the time, and a row is below a page.
    """
    place = {text: at for at, text in enumerate(query.declarations)}
    witness = query.witness
    asked = [query.notes, query.values] if query.notes or query.values else []
    payload = json.dumps(
        [
            query.id,
            query.logic,
            query.declarations,
            [(symbol.name, symbol.sort, symbol.params) for symbol in query.symbols],
            query.prefix,
            query.target,
            [[place[text] for text in level.declarations] for level in query.levels],
            query.form.digest,
            query.form.order,
            None if witness is None else (witness.input.hex(), witness.symbols),
            query.metadata,
            query.timeout_ms,
            query.priority,
            query.size,
            *asked,  # only if there are any; version 0.1 wrote none
        ],
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode()
    return _VERSION + sha256(payload).digest()[:_DIGEST] + payload


def decode(data: bytes) -> Query:
    """The inverse of :func:`encode`. Raises ``InfrastructureError`` when the bytes are not what it wrote."""
    (
        identity,
        logic,
        declarations,
        symbols,
        prefix,
        target,
        places,
        form,
        order,
        witness,
        metadata,
        timeout_ms,
        priority,
        size,
        *asked,
    ) = _members(data)
    notes, values = asked or ((), ())
    levels: list[Level] = []
    below = ""
    for assertion, needs in zip(flatten(prefix, (target,)), places, strict=True):
        levels.append(_level(below, logic, tuple([declarations[at] for at in needs]), assertion))
        below = levels[-1].key
    return Query(
        logic=logic,
        symbols=tuple([Symbol(name, sort, tuple(params)) for name, sort, params in symbols]),
        declarations=tuple(declarations),
        prefix=tuple(prefix),
        target=target,
        witness=None if witness is None else _witness(*witness),
        metadata=metadata,
        timeout_ms=timeout_ms,
        priority=priority,
        id=identity,
        levels=tuple(levels),
        form=Form(form, tuple(order)),
        size=size,
        notes=tuple(notes),
        values=tuple(values),
    )


# A path's queries share all levels but the last few, and are read one after the other.
_levels = Memo[tuple[str, ...], Level]()


def _level(below: str, logic: str, needs: tuple[str, ...], assertion: str) -> Level:
    key = (below or logic, assertion, *needs)
    level = _levels.get(key)
    if level is None:
        level = chain(below, logic, needs, assertion)
        _levels.put(key, level, len(assertion) + sum(map(len, needs)))
    return level


def decode_remarks(data: bytes) -> tuple[str, Remarks]:
    """Id, metadata and notes alone, for a third of the time. Raises as :func:`decode` does."""
    members = _members(data)
    return members[0], Remarks(members[_METADATA], tuple(members[_NOTES]) if len(members) > _NOTES else ())


def decode_form(data: bytes) -> tuple[str, Form]:
    """Id and form alone, likewise."""
    members = _members(data)
    digest, order = members[_FORM]
    return members[0], Form(digest, tuple(order))


def _members(data: bytes) -> list[Any]:
    start = len(_VERSION) + _DIGEST
    payload = data[start:]
    if data[: len(_VERSION)] != _VERSION:
        raise InfrastructureError("a stored query is damaged or of another version")
    if data[len(_VERSION) : start] != sha256(payload).digest()[:_DIGEST]:
        raise InfrastructureError("a stored query is damaged: its digest does not match")
    members: list[Any] = json.loads(payload)
    return members


def _witness(input_hex: str, symbols: list[tuple[str, int]]) -> Witness:
    return Witness(bytes.fromhex(input_hex), tuple([(name, offset) for name, offset in symbols]))
