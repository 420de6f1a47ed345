"""Length-prefixed JSON frames, which the channel between service and helper carries.

A frame is four bytes of length, most significant first, and that many bytes of UTF-8 JSON: one object. Both
sides refuse a frame over their limit as soon as they have read its length, before they allocate memory for
it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

__all__ = ["FrameError", "Inbox", "Oversize", "pack", "unpack"]

_LENGTH = struct.Struct("!I")
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


class FrameError(ValueError):
    """The bytes are not a frame."""


class Oversize(FrameError):
    """The frame is over the limit."""


def pack(document: Mapping[str, Any], limit: int) -> bytes:
    """One frame. Raises :class:`Oversize`, ``UnicodeEncodeError`` for lone surrogates."""
    body = _ENCODER.encode(document).encode()
    if len(body) > limit:
        raise Oversize(f"a frame of {len(body)} bytes is over the limit of {limit}")
    return _LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> dict[str, Any]:
    """The object in a frame's body. Raises ``UnicodeDecodeError`` or :class:`FrameError`."""
    text = body.decode()
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise FrameError("not a JSON object")
    return document


class Inbox:
    """Collects the bytes of one frame as they come."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: list[bytes] = []
        self._size = 0
        self._need: int | None = None

    def feed(self, chunk: bytes) -> bytes | None:
        """The body once it is complete. Raises :class:`Oversize`; :class:`FrameError` for bytes beyond it."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._need is None:
            if self._size < _LENGTH.size:
                return None
            joined = b"".join(self._chunks)
            (length,) = _LENGTH.unpack_from(joined)
            if length > self._limit:
                raise Oversize(f"a frame of {length} bytes is over the limit of {self._limit}")
            self._need = _LENGTH.size + length
            self._chunks = [joined]
        if self._size < self._need:
            return None
        if self._size > self._need:
            raise FrameError(f"{self._size - self._need} bytes follow the frame")
        return b"".join(self._chunks)[_LENGTH.size :]
