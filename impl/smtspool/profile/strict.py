"""Strict JSON files of bounded size. Callers check their members."""

from __future__ import annotations

from typing import Any

from smtspool.errors import AdmissionError, Reason
from smtspool.jsonvalue import value_of

__all__ = ["load"]


def load(data: bytes, max_bytes: int, encoding: str = "ascii") -> dict[str, Any]:
    """The JSON object in ``data``; no member twice, no NaN. Raises ``AdmissionError`` and nothing else."""
    if len(data) > max_bytes:
        raise AdmissionError(Reason.TOO_LARGE, f"{len(data)} bytes; at most {max_bytes} are read")
    try:
        document = value_of(data.decode(encoding))
    except UnicodeDecodeError as error:
        raise AdmissionError(Reason.ENCODING, f"not {encoding} at byte {error.start}") from None
    except (ValueError, RecursionError) as error:  # ValueError: also of integers of thousands of digits
        raise AdmissionError(Reason.JSON, f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise AdmissionError(Reason.JSON, "the document is not a JSON object")
    return document
