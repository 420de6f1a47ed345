"""Typed access to the members of an envelope. Booleans are never integers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from smtspool.errors import AdmissionError, Reason
from smtspool.query.limits import Limits
from smtspool.query.value import DEFAULT_TIMEOUT_MS, Witness

__all__ = ["hex_bytes", "integer", "object_of", "priority_of", "strings", "text", "timeout_of", "witness_of"]

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*+", re.ASCII)
_LARGEST_FLOAT = 1e300


def _refused(message: str, at: str | None = None) -> AdmissionError:
    """``at`` is the path of the member that is to blame."""
    return AdmissionError(Reason.SCHEMA, message, at=at)


def text(document: Mapping[str, Any], name: str) -> str:
    """A required string."""
    value = document.get(name)
    if not isinstance(value, str):
        raise _refused(f"{name!r} must be a string", name)
    return value


def strings(document: Mapping[str, Any], name: str) -> list[str]:
    """A list of strings; empty when absent."""
    value = document.get(name, [])
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise _refused(f"{name!r} must be a list of strings", name)
    return list(value)


def integer(value: object, what: str, least: int, most: int) -> int:
    """``value`` if it is an integer from ``least`` to ``most``."""
    if type(value) is not int or not least <= value <= most:
        raise _refused(f"{what} must be an integer from {least} to {most}", what.strip("'"))
    return value


def hex_bytes(document: Mapping[str, Any], name: str, limits: Limits, *, required: bool = False) -> bytes:
    """Bytes in hexadecimal; empty when absent and not ``required``."""
    value = document.get(name, None if required else "")
    if not isinstance(value, str) or _HEX.fullmatch(value) is None:
        raise _refused(f"{name!r} must be bytes in hexadecimal", name)
    limits.hold("witness", len(value) // 2)
    return bytes.fromhex(value)


def timeout_of(document: Mapping[str, Any], limits: Limits) -> int:
    """``timeout_ms``, at least 1."""
    return integer(document.get("timeout_ms", DEFAULT_TIMEOUT_MS), "'timeout_ms'", 1, limits.timeout_ms)


def priority_of(document: Mapping[str, Any], limits: Limits) -> float:
    """``priority``, 0 when absent."""
    value = document.get("priority", 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= limits.priority:
        span = f"from {-limits.priority:g} to {limits.priority:g}"
        raise _refused(f"'priority' must be a number {span}", "priority")
    return float(value)


def object_of(document: Mapping[str, Any], name: str, limits: Limits) -> dict[str, Any]:
    """A small object such as ``metadata``, checked and copied; empty when absent."""
    value = document.get(name, {})
    if not isinstance(value, Mapping):
        raise _refused(f"{name!r} must be an object", name)
    return _members(value, limits, 1)


def _members(value: Mapping[Any, Any], limits: Limits, depth: int) -> dict[str, Any]:
    limits.hold("metadata_depth", depth)
    limits.hold("metadata_members", len(value))
    return {_key(key, limits): _plain(item, limits, depth + 1) for key, item in value.items()}


def _plain(value: object, limits: Limits, depth: int) -> object:
    """A copy made of JSON values alone. Recursion ends at ``metadata_depth``."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        return value
    if isinstance(value, float) and abs(value) < _LARGEST_FLOAT:
        return value
    if isinstance(value, Mapping):
        return _members(value, limits, depth)
    if isinstance(value, list | tuple):
        limits.hold("metadata_depth", depth)
        limits.hold("metadata_list", len(value))
        return [_plain(item, limits, depth + 1) for item in value]
    raise _refused(f"metadata cannot hold {value!r:.64}")


def _key(key: object, limits: Limits) -> str:
    if not isinstance(key, str):
        raise _refused("a metadata key must be a string")
    limits.hold("metadata_key", len(key))
    return _encodable(key)


def _encodable(value: str) -> str:
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise _refused("metadata cannot hold half a surrogate pair")
    return value


def witness_of(data: bytes, places: tuple[tuple[str, int], ...], limits: Limits) -> Witness:
    """A witness. Its symbols may not lie far behind its input, since new inputs are as long as they reach."""
    reach = max((offset + 1 for _, offset in places), default=0)
    limits.hold("witness_extension", reach - len(data))
    return Witness(data, places)
