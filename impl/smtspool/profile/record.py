"""Telemetry records: the values that one run saw and the outcomes of its probes, normalised (F300, F303).

A row of a document that breaks a rule is dropped, the others stay. The record keeps every rule, has each key
once, and is the same for documents with the same content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

from smtspool.errors import AdmissionError, Reason
from smtspool.profile.strict import load

__all__ = [
    "FEEDBACK",
    "MAX_DOMAIN",
    "MAX_FEEDBACK",
    "MAX_PROFILES",
    "MAX_TELEMETRY_BYTES",
    "MAX_VALUES",
    "PROFILES",
    "UINT64",
    "FeedbackRow",
    "ProfileRow",
    "Record",
    "Yield",
    "is_context",
    "is_natural",
    "parse_telemetry",
]

UINT64 = (1 << 64) - 1  # the largest of every count, site and value
MAX_PROFILES = 4096  # rows looked at in one document, and keys of one artifact
MAX_VALUES = 64  # distinct values of one key
MAX_DOMAIN = 8  # values of a domain
MAX_FEEDBACK = 512  # feedback rows looked at in one document
MAX_TELEMETRY_BYTES = 16 << 20

CONTEXT = "empirical_value_profile_context"
PROFILES = "empirical_value_profiles"
FEEDBACK = "empirical_domain_feedback"

_CONTEXT = re.compile(r"[0-9a-f]{64}", re.ASCII)
_BITS = 64


def is_context(value: object) -> bool:
    """A SHA-256 in lowercase hexadecimal."""
    return isinstance(value, str) and _CONTEXT.fullmatch(value) is not None


def is_natural(value: object, most: int = UINT64, least: int = 0) -> bool:
    """An integer in range; booleans and floats are none."""
    return type(value) is int and least <= value <= most


class ProfileRow(NamedTuple):
    """The values that a run saw of the operand of ``bits`` bits at ``site``."""

    site: int
    bits: int
    observations: int
    saturated: bool  # some observations are in no count
    values: tuple[tuple[int, int], ...]  # (value, count), ascending

    @property
    def lawful(self) -> bool:
        """Unsaturated: the counts are all observations. Saturated: they are fewer."""
        counted = sum([count for _, count in self.values])
        return counted < self.observations if self.saturated else counted == self.observations


class Yield(NamedTuple):
    """The outcomes of probing, summed: the last nine items of a feedback row."""

    attempts: int = 0
    prefilter_rejects: int = 0
    solver_queries: int = 0
    sat: int = 0
    validated: int = 0
    validation_failures: int = 0
    solver_unsat: int = 0
    unknown: int = 0
    solver_time_us: int = 0

    @property
    def lawful(self) -> bool:
        """Whether the sums agree: each attempt has one outcome, and each outcome one attempt."""
        return (
            self.attempts > 0
            and self.attempts == self.prefilter_rejects + self.solver_queries
            and self.solver_queries == self.sat + self.solver_unsat + self.unknown
            and self.sat == self.validated + self.validation_failures
        )

    def plus(self, other: Yield) -> Yield | None:
        """The sum; None when a part of it leaves 64 bits."""
        total = Yield(*map(int.__add__, self, other))
        return total if max(total) <= UINT64 else None


class FeedbackRow(NamedTuple):
    """The outcomes of probing one exact domain; ``values`` ascend."""

    site: int
    bits: int
    values: tuple[int, ...]
    found: Yield


@dataclass(frozen=True)
class Record:
    """One normalised document; keys are unique, in the order in which they were first named."""

    context: str
    profiles: tuple[ProfileRow, ...]
    feedback: tuple[FeedbackRow, ...]

    @classmethod
    def of(cls, document: object, known: dict[str, ProfileRow | None] | None = None) -> Record | None:
        """Normalise ``document``; None if it is no telemetry or has no row that keeps the laws.

        Rows after the first 4,096 profiles and 512 feedback rows are ignored. Rows of one key are merged,
        unless the sum would exceed 64 bits. A caller that reads many records passes the same ``known`` with
        each, as a cache of rows, since most runs of a program see the same values.
        """
        if not isinstance(document, Mapping):
            return None
        context, rows = document.get(CONTEXT), document.get(PROFILES)
        if not isinstance(context, str) or not is_context(context) or not isinstance(rows, list | tuple):
            return None
        reports = document.get(FEEDBACK)
        if not isinstance(reports, list | tuple):
            reports = ()
        profiles = _merged_profiles(_profiles(islice(rows, MAX_PROFILES), known))
        feedback = _merged_feedback(_feedback(islice(reports, MAX_FEEDBACK)))
        return cls(context, profiles, feedback) if profiles or feedback else None

    def to_json(self) -> dict[str, object]:
        """The canonical document: ``Record.of`` gives an equal record."""
        return {
            CONTEXT: self.context,
            PROFILES: [[*row[:3], int(row.saturated), row.values] for row in self.profiles],
            FEEDBACK: [[*row[:3], *row.found] for row in self.feedback],
        }

    @cached_property
    def text(self) -> str:
        """The canonical document as a line of JSON, computed once, since a window is written many times."""
        return json.dumps(self.to_json(), separators=(",", ":"))

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that identify the record in traces."""
        return sha256(self.text.encode()).hexdigest()[:16]


def parse_telemetry(data: bytes) -> dict[str, Any]:
    """The document in a telemetry file, of which a record can be made. Raises ``AdmissionError``.

    Strict UTF-8 JSON of at most 16 MiB; members other than those of :class:`Record` may be anything.
    """
    document = load(data, MAX_TELEMETRY_BYTES, "utf-8")
    if Record.of(document) is None:
        raise AdmissionError(
            Reason.SCHEMA,
            "not telemetry: it has no context of 64 lowercase hex digits, or no valid row",
        )
    return document


def _profiles(rows: Iterable[object], known: dict[str, ProfileRow | None] | None) -> Iterator[ProfileRow]:
    for row in rows:
        read = _profile(row) if known is None else _remembered(row, known)
        if read is not None:
            yield read


def _remembered(row: object, known: dict[str, ProfileRow | None]) -> ProfileRow | None:
    try:
        text = repr(row)  # unlike the row itself, it tells 1 from True
    except RecursionError:
        return None
    if text not in known:
        known[text] = _profile(row)
    return known[text]


def _profile(row: object) -> ProfileRow | None:
    if not isinstance(row, list | tuple) or len(row) != 5:
        return None
    site, bits, observations, saturated, pairs = row
    if not (
        is_natural(site, UINT64, 1)
        and is_natural(bits, _BITS, 1)
        and is_natural(observations, UINT64, 1)
        and is_natural(saturated, 1)
        and isinstance(pairs, list | tuple)
        and 0 < len(pairs) <= MAX_VALUES
    ):
        return None
    try:
        counts = dict(pairs)
    except (TypeError, ValueError):
        return None
    for value, count in counts.items():
        if not is_natural(value, (1 << bits) - 1) or not is_natural(count, UINT64, 1):
            return None
    if len(counts) != len(pairs):
        return None
    read = ProfileRow(site, bits, observations, saturated == 1, tuple(sorted(counts.items())))
    return read if read.lawful else None


def _feedback(rows: Iterable[object]) -> Iterator[FeedbackRow]:
    for row in rows:
        read = _report(row)
        if read is not None:
            yield read


def _report(row: object) -> FeedbackRow | None:
    if not isinstance(row, list | tuple) or len(row) not in (11, 12):  # 11: before F304, without the time
        return None
    site, bits, values, *numbers = row
    if not (
        is_natural(site, UINT64, 1)
        and is_natural(bits, _BITS, 1)
        and isinstance(values, list | tuple)
        and 0 < len(values) <= MAX_DOMAIN
        and all(is_natural(value, (1 << bits) - 1) for value in values)
        and all(is_natural(number) for number in numbers)
    ):
        return None
    domain, found = tuple(sorted(set(values))), Yield(*numbers)
    return FeedbackRow(site, bits, domain, found) if len(domain) == len(values) and found.lawful else None


def _merged_profiles(rows: Iterable[ProfileRow]) -> tuple[ProfileRow, ...]:
    merged: dict[tuple[int, int], ProfileRow] = {}
    for row in rows:
        key = row.site, row.bits
        known = merged.get(key)
        merged[key] = row if known is None else _both(known, row)
    return tuple(merged.values())


def _both(one: ProfileRow, other: ProfileRow) -> ProfileRow:
    """One row for two of the same key; ``one`` itself if the sum exceeds 64 bits."""
    observations = one.observations + other.observations
    if observations > UINT64:
        return one
    counts = dict(one.values)
    for value, count in other.values:
        if value in counts or len(counts) < MAX_VALUES:
            counts[value] = counts.get(value, 0) + count
    saturated = sum(counts.values()) < observations
    return ProfileRow(one.site, one.bits, observations, saturated, tuple(sorted(counts.items())))


def _merged_feedback(rows: Iterable[FeedbackRow]) -> tuple[FeedbackRow, ...]:
    merged: dict[tuple[int, int, tuple[int, ...]], Yield] = {}
    for site, bits, values, found in rows:
        known = merged.get((site, bits, values))
        merged[site, bits, values] = found if known is None else known.plus(found) or known
    return tuple(FeedbackRow(*key, found) for key, found in merged.items())
