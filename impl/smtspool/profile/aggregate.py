"""From records to profiles: the values that all runs of the window saw, by key (F300)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from heapq import nsmallest
from math import log2
from typing import NamedTuple

from smtspool.profile.policy import Policy
from smtspool.profile.record import MAX_DOMAIN, MAX_PROFILES, MAX_VALUES, UINT64, Record, Yield

__all__ = ["Aggregate", "Domain", "Key", "Profile", "aggregate", "yields"]


class Key(NamedTuple):
    """An operand: that of ``bits`` bits which the program ``context`` compares at ``site``."""

    context: str
    site: int
    bits: int


class Domain(NamedTuple):
    """The one to eight values that an operand takes; ascending."""

    key: Key
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """One key, over all records."""

    key: Key
    runs: int  # records that saw it
    observations: int
    saturated: bool
    values: tuple[tuple[int, int], ...]  # (value, count), ascending

    @property
    def complete(self) -> bool:
        """Every observation is in a count."""
        return not self.saturated and sum(count for _, count in self.values) == self.observations

    @property
    def entropy_bits(self) -> float | None:
        """Shannon entropy, nine decimals; None where counts were lost."""
        if not self.complete:
            return None
        shares = [count / self.observations for _, count in self.values]
        return abs(round(-sum(share * log2(share) for share in shares), 9))

    def limited(self, policy: Policy) -> bool:
        """Few values, seen often enough, and none lost."""
        return (
            self.observations >= policy.min_observations
            and len(self.values) <= policy.max_distinct_values
            and self.complete
        )

    def domain(self, policy: Policy) -> Domain | None:
        """The domain for probers; None for a profile that is not limited or has more than eight values."""
        if not self.limited(policy) or len(self.values) > MAX_DOMAIN:
            return None
        return Domain(self.key, tuple(value for value, _ in self.values))


@dataclass(frozen=True, slots=True)
class Aggregate:
    """All profiles of some records, by key."""

    input_records: int
    contexts: tuple[str, ...]
    profiles: tuple[Profile, ...]


def aggregate(records: Sequence[Record]) -> Aggregate:
    """Sum rows by key. Of more than 4,096 keys, those whose names hash smallest are kept.

    A 65th value of a key is dropped and saturates it. A key whose sums exceed 64 bits is left out, since they
    cannot be written.
    """
    rows: dict[tuple[str, int, int], list[int]] = {}
    counts: dict[tuple[str, int, int], dict[int, int]] = {}
    for record in records:
        context = record.context
        for site, bits, observations, saturated, values in record.profiles:
            key = context, site, bits
            total = rows.get(key)
            if total is None:
                rows[key] = [1, observations, saturated]
                counts[key] = dict(values)
                continue
            total[0] += 1
            total[1] += observations
            total[2] |= saturated
            seen = counts[key]
            for value, count in values:
                if value in seen:
                    seen[value] += count
                elif len(seen) < MAX_VALUES:
                    seen[value] = count
                else:
                    total[2] = True
    profiles = [
        Profile(Key(*key), runs, observations, bool(saturated), tuple(sorted(counts[key].items())))
        for key, (runs, observations, saturated) in sorted(rows.items())
        if observations <= UINT64
    ]
    if len(profiles) > MAX_PROFILES:
        profiles = sorted(nsmallest(MAX_PROFILES, profiles, key=_rank), key=lambda profile: profile.key)
    contexts = sorted({record.context for record in records})
    return Aggregate(len(records), tuple(contexts), tuple(profiles))


def _rank(profile: Profile) -> bytes:
    key = profile.key
    return sha256(f"{key.context}:{key.site}:{key.bits}".encode()).digest()


def yields(records: Iterable[Record], domains: Iterable[Domain]) -> dict[Domain, Yield]:
    """The outcomes of probing exactly these domains, summed over the records; without sums that overflow."""
    wanted = set(domains)
    found: dict[Domain, Yield | None] = {}
    for record in records:
        for row in record.feedback:
            domain = Domain(Key(record.context, row.site, row.bits), row.values)
            if domain in wanted:
                known = found.get(domain, Yield())
                found[domain] = None if known is None else known.plus(row.found)
    return {domain: total for domain, total in found.items() if total is not None}
