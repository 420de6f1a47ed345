"""Verification of a whole store, changing nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Finding", "check_store"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a store that should not be."""

    kind: str
    subject: str
    message: str


def check_store(directory: Path) -> list[Finding]:
    """Findings, empty for a healthy store."""
    raise NotImplementedError
