"""The environment of a coordinator: its records, the content of its folder, and damage to it.

The result of building from records is computed here independently of the process under test: the domains by a
formula of one line, the bytes by building the candidate in this process, whose code is never mutated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from conformance.engine.replay import Divergence, Refused
from conformance.engine.values import Value, function
from smtspool.profile import Policy, Record, build_candidate, parse_runtime

__all__ = ["Built", "Catalogue", "Folder", "Thresholds"]

ARTIFACTS, RUNTIME, STATE = "generations", "current.runtime", "state.json"
NOBODY = "nobody"
CONTEXT = sha256(b"a program").hexdigest()
SITE, BITS = 7, 32
COMPLETE = "records_complete"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A policy as the model has it: the observations that a domain needs, and the values it may have."""

    least: int
    widest: int

    def to_policy(self) -> Policy:
        return Policy(min_observations=self.least, max_distinct_values=self.widest)


@dataclass(frozen=True, slots=True)
class Built:
    """The result of building from some records: the evidence as the model has it, and the files."""

    evidence: Value
    digest: str
    version: str
    artifact: bytes
    runtime: bytes


class Catalogue:
    """The values of the model behind the digests in files; it grows with each question."""

    def __init__(self, values: Sequence[str], policies: Mapping[str, Thresholds], variant: int = 0) -> None:
        self.values = tuple(values)
        self.policies = dict(policies)
        self._documents = {value: _document(value, variant) for value in values}
        records = {value: Record.of(document) for value, document in self._documents.items()}
        self._names = {record.digest: value for value, record in records.items() if record is not None}
        self._records = {value: record for value, record in records.items() if record is not None}
        self._built: dict[tuple[str, tuple[str, ...]], Built] = {}
        self.by_digest: dict[str, Built] = {}
        self.by_runtime: dict[bytes, Built] = {}

    def document(self, value: str) -> Mapping[str, Any]:
        """The telemetry of a run in which the operand took ``value``."""
        return self._documents[value]

    def digest(self, value: str) -> str:
        """The name of that record in traces."""
        return self._records[value].digest

    def name(self, digest: str) -> str:
        """The value that a record tells."""
        return self._names.get(digest, "unknown")

    def value_of(self, document: object) -> str | None:
        """The value that a document in a state file tells; None if it is none that was observed."""
        record = Record.of(document)
        return None if record is None else self._names.get(record.digest)

    def evidence(self, records: Sequence[str], policy: str) -> Value:
        """``Evidence`` of the model."""
        counts = function({value: list(records).count(value) for value in self.values})
        return function({"counts": counts, "policy": policy})

    def domain(self, records: Sequence[str], policy: str) -> frozenset[str]:
        """``Domain`` of the model."""
        limits, seen = self.policies[policy], frozenset(records)
        return seen if len(records) >= limits.least and len(seen) <= limits.widest else frozenset()

    def built(self, records: Sequence[str], policy: str) -> Built:
        """The result of building from these records. Raises :class:`Divergence` if their domain is wrong."""
        key = policy, tuple(sorted(records))
        if key in self._built:
            return self._built[key]
        candidate = build_candidate(
            [self._records[value] for value in records], self.policies[policy].to_policy()
        )
        generation = candidate.generation
        rows = [domain for domain in parse_runtime(generation.content).domains if domain.key.site == SITE]
        found = frozenset(chr(value) for domain in rows for value in domain.values)
        if found != self.domain(records, policy):
            raise Divergence(f"{records} come to {sorted(found)} under {self.policies[policy]}", "domain")
        built = Built(
            self.evidence(records, policy),
            generation.artifact_sha256,
            generation.version,
            candidate.artifact,
            generation.content,
        )
        self._built[key] = built
        self.by_digest[built.digest] = self.by_runtime[built.runtime] = built
        return built

    def generation(self, told: Sequence[str]) -> Value:
        """A generation in memory, told by its digest and its version, as no or one evidence."""
        if not told:
            return frozenset()
        built = self.by_digest.get(told[0])
        if built is None or built.version != told[1]:
            return frozenset({f"unknown {told[0][:8]}"})
        return frozenset({built.evidence})


def _document(value: str, variant: int) -> Mapping[str, Any]:
    """Odd variants see other operands too: one of which values were lost, one in another program."""
    noise = [[SITE + 1, BITS, 3, 1, [[1, 1]]]] if variant % 2 else []
    return {
        "schema": 3,
        "empirical_value_profile_context": CONTEXT,
        "empirical_value_profiles": [[SITE, BITS, 1, 0, [[ord(value), 1]]], *noise],
        "empirical_domain_feedback": [],
    }


def _forged(runtime: bytes) -> bytes:
    """A sound runtime text of the same artifact with another domain than that makes."""
    head, artifact, policy, _, *_ = runtime.split(b"\n")
    row = f"profile {CONTEXT} {SITE} {BITS} 1 {ord('z')}".encode()
    return b"\n".join([head, artifact, policy, b"profile_count 1", row, b""])


class Folder:
    """The profile folder under ``root``. ``variant`` decides in which way a file is damaged first."""

    def __init__(
        self, root: str, catalogue: Catalogue, counted: Sequence[str], most: int, variant: int
    ) -> None:
        self.path = f"{root}/profile"
        Path(self.path).mkdir()
        self._catalogue = catalogue
        self._counted = tuple(counted)
        self._most = most
        self._variant = variant
        self._damages = 0

    # what is in it

    def counters(self, told: Mapping[str, int]) -> Value:
        """The counters that are looked at, as far as the model counts."""
        return function({name: min(told.get(name, -1), self._most) for name in self._counted})

    def state(self) -> Value:
        """The state file: no or one record."""
        document = self._state()
        if document is None:
            return frozenset()
        values = [self._catalogue.value_of(record) for record in document["records"]]
        label = document["current_artifact_sha256"]
        named = self._catalogue.by_digest.get(label)
        told: list[Value] = [] if label == "" else [named.evidence if named else f"unknown {label[:8]}"]
        found: dict[str, Value] = {
            "records": tuple(value for value in values if value is not None),
            "label": frozenset(told),
            "policy": self._policy(document["policy"]),
            "complete": document[COMPLETE] is True and None not in values,
            "counters": self.counters(document),
        }
        return frozenset({function(found)})

    def _policy(self, document: Mapping[str, int]) -> str:
        policies = self._catalogue.policies.items()
        return next((name for name, p in policies if asdict(p.to_policy()) == document), "unknown")

    def runtime(self) -> Value:
        """The runtime file: no or one evidence, or garbage."""
        text = self._read(RUNTIME)
        if text is None:
            return frozenset()
        built = self._catalogue.by_runtime.get(text)
        return frozenset({self.garbage() if built is None else built.evidence})

    def garbage(self) -> Value:
        """What nobody wrote."""
        return function({"counts": function(dict.fromkeys(self._catalogue.values, 0)), "policy": NOBODY})

    def named(self) -> str | None:
        """The digest that a sound runtime file has in its second line."""
        built = self._catalogue.by_runtime.get(self._read(RUNTIME) or b"")
        return None if built is None else built.digest

    def artifacts(self, digests: Sequence[str | None]) -> Value:
        """The artifacts among these that are whole."""
        known = [self._catalogue.by_digest[digest] for digest in digests if digest is not None]
        return frozenset(
            one.evidence for one in known if self._read(f"{ARTIFACTS}/{one.digest}.json") == one.artifact
        )

    def _read(self, name: str) -> bytes | None:
        try:
            return Path(self.path, name).read_bytes()
        except FileNotFoundError:
            return None

    def _state(self) -> dict[str, Any] | None:
        try:
            document = json.loads(self._read(STATE) or b"")
        except ValueError:
            return None
        return document if isinstance(document, dict) else None

    # what happens to it

    def drift(self, records: Sequence[str]) -> None:
        """Other records under an unchanged label."""
        document = self._state()
        if document is None:
            raise Refused("there is no state file")
        found = list(map(self._catalogue.value_of, document["records"]))
        sound = [value for value in found if value is not None]
        if sound == list(records):
            raise Refused("these records are there")
        if len(sound) < len(found):
            document[COMPLETE] = False
        document["records"] = [self._catalogue.document(value) for value in records]
        self._put(STATE, json.dumps(document).encode())

    def truncate(self) -> None:
        """The oldest record is lost: left out and marked so, or malformed."""
        document = self._state()
        values = [] if document is None else list(map(self._catalogue.value_of, document["records"]))
        sound = [index for index, value in enumerate(values) if value is not None]
        if document is None or not sound:
            raise Refused("there is no record to lose")
        self._damages += 1
        if (self._variant + self._damages) % 2:
            del document["records"][: sound[0] + 1]
            document[COMPLETE] = False
        else:
            document["records"][sound[0]] = {"empirical_value_profile_context": CONTEXT}
        self._put(STATE, json.dumps(document).encode())

    def corrupt(self, file: str) -> None:
        """Garble a file, or remove a state file or an artifact."""
        if file == "artifact":
            digest = self.named()
            if digest is None or not self.artifacts([digest]):
                raise Refused("no artifact is named")
            name = f"{ARTIFACTS}/{digest}.json"
        else:
            name = STATE if file == "state" else RUNTIME
        data = self._read(name)
        if data is None or (file == "state" and self._state() is None):
            raise Refused(f"{name} is no file that could be damaged")
        if file == "runtime" and self.runtime() == frozenset({self.garbage()}):
            raise Refused("it is garbage already")
        self._damages += 1
        last = _forged(data) if file == "runtime" else None
        ways = [data[: len(data) // 2], data + b"profile\n", b"", b"\xff" + data[1:], last]
        damaged = ways[(self._variant + self._damages) % len(ways)]
        if damaged is None:
            Path(self.path, name).unlink()
        else:
            self._put(name, damaged)

    def remove(self) -> None:
        """Remove the runtime file."""
        try:
            Path(self.path, RUNTIME).unlink()
        except FileNotFoundError:
            raise Refused("there is no runtime file") from None

    def _put(self, name: str, data: bytes) -> None:
        Path(self.path, name).write_bytes(data)
