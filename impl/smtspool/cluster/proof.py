"""The proof of a qualification, in numbers, and the transcript that all ranks must agree on (F351, F352).

The transcript hashes everything that must be equal on all hosts: epoch, generation, membership,
representatives and the four counts. Device numbers, inodes and mounts may differ between clients of one file
system, so each host checks them for itself. The transcript is not a signature: it reveals stale, mixed and
different results among processes that trust each other.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "MAX_GENERATION",
    "PROCESSOR_LIMIT",
    "Member",
    "Proof",
    "exact_generation",
    "is_processor",
    "is_token",
    "representatives_of",
    "require_complete",
    "transcript_of",
]

MAX_GENERATION = 2**63 - 1
PROCESSOR_LIMIT = 255  # bytes of UTF-8
_TOKEN = re.compile(r"[0-9a-f]{64}")
_DOMAIN = b"smtspool-cluster-lock-proof-v1\0"


class Member(NamedTuple):
    """One rank, and the host that it reports."""

    rank: int
    processor: str


@dataclass(frozen=True, slots=True)
class Proof:
    """The members and the counts. ``Proof()``, without any, is that of a failure.

    For M members on H hosts a whole proof has H rounds, H*(M-1) contention checks (every other rank was
    refused), H release checks (every other host got the lock afterwards), M identity checks, and the
    transcript. A representative is the lowest rank of its host.
    """

    members: tuple[Member, ...] = ()
    representatives: tuple[int, ...] = ()
    rounds: int = 0
    contention_checks: int = 0
    release_checks: int = 0
    identity_checks: int = 0
    transcript: str = ""

    def to_json(self) -> dict[str, object]:
        return {
            "members": [{"rank": member.rank, "processor": member.processor} for member in self.members],
            "representatives": list(self.representatives),
            "rounds": self.rounds,
            "contention_checks": self.contention_checks,
            "release_checks": self.release_checks,
            "identity_checks": self.identity_checks,
            "transcript": self.transcript,
        }


def representatives_of(members: tuple[Member, ...]) -> tuple[int, ...]:
    """The lowest rank of each processor, ascending."""
    first: dict[str, int] = {}
    for member in members:
        first.setdefault(member.processor, member.rank)
    return tuple(first.values())


def require_complete(proof: Proof) -> None:
    """ValueError unless the counts are those of a whole proof across at least two hosts (F329, F351)."""
    members = proof.members
    if type(members) is not tuple or any(type(member) is not Member for member in members):
        raise ValueError("the members are not a tuple of members")
    if [member.rank for member in members] != list(range(len(members))):
        raise ValueError("the members are not the ranks of a communicator")
    if not all(is_processor(member.processor) for member in members):
        raise ValueError("a member has no valid processor name")
    if proof.representatives != representatives_of(members) or len(proof.representatives) < 2:
        raise ValueError("the representatives are not one rank of each of two or more processors")
    hosts = len(proof.representatives)
    wanted = (hosts, hosts * (len(members) - 1), hosts, len(members))
    counted = (proof.rounds, proof.contention_checks, proof.release_checks, proof.identity_checks)
    if counted != wanted or not all(type(count) is int for count in counted):
        raise ValueError(f"the counts are {counted}, a whole proof has {wanted}")


def transcript_of(epoch: str, generation: int, proof: Proof) -> str:
    """The SHA-256 that every rank computes by itself; ValueError for values of other types or ranges."""
    if not is_token(epoch) or exact_generation(generation) is None:
        raise ValueError("a transcript needs an epoch and a generation")
    hashed = hashlib.sha256(_DOMAIN + bytes.fromhex(epoch))
    for number in (
        generation,
        len(proof.members),
        len(proof.representatives),
        proof.rounds,
        proof.contention_checks,
        proof.release_checks,
        proof.identity_checks,
    ):
        hashed.update(_exact(number))
    for member in proof.members:
        name = member.processor.encode()
        hashed.update(_exact(member.rank) + len(name).to_bytes(4) + name)
    for rank in proof.representatives:
        hashed.update(_exact(rank))
    return hashed.hexdigest()


def _exact(number: int) -> bytes:
    if exact_generation(number) is None:
        raise ValueError(f"not a whole number of 63 bits: {number!r}")
    return number.to_bytes(8)


def exact_generation(value: object) -> int | None:
    """``value`` if it is exactly an ``int`` in range, else None; ``True`` is not accepted (F355 §4.2)."""
    return value if type(value) is int and 0 <= value <= MAX_GENERATION else None


def is_token(value: object) -> bool:
    """64 lower-case hexadecimal digits."""
    return type(value) is str and _TOKEN.fullmatch(value) is not None


def is_processor(value: object) -> bool:
    """A name of a host: not empty, at most 255 bytes of UTF-8, without NUL."""
    if type(value) is not str or not value or "\0" in value:
        return False
    try:
        return len(value.encode()) <= PROCESSOR_LIMIT
    except UnicodeEncodeError:  # a lone surrogate
        return False
