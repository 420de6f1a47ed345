"""Files that were submitted and have no query: those not admitted yet, and those refused."""

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
    """One file in ``incoming/``, or one in ``rejected/`` with what its sidecar says."""

    name: str
    refusal: Mapping[str, Any] | None


def find_unadmitted(campaign: Campaign, file: str) -> Iterator[Unadmitted]:
    """The files that were submitted as ``file``, which may be a shell pattern, in the order of names."""
    patterns = file_patterns(file)
    with (
        Directory.open(campaign.spool) as root,
        root.child("incoming") as incoming,
        root.child("rejected") as rejected,
    ):
        for name in sorted(filter(is_published, incoming.names())):
            if name == file or any(fnmatchcase(name, pattern) for pattern in patterns):
                yield Unadmitted(name, None)
        for sidecar in sorted(rejected.names()):
            name = sidecar.removesuffix(".error")
            if sidecar != name and (name == file or any(fnmatchcase(name, pattern) for pattern in patterns)):
                # A service may be writing it, or an operator may take it away.
                with suppress(AdmissionError, FileNotFoundError, Unstable, ValueError):
                    text, _ = read_stable(rejected, sidecar, SIDECAR_BYTES)
                    yield Unadmitted(name, json.loads(text))
