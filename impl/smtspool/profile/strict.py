"""Strict JSON files of bounded size. Callers check their members."""

from __future__ import annotations

import json
from typing import Any

from smtspool.errors import AdmissionError, Reason

__all__ = ["load"]


def load(data: bytes, max_bytes: int, encoding: str = "ascii") -> dict[str, Any]:
    """The JSON object in ``data``; no member twice, no NaN. Raises ``AdmissionError`` and nothing else."""
    if len(data) > max_bytes:
        raise AdmissionError(Reason.TOO_LARGE, f"{len(data)} bytes; at most {max_bytes} are read")
    try:
        document = json.loads(
            data.decode(encoding), object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite
        )
    except UnicodeDecodeError as error:
        raise AdmissionError(Reason.ENCODING, f"not {encoding} at byte {error.start}") from None
    except (ValueError, RecursionError) as error:  # ValueError: also of integers of thousands of digits
        raise AdmissionError(Reason.JSON, f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise AdmissionError(Reason.JSON, "the document is not a JSON object")
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member stands twice in one object")
    return members


def _finite(text: str) -> float:
    number = float(text)
    return number if abs(number) < float("inf") else _refuse(text)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text[:32]} is no JSON number")
