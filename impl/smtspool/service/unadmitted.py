"""Submitted files without a query in the store: those not admitted yet, and those refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from smtspool.errors import AdmissionError
from smtspool.files import Directory, Unstable, read_stable
from smtspool.query import file_patterns
from smtspool.spool import is_published

from .campaign import Campaign

__all__ = ["Unadmitted", "find_unadmitted"]

SIDECAR_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Unadmitted:
    """One file in ``incoming/``, or one in ``rejected/`` with the content of its sidecar."""

    name: str
    refusal: Mapping[str, Any] | None


def find_unadmitted(campaign: Campaign, file: str) -> Iterator[Unadmitted]:
    """The files that were submitted as ``file``, which may be a shell pattern, in the order of names."""
    patterns = file_patterns(file)

    def asked(name: str) -> bool:
        return name == file or any(fnmatchcase(name, pattern) for pattern in patterns)

    with (
        Directory.open(campaign.spool) as root,
        root.child("incoming") as incoming,
        root.child("rejected") as rejected,
    ):
        for name in sorted(filter(is_published, incoming.names())):
            if asked(name):
                yield Unadmitted(name, None)
        for sidecar in sorted(rejected.names()):
            name = sidecar.removesuffix(".error")
            if sidecar != name and asked(name):
                refusal = _refusal(rejected, sidecar)
                if refusal is not None:
                    yield Unadmitted(name, refusal)


def _refusal(rejected: Directory, sidecar: str) -> dict[str, Any] | None:
    """The content of a sidecar; None if it is gone, is being written, or is not one of smtspool."""
    with suppress(AdmissionError, FileNotFoundError, Unstable, ValueError, RecursionError):
        refusal = json.loads(read_stable(rejected, sidecar, SIDECAR_BYTES)[0])
        if isinstance(refusal, dict):
            return refusal
    return None
