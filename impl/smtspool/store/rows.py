"""Between rows and values: texts, witnesses and answers, each checked against its digest when read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, TypeVar

from smtspool.errors import InfrastructureError
from smtspool.query import Answer, Form, Query, Remarks, Witness, decode, decode_form, decode_remarks, encode

from .database import Database

__all__ = [
    "QUERY",
    "QUERY_TABLES",
    "Damaged",
    "answer_body",
    "decoded",
    "digest_of",
    "query_of",
    "read_answer",
    "read_form",
    "read_query",
    "read_remarks",
    "read_witness",
    "read_witnesses",
    "text_body",
    "witness_body",
]


T = TypeVar("T")


_ENCODER = json.JSONEncoder(separators=(",", ":"), sort_keys=True)


class Damaged(InfrastructureError):
    """A stored text that does not match its digest or cannot be read. Other rows are not affected."""


def digest_of(body: bytes) -> bytes:
    return sha256(body).digest()


def text_body(query: Query) -> bytes:
    """The query without its witness, which has a row of its own."""
    return encode(query if query.witness is None else replace(query, witness=None))


def witness_body(witness: Witness) -> bytes:
    members = {"input_hex": witness.input.hex(), "symbols": witness.symbols}
    return json.dumps(members, separators=(",", ":")).encode()


def answer_body(answer: Answer) -> bytes:
    return _ENCODER.encode(answer.to_json()).encode()


# The columns that query_of takes, after the number of the row, and the tables they come from.
QUERY = "q.number, q.id, q.timeout_ms, q.priority, t.body, w.digest, w.body"
QUERY_TABLES = (
    "queries q LEFT JOIN texts t ON t.query = q.number "
    "LEFT JOIN witnesses w ON w.query = q.number AND w.position = 0"
)


def read_query(db: Database, number: int) -> Query:
    """The query of a row, see :func:`query_of`. Raises Damaged."""
    select = f"SELECT {QUERY} FROM {QUERY_TABLES} WHERE q.number = ?"
    row = db.connection.execute(select, (number,)).fetchone()
    if row is None:
        raise Damaged(f"query number {number} has no row")
    return query_of(number, row[1:])


def query_of(number: int, columns: Sequence[Any]) -> Query:
    """The query with the timeout and priority it has now and its oldest witness. Raises Damaged."""
    identity, timeout_ms, priority, body, witness_digest, witness = columns
    query = decoded(_text(body, number), identity)
    if witness is not None:
        return replace(
            query, timeout_ms=timeout_ms, priority=priority, witness=read_witness(witness, witness_digest)
        )
    if (timeout_ms, priority) != (query.timeout_ms, query.priority):
        return replace(query, timeout_ms=timeout_ms, priority=priority)
    return query


def _text(body: bytes | None, number: int) -> bytes:
    if body is None:
        raise Damaged(f"query number {number} has no text")
    return body


def decoded(body: bytes, identity: bytes) -> Query:
    """The query with this id that the bytes stand for. Raises Damaged."""
    try:
        query = decode(body)
    except InfrastructureError as error:
        raise Damaged(str(error)) from error
    _check_identity(query.id, identity)
    return query


def read_remarks(db: Database, number: int) -> Remarks:
    """Metadata and notes of the query of a row. Raises Damaged."""
    return _read_part(db, number, decode_remarks)


def read_form(db: Database, number: int) -> Form:
    """The form of the query of a row. Raises Damaged."""
    return _read_part(db, number, decode_form)


def _read_part(db: Database, number: int, decode_part: Callable[[bytes], tuple[str, T]]) -> T:
    identity, body = db.connection.execute(
        "SELECT q.id, t.body FROM queries q LEFT JOIN texts t ON t.query = q.number WHERE q.number = ?",
        (number,),
    ).fetchone() or (b"", None)
    try:
        stored, part = decode_part(_text(body, number))
    except InfrastructureError as error:
        raise Damaged(str(error)) from error
    _check_identity(stored, identity)
    return part


def _check_identity(stored: str, identity: bytes) -> None:
    if bytes.fromhex(stored) != identity:
        raise Damaged("the stored text belongs to another query")


def read_witnesses(db: Database, number: int) -> list[Witness]:
    """The witnesses of a query, oldest first. Raises Damaged."""
    rows = db.connection.execute(
        "SELECT digest, body FROM witnesses WHERE query = ? ORDER BY position", (number,)
    )
    return [read_witness(body, digest) for digest, body in rows]


def read_witness(body: bytes, digest: bytes) -> Witness:
    """Raises Damaged."""
    members = json.loads(_checked(body, digest, "a witness of the query"))
    symbols = tuple((name, offset) for name, offset in members["symbols"])
    return Witness(input=bytes.fromhex(members["input_hex"]), symbols=symbols)


def read_answer(body: bytes, digest: bytes) -> Answer:
    """Raises Damaged."""
    return Answer.from_json(json.loads(_checked(body, digest, "the answer")))


def _checked(body: bytes, digest: bytes, what: str) -> bytes:
    if digest_of(body) != digest:
        raise Damaged(f"{what} is damaged: its bytes do not match the digest they were stored with")
    return body
