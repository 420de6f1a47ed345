"""The one path from records to domains: publishing and recovery both take it (F305 §3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from smtspool.profile.aggregate import aggregate, yields
from smtspool.profile.artifact import Artifact, Suppression, parse_artifact
from smtspool.profile.policy import Policy
from smtspool.profile.record import Record
from smtspool.profile.runtime import runtime_text, semantics

__all__ = ["Candidate", "ProfileGeneration", "build_candidate", "materialise"]


@dataclass(frozen=True, slots=True)
class ProfileGeneration:
    """One published set of domains; ``content`` is the runtime text, ``version`` its SHA-256."""

    version: str
    content: bytes
    artifact_sha256: str
    profile_count: int  # domains
    suppressed_count: int

    def means(self, other: ProfileGeneration) -> bool:
        """Whether both have the same domains, so that a prober acts alike (F305 §3.2); counts may differ."""
        return semantics(self.content) == semantics(other.content)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What could be published: the artifact file and the generation it stands for."""

    artifact: bytes
    generation: ProfileGeneration


def build_candidate(records: Sequence[Record], policy: Policy) -> Candidate:
    """Aggregate, admit, seal and materialise. Pure: equal records and policy give equal bytes.

    Raises ``AdmissionError`` (too-large) if the artifact could not be read again.
    """
    found = aggregate(records)
    admitted = Artifact(policy, found, ())
    probed = yields(records, admitted.domains)
    suppressed = [
        Suppression(domain, probed[domain])
        for domain in admitted.domains
        if domain in probed and policy.condemns(probed[domain])
    ]
    artifact = Artifact(policy, found, tuple(suppressed))
    digest, data = artifact.seal()
    return Candidate(data, _generation(digest, artifact))


def materialise(data: bytes) -> tuple[Artifact, ProfileGeneration]:
    """The artifact in the file ``data``, verified, and its generation; raises ``AdmissionError``."""
    digest, artifact = parse_artifact(data)
    return artifact, _generation(digest, artifact)


def _generation(digest: str, artifact: Artifact) -> ProfileGeneration:
    text = runtime_text(digest, artifact.domains)
    version = sha256(text).hexdigest()
    return ProfileGeneration(version, text, digest, len(artifact.domains), len(artifact.suppressed))
