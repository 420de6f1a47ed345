"""The runtime text: the domains, as a prober loads them. A text with any error is not used at all (F301)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NoReturn

from smtspool.errors import AdmissionError, Reason
from smtspool.profile.aggregate import Domain, Key
from smtspool.profile.artifact import POLICY
from smtspool.profile.record import MAX_DOMAIN, MAX_PROFILES, UINT64, is_context

__all__ = ["MAX_RUNTIME_BYTES", "Runtime", "parse_runtime", "runtime_text", "semantics"]

MAX_RUNTIME_BYTES = 4 << 20
_HEAD = b"symcc-empirical-value-runtime-v1"
_NUMBER = re.compile(r"0|[1-9][0-9]{0,19}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime text, read. Without domains it is a tombstone, which withdraws the domains before it."""

    artifact_sha256: str
    domains: tuple[Domain, ...]
    version: str  # SHA-256 of the whole text


def runtime_text(artifact_sha256: str, domains: Sequence[Domain]) -> bytes:
    """The text for ``domains`` of the artifact with that digest."""
    lines = [
        _HEAD.decode(),
        f"artifact_sha256 {artifact_sha256}",
        f"policy {POLICY}",
        f"profile_count {len(domains)}",
        *(
            f"profile {key.context} {key.site} {key.bits} {len(values)} {' '.join(map(str, values))}"
            for key, values in domains
        ),
    ]
    return "\n".join(lines).encode("ascii") + b"\n"


def semantics(text: bytes) -> bytes:
    """The part of ``text`` that matters to a prober: all but the line that names the artifact."""
    head, _, rest = text.split(b"\n", 2)
    return head + b"\n" + rest


def parse_runtime(text: bytes) -> Runtime:
    """Read all of ``text``; raises ``AdmissionError`` for anything that :func:`runtime_text` never writes."""
    if len(text) > MAX_RUNTIME_BYTES:
        raise AdmissionError(Reason.TOO_LARGE, f"a runtime text of {len(text)} bytes")
    head, *lines = text.split(b"\n")
    if head != _HEAD or len(lines) < 4 or lines.pop() != b"":
        _refuse("its first line or its end is not right")
    try:
        words = [line.decode("ascii").split(" ") for line in lines]
    except UnicodeDecodeError:
        _refuse("it is not ASCII")
    artifact, policy, count, *rows = words
    if len(artifact) != 2 or artifact[0] != "artifact_sha256" or not is_context(artifact[1]):
        _refuse("line 2 names no artifact")
    if policy != ["policy", POLICY]:
        _refuse("line 3 names another policy")
    if len(count) != 2 or count[0] != "profile_count" or _number(count[1], MAX_PROFILES) != len(rows):
        _refuse("line 4 does not count the profiles")
    domains = tuple(map(_domain, rows))
    if len({domain.key for domain in domains}) != len(domains):
        _refuse("a profile stands there twice")
    return Runtime(artifact[1], domains, sha256(text).hexdigest())


def _domain(words: list[str]) -> Domain:
    if len(words) < 6 or words[0] != "profile" or not is_context(words[1]):
        _refuse("a profile is incomplete")
    site, bits, count = (
        _number(words[2], UINT64, 1),
        _number(words[3], 64, 1),
        _number(words[4], MAX_DOMAIN, 1),
    )
    values = tuple(_number(word, (1 << bits) - 1) for word in words[5:])
    if len(values) != count or list(values) != sorted(set(values)):
        _refuse("the values of a profile are not as many as it says, or not ascending")
    return Domain(Key(words[1], site, bits), values)


def _number(word: str, most: int, least: int = 0) -> int:
    if _NUMBER.fullmatch(word) is None or not least <= (number := int(word)) <= most:
        _refuse(f"{word[:24]!r} is no number from {least} to {most}")
    return number


def _refuse(why: str) -> NoReturn:
    raise AdmissionError(Reason.SYNTAX, f"not a sound runtime text: {why}")
