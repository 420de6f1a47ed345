"""Between rows and values: texts, witnesses and answers, each checked against its digest when read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256

from smtspool.errors import InfrastructureError
from smtspool.query import Answer, Query, Witness, decode, decode_metadata, encode

from .database import Database

__all__ = [
    "Damaged",
    "answer_body",
    "decoded",
    "digest_of",
    "read_answer",
    "read_metadata",
    "read_query",
    "read_witnesses",
    "text_body",
    "witness_body",
]


class Damaged(InfrastructureError):
    """A stored text that does not match its digest or cannot be read. One row is lost, the rest is fine."""


def digest_of(body: bytes) -> bytes:
    return sha256(body).digest()


def text_body(query: Query) -> bytes:
    """The query without its witness, which has a row of its own."""
    return encode(query if query.witness is None else replace(query, witness=None))


def witness_body(witness: Witness) -> bytes:
    members = {"input_hex": witness.input.hex(), "symbols": witness.symbols}
    return json.dumps(members, separators=(",", ":")).encode()


def answer_body(answer: Answer) -> bytes:
    return json.dumps(answer.to_json(), separators=(",", ":"), sort_keys=True).encode()


def read_query(db: Database, number: int) -> Query:
    """The query of a row, with the timeout and priority it has now and its oldest witness.

    Raises Damaged.
    """
    row = db.connection.execute(
        "SELECT q.id, q.timeout_ms, q.priority, t.body FROM queries q JOIN texts t ON t.query = q.number "
        "WHERE q.number = ?",
        (number,),
    ).fetchone()
    if row is None:
        raise Damaged(f"query number {number} has no text")
    identity, timeout_ms, priority, body = row
    query = decoded(body, identity)
    witness = next(iter(read_witnesses(db, number, limit=1)), None)
    return replace(query, timeout_ms=timeout_ms, priority=priority, witness=witness)


def decoded(body: bytes, identity: bytes) -> Query:
    """The query with this id that the bytes stand for. Raises Damaged."""
    try:
        query = decode(body)
    except InfrastructureError as error:
        raise Damaged(str(error)) from error
    _check_identity(query.id, identity)
    return query


def _check_identity(stored: str, identity: bytes) -> None:
    if bytes.fromhex(stored) != identity:
        raise Damaged("the stored text belongs to another query")


def read_metadata(db: Database, number: int) -> Mapping[str, object]:
    """The metadata of the query of a row. Raises Damaged."""
    row = db.connection.execute(
        "SELECT q.id, t.body FROM queries q JOIN texts t ON t.query = q.number WHERE q.number = ?", (number,)
    ).fetchone()
    if row is None:
        raise Damaged(f"query number {number} has no text")
    identity, body = row
    try:
        stored, metadata = decode_metadata(body)
    except InfrastructureError as error:
        raise Damaged(str(error)) from error
    _check_identity(stored, identity)
    return metadata


def read_witnesses(db: Database, number: int, *, limit: int = -1) -> list[Witness]:
    """The witnesses of a query, oldest first. Raises Damaged."""
    rows = db.connection.execute(
        "SELECT digest, body FROM witnesses WHERE query = ? ORDER BY position LIMIT ?", (number, limit)
    )
    witnesses = []
    for digest, body in rows:
        members = json.loads(_checked(body, digest, "a witness of the query"))
        symbols = tuple((name, offset) for name, offset in members["symbols"])
        witnesses.append(Witness(input=bytes.fromhex(members["input_hex"]), symbols=symbols))
    return witnesses


def read_answer(body: bytes, digest: bytes) -> Answer:
    """Raises Damaged."""
    return Answer.from_json(json.loads(_checked(body, digest, "the answer")))


def _checked(body: bytes, digest: bytes, what: str) -> bytes:
    if digest_of(body) != digest:
        raise Damaged(f"{what} is damaged: its bytes do not match the digest they were stored with")
    return body
