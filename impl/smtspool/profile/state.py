"""The checkpoint: the window, the artifact last published from it, the policy, and the counters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smtspool.errors import AdmissionError, Reason
from smtspool.profile.artifact import MAX_RECORDS
from smtspool.profile.counters import Counters
from smtspool.profile.policy import Policy
from smtspool.profile.record import FEEDBACK, PROFILES, ProfileRow, Record, is_context
from smtspool.profile.strict import load

__all__ = ["MAX_STATE_BYTES", "State", "damage", "encode_state", "label_of", "parse_state"]

MAX_STATE_BYTES = 16 << 20
_SCHEMA = "symcc-online-value-profile-state-v1"
_LABEL = "current_artifact_sha256"


@dataclass(frozen=True, slots=True)
class State:
    """A checkpoint, read. ``doubts`` are reasons why its records may differ from those that were written."""

    records: tuple[Record, ...]  # oldest first, at most as many as the configured window
    label: str  # digest of the artifact that was current; "" if none
    counters: Counters
    doubts: tuple[str, ...]


def encode_state(
    records: Sequence[Record], label: str, counters: Counters, *, window: int, policy: Policy
) -> tuple[bytes, Counters]:
    """The content of the file, and the counters in it.

    While it is over 16 MiB, the older quarter of the records is left out, which is counted and marked.
    Raises ``AdmissionError`` (too-large) if a single record is too large.
    """
    texts = [record.text for record in records]
    dropped = 0
    while True:
        kept = counters.plus(checkpoint_truncations=dropped)
        members = {
            "schema": _SCHEMA,
            "window": window,
            "policy": policy.to_json(),
            "records_complete": not dropped,
            _LABEL: label,
            **kept.to_json(),
        }
        head = json.dumps(members, separators=(",", ":"), sort_keys=True)
        data = f'{head[:-1]},"records":[{",".join(texts)}]}}\n'.encode("ascii")
        if len(data) <= MAX_STATE_BYTES:
            return data, kept
        if len(texts) <= 1:
            raise AdmissionError(
                Reason.TOO_LARGE, f"a checkpoint of {len(data)} bytes is too large to be read again"
            )
        oldest = max(1, len(texts) // 4)
        del texts[:oldest]
        dropped += oldest


def parse_state(data: bytes, *, window: int, policy: Policy) -> State:
    """Read a checkpoint, also an old one that has no policy in it. Raises ``AdmissionError``.

    A record without a valid row is dropped. A dropped record, like a dropped row, is a doubt.
    """
    document = _load(data)
    doubts = []
    if document.get("window") != window:
        doubts.append("it was written with another window")
    if "policy" in document and Policy.of(document["policy"]) != policy:
        doubts.append("it was written under another policy")
    label = document.get(_LABEL)
    if label != "" and not is_context(label):
        doubts.append("it does not say which artifact was current")
        label = ""
    records, damaged = _records(document, window)
    return State(records, str(label), Counters.of(document), (*doubts, *damaged))


def damage(data: bytes) -> tuple[str, ...]:
    """The damage of a checkpoint, without regard to window and policy. Raises ``AdmissionError``."""
    return _records(_load(data), MAX_RECORDS)[1]


def label_of(data: bytes) -> str:
    """Digest of the artifact that a checkpoint names as current, "" for none. Raises ``AdmissionError``."""
    return str(_load(data).get(_LABEL) or "")


def _load(data: bytes) -> dict[str, Any]:
    document = load(data, MAX_STATE_BYTES)
    if document.get("schema") != _SCHEMA:
        raise AdmissionError(Reason.SCHEMA, f"the schema is not {_SCHEMA}")
    return document


def _records(document: dict[str, Any], window: int) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """The newest records, and the reasons why some may be missing."""
    doubts = []
    if not _complete(document):
        doubts.append("its oldest records did not fit")
    listed = document.get("records")
    if not isinstance(listed, list):
        doubts.append("its records are no list")
        listed = []
    newest = listed[-window:]
    rows: dict[str, ProfileRow | None] = {}
    read = [Record.of(document, rows) for document in newest]
    records = [record for record in read if record is not None]
    if len(records) < len(newest) or not all(map(_whole, records, newest)):
        doubts.append("a record is malformed")
    return tuple(records), tuple(doubts)


def _whole(record: Record, document: Mapping[str, Any]) -> bool:
    """Whether every row of ``document`` is in the record that was read from it."""
    rows, reports = document[PROFILES], document.get(FEEDBACK, ())
    return len(record.profiles) == len(rows) and len(record.feedback) == len(reports)


def _complete(document: dict[str, Any]) -> bool:
    """Whether the window is complete: its own mark, or, in an old file, whether it was never truncated."""
    return document.get("records_complete", not Counters.of(document).checkpoint_truncations) is True
