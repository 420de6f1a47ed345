"""Messages between ranks: one bounded JSON object each, as bytes. Nothing of a peer is ever unpickled.

Every message names epoch, generation, attempt and its number within the attempt. So messages that a failed
attempt left in the network are recognised, dropped and counted by the next one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from smtspool.jsonvalue import value_of

from .proof import exact_generation, is_token

__all__ = ["FRAME_LIMIT", "MAX_MASTERS", "Malformed", "Place", "decode", "encode"]

MAX_MASTERS = 1024
# One record: at most 512 characters of error or 255 bytes of name, each up to 12 bytes as JSON escapes, and
# 36 bytes of boot id.
RECORD_LIMIT = 16 * 1024
# The root's answer holds the records of all.
FRAME_LIMIT = RECORD_LIMIT * 64


class Malformed(ValueError):
    """A message is not what the protocol allows here. The text says why."""


class Place(NamedTuple):
    """The position of a message in an epoch. Later places compare greater."""

    generation: int
    attempt: int
    number: int


def encode(schema: str, epoch: str, place: Place, members: Mapping[str, object]) -> bytes:
    """One message; Malformed if it would be longer than any reader accepts."""
    frame = json.dumps({"schema": schema, "epoch": epoch, "place": place, **members}).encode()
    if len(frame) > FRAME_LIMIT:
        raise Malformed(f"a message of {len(frame)} bytes; at most {FRAME_LIMIT} are sent")
    return frame


def decode(frame: bytes, schema: str, keys: frozenset[str]) -> tuple[str, Place, dict[str, Any]]:
    """Epoch, place, and exactly the members ``keys`` of a message; Malformed if it has any other form."""
    try:
        document = value_of(frame.decode())
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not a JSON message: {error}") from None
    if type(document) is not dict or document.pop("schema", None) != schema:
        raise Malformed(f"not a message of schema {schema}")
    epoch, numbers = document.pop("epoch", None), document.pop("place", None)
    if not is_token(epoch):
        raise Malformed("a message without an epoch")
    if type(numbers) is not list or len(numbers) != 3 or None in map(exact_generation, numbers):
        raise Malformed("a message without generation, attempt and number")
    if document.keys() != keys:
        raise Malformed(f"a message with the members {', '.join(sorted(document))}")
    return epoch, Place(*numbers), document
