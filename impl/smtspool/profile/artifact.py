"""The artifact: every profile and every suppression with its reasons, sealed by its own digest (F300-F304).

Three versions are read: v1 has no suppression, v2 suppresses without regard to cost, v3 is written. When an
artifact is read, derived fields are recomputed from its counts, and suppressions from their numbers. That
does not show that the counts are those of the records; only replay does (F305 §2.1).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NamedTuple, NoReturn

from smtspool.errors import AdmissionError, Reason
from smtspool.profile.aggregate import Aggregate, Domain, Key, Profile
from smtspool.profile.policy import Policy
from smtspool.profile.record import (
    MAX_DOMAIN,
    MAX_PROFILES,
    UINT64,
    ProfileRow,
    Yield,
    is_context,
    is_natural,
)
from smtspool.profile.strict import load

__all__ = ["MAX_ARTIFACT_BYTES", "MAX_RECORDS", "POLICY", "Artifact", "Suppression", "parse_artifact"]

MAX_RECORDS = 10_000  # of one aggregation
MAX_ARTIFACT_BYTES = 16 << 20
POLICY = "empirical-sat-accept-unsat-full-formula-fallback-v1"

_SCHEMA = "symcc-empirical-value-profile-v"
_ADMISSION = {2: "symcc-empirical-domain-admission-v1", 3: "symcc-empirical-domain-admission-v2"}
_REASON = {2: "low-validated-query-ratio-v1", 3: "costly-low-validated-query-ratio-v2"}
_SEAL = "profile_sha256"
_ENTROPY_ERROR = 1.5e-9  # another machine may round the ninth decimal differently


class Suppression(NamedTuple):
    """A domain that is not probed, and the numbers that are the reason."""

    domain: Domain
    found: Yield


@dataclass(frozen=True, slots=True)
class Artifact:
    """The profiles of some records under a policy. ``version`` is 3 unless it was read from an older file."""

    policy: Policy
    aggregate: Aggregate
    suppressed: tuple[Suppression, ...]
    version: int = 3

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domains that may be probed, by key."""
        withheld = {one.domain for one in self.suppressed}
        domains = [profile.domain(self.policy) for profile in self.aggregate.profiles]
        return tuple(domain for domain in domains if domain is not None and domain not in withheld)

    def seal(self) -> tuple[str, bytes]:
        """Its digest, and the file: one line of JSON with the digest in it.

        Raises ``AdmissionError`` (too-large) if readers would refuse its size.
        """
        document = _document(self)
        digest = _digest(document)
        data = json.dumps({**document, _SEAL: digest}, sort_keys=True).encode("ascii") + b"\n"
        if len(data) > MAX_ARTIFACT_BYTES:
            raise AdmissionError(
                Reason.TOO_LARGE, f"an artifact of {len(data)} bytes is too large to be read again"
            )
        return digest, data


def parse_artifact(data: bytes) -> tuple[str, Artifact]:
    """The digest and the artifact of a file, verified. Raises ``AdmissionError``."""
    document = load(data, MAX_ARTIFACT_BYTES)
    digest = document.pop(_SEAL, None)
    if digest != _digest(document):
        _refuse("the seal does not match")
    artifact = _read(document)
    if not _same(document, _document(artifact)):
        _refuse("a derived field is not what the counts make it")
    return digest, artifact


def _digest(document: Mapping[str, Any]) -> str:
    return sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


# -- writing ----------------------------------------------------------------------------------------------


def _document(artifact: Artifact) -> dict[str, Any]:
    policy, found = artifact.policy, artifact.aggregate
    rows = [_profile_row(profile, policy) for profile in found.profiles]
    document = {
        "schema": f"{_SCHEMA}{artifact.version}",
        "policy": POLICY,
        "input_records": found.input_records,
        "contexts": list(found.contexts),
        "profile_count": len(rows),
        "limited_domain_count": sum(row["limited_domain"] for row in rows),
        "min_observations": policy.min_observations,
        "max_distinct_values": policy.max_distinct_values,
        "profiles": rows,
    }
    if artifact.version > 1:
        document["runtime_domain_count"] = len(artifact.domains)
        document["online_admission"] = _admission(artifact)
    return document


def _profile_row(profile: Profile, policy: Policy) -> dict[str, Any]:
    return {
        **_key(profile.key),
        "runs": profile.runs,
        "observations": profile.observations,
        "distinct_values": len(profile.values),
        "saturated": profile.saturated,
        "limited_domain": profile.limited(policy),
        "entropy_bits": profile.entropy_bits,
        "values": [{"value": value, "count": count} for value, count in profile.values],
    }


def _admission(artifact: Artifact) -> dict[str, Any]:
    thresholds = artifact.policy.to_json()
    costly = artifact.version > 2
    names = ["min_solver_queries", "min_validated_ratio_ppm", *["min_solver_time_us"] * costly]
    suppressed = []
    for one in artifact.suppressed:
        found = one.found._asdict()
        if not costly:
            del found["solver_time_us"]
        values = {"domain_values": list(one.domain.values), "reason": _REASON[artifact.version]}
        suppressed.append({**_key(one.domain.key), **values, **found})
    return {
        "schema": _ADMISSION[artifact.version],
        **{name: thresholds[name] for name in names},
        "suppressed": suppressed,
    }


def _key(key: Key) -> dict[str, Any]:
    return {"context_sha256": key.context, "site": key.site, "bits": key.bits}


# -- reading ----------------------------------------------------------------------------------------------


def _refuse(why: str) -> NoReturn:
    raise AdmissionError(Reason.SCHEMA, f"not a sound profile artifact: {why}")


def _read(document: Mapping[str, Any]) -> Artifact:
    """The artifact, from the fields about the runs; derived fields are ignored."""
    version = {f"{_SCHEMA}{number}": number for number in (1, 2, 3)}.get(_text(document, "schema"))
    if version is None:
        _refuse("its schema is none of v1, v2, v3")
    records = _natural(document, "input_records", MAX_RECORDS)
    contexts = _list(document, "contexts", MAX_RECORDS)
    if not all(map(is_context, contexts)) or contexts != sorted(set(contexts)) or len(contexts) > records:
        _refuse("its contexts are not sorted, unique and at most one per record")
    profiles = [_profile(row, records) for row in _list(document, "profiles", MAX_PROFILES)]
    keys = [profile.key for profile in profiles]
    if keys != sorted(set(keys)) or not {key.context for key in keys} <= set(contexts):
        _refuse("its profiles are not in order, or of a context it does not name")
    admission = _member(document, "online_admission") if version > 1 else None
    artifact = Artifact(
        _policy(document, admission, version),
        Aggregate(records, tuple(contexts), tuple(profiles)),
        (),
        version,
    )
    return artifact if admission is None else _with_suppressions(artifact, admission)


def _policy(document: Mapping[str, Any], admission: Any, version: int) -> Policy:
    thresholds = {
        "min_observations": document.get("min_observations"),
        "max_distinct_values": document.get("max_distinct_values"),
        "min_solver_queries": 1,
        "min_validated_ratio_ppm": 0,
        "min_solver_time_us": 0,
    }
    if version > 1:
        if not isinstance(admission, dict):
            _refuse("its admission is no object")
        thresholds["min_solver_queries"] = admission.get("min_solver_queries")
        thresholds["min_validated_ratio_ppm"] = admission.get("min_validated_ratio_ppm")
    if version > 2:
        thresholds["min_solver_time_us"] = admission.get("min_solver_time_us")
    policy = Policy.of(thresholds)
    if policy is None:
        _refuse("a threshold is out of range")
    return policy


def _profile(row: object, records: int) -> Profile:
    if not isinstance(row, dict):
        _refuse("a profile is no object")
    key = _key_of(row)
    pairs = [
        (_natural(one, "value", (1 << key.bits) - 1), _natural(one, "count", UINT64, 1))
        for one in _list(row, "values", 64)
    ]
    observations = _natural(row, "observations", UINT64, 1)
    saturated = _member(row, "saturated")
    if type(saturated) is not bool or not pairs or pairs != sorted(dict(pairs).items()):
        _refuse("the values of a profile are not ascending")
    if not ProfileRow(key.site, key.bits, observations, saturated, tuple(pairs)).lawful:
        _refuse("the counts of a profile do not add up")
    return Profile(key, _natural(row, "runs", records, 1), observations, saturated, tuple(pairs))


def _with_suppressions(artifact: Artifact, admission: Mapping[str, Any]) -> Artifact:
    suppressed = [_suppression(row, artifact.version) for row in _list(admission, "suppressed", MAX_PROFILES)]
    domains = [one.domain for one in suppressed]
    if len(set(domains)) != len(domains) or not set(domains) <= set(artifact.domains):
        _refuse("it suppresses what is no domain of it, or one twice")
    if not all(one.found.lawful and artifact.policy.condemns(one.found) for one in suppressed):
        _refuse("a suppression is not justified by its numbers")
    return replace(artifact, suppressed=tuple(suppressed))


def _suppression(row: object, version: int) -> Suppression:
    if not isinstance(row, dict):
        _refuse("a suppression is no object")
    key = _key_of(row)
    values = _list(row, "domain_values", MAX_DOMAIN)
    if not all(is_natural(value, (1 << key.bits) - 1) for value in values):
        _refuse("a suppressed value is out of range")
    counted = Yield._fields if version > 2 else Yield._fields[:-1]
    found = Yield(*[_natural(row, name, UINT64) for name in counted])
    return Suppression(Domain(key, tuple(values)), found)


def _key_of(row: Mapping[str, Any]) -> Key:
    context = _member(row, "context_sha256")
    if not is_context(context):
        _refuse("a context is no SHA-256")
    return Key(context, _natural(row, "site", UINT64, 1), _natural(row, "bits", 64, 1))


def _member(row: Any, name: str) -> Any:
    if not isinstance(row, dict) or name not in row:
        _refuse(f"{name} is missing")
    return row[name]


def _text(row: Any, name: str) -> str:
    value = _member(row, name)
    if not isinstance(value, str):
        _refuse(f"{name} is no text")
    return value


def _list(row: Any, name: str, most: int) -> list[Any]:
    value = _member(row, name)
    if not isinstance(value, list) or len(value) > most:
        _refuse(f"{name} is no list of at most {most}")
    return value


def _natural(row: Any, name: str, most: int, least: int = 0) -> int:
    value: int = _member(row, name)
    if not is_natural(value, most, least):
        _refuse(f"{name} is no number from {least} to {most}")
    return value


def _same(one: Any, other: Any) -> bool:
    """Whether documents are equal: types count (``True`` is not 1), the last digit of an entropy does not."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float):
        return bool(abs(one - other) <= _ENTROPY_ERROR)
    return bool(one == other)
