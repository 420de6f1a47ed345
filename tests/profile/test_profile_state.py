"""The checkpoint: what is read back, what is doubted, what is cut (F305 §3.2, §4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.errors import AdmissionError
from smtspool.profile import Counters, Policy, Record
from smtspool.profile.state import MAX_STATE_BYTES, State, encode_state, parse_state
from tests.profile.support import UNWRITABLE, Document, anything, document, documents, saw

POLICY = Policy()
LABEL = "c" * 64


def records(*given_: Document) -> list[Record]:
    return [record for record in map(Record.of, given_) if record is not None]


def members(**changes: Any) -> dict[str, Any]:
    data, _ = encode_state(
        records(document(saw(1)), document(saw(2))), LABEL, Counters(), window=4, policy=POLICY
    )
    changed = {**json.loads(data), **changes}
    return {name: value for name, value in changed.items() if value is not None}


def read(document_: dict[str, Any], window: int = 4, policy: Policy = POLICY) -> State:
    return parse_state(json.dumps(document_).encode(), window=window, policy=policy)


@given(st.lists(documents(), max_size=6), st.integers(0, 2**64 - 1))
def test_what_is_written_is_read_back_without_a_doubt(given_: list[Document], count: int) -> None:
    counters = Counters().plus(records_observed=count, checkpoint_failures=2)
    data, kept = encode_state(records(*given_), LABEL, counters, window=6, policy=POLICY)
    assert kept == counters
    assert parse_state(data, window=6, policy=POLICY) == State(tuple(records(*given_)), LABEL, counters, ())


@pytest.mark.parametrize(
    ("changes", "doubt"),
    [
        ({"window": 5}, "window"),
        ({"window": None}, "window"),
        ({"policy": {**POLICY.to_json(), "min_observations": 9}}, "policy"),
        ({"policy": "none"}, "policy"),
        ({"records_complete": False}, "fit"),
        ({"records_complete": 1}, "fit"),
        ({"records_complete": None, "checkpoint_truncations": 3}, "fit"),
        ({"current_artifact_sha256": None}, "current"),
        ({"current_artifact_sha256": "C" * 64}, "current"),
        ({"current_artifact_sha256": 7}, "current"),
        ({"records": {}}, "no list"),
        ({"records": [document(saw(1)), {}]}, "malformed"),
        ({"records": [document(saw(1)), None]}, "malformed"),
        ({"records": [document(saw(1), [7, 32, 9, 0, [[1, 8]]])]}, "malformed"),
        ({"records": [document(saw(1), feedback=[[]])]}, "malformed"),
    ],
)
def test_what_may_not_be_what_it_was_is_doubted(changes: dict[str, Any], doubt: str) -> None:
    state = read(members(**changes))
    assert len(state.doubts) == 1
    assert doubt in state.doubts[0]


def test_a_state_from_before_f305_is_read_with_zeros() -> None:
    old = members(
        policy=None, records_complete=None, checkpoint_failures=None, recovery_replays=None, consumption=None
    )
    state = read(old | {"recovery_replay_mismatches": -1, "semantic_noops": True, "records_observed": 2**70})
    assert state.doubts == ()
    assert state.counters == Counters(records_observed=2**64 - 1)


def test_a_smaller_window_keeps_the_newest() -> None:
    state = read(members(), window=1)
    assert [record.profiles[0].values for record in state.records] == [((2, 8),)]
    assert state.doubts != ()


def test_a_checkpoint_over_16_mebibytes_loses_its_oldest_and_says_so() -> None:
    half = document(*UNWRITABLE[:2048])
    four = records(half, half, half, document(saw(1)))
    data, kept = encode_state(four, LABEL, Counters(), window=4, policy=POLICY)
    assert len(data) <= MAX_STATE_BYTES
    state = parse_state(data, window=4, policy=POLICY)
    assert state.records == tuple(four[1:])
    assert state.doubts == ("its oldest records did not fit",)
    assert kept == state.counters == Counters(checkpoint_truncations=1)


def test_one_record_over_16_mebibytes_is_no_checkpoint() -> None:
    huge = document(*UNWRITABLE[:4096], feedback=[])
    for row in huge["empirical_value_profiles"]:
        row[4] = [[value, 10**17] for value, _ in row[4]]
    big = records(huge)[0]
    doubled = Record(big.context, big.profiles * 2, ())
    with pytest.raises(AdmissionError):
        encode_state([doubled], LABEL, Counters(), window=4, policy=POLICY)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b"\xff", b'{"schema": "v0"}', b" " * (MAX_STATE_BYTES + 1)]
)
def test_what_is_no_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(AdmissionError):
        parse_state(data, window=4, policy=POLICY)


@given(st.data())
def test_no_member_can_be_anything(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(members())))
    value = data.draw(anything)
    try:
        encoded = json.dumps({**members(), name: value}).encode("ascii")
        state = parse_state(encoded, window=4, policy=POLICY)
    except (AdmissionError, UnicodeEncodeError):
        return
    for record in state.records:
        assert Record.of(record.to_json()) == record
    counts = [count for count in state.counters.to_json().values() if isinstance(count, int)]
    assert all(0 <= count < 2**64 for count in counts)


@given(st.binary(max_size=60), st.integers(0, 400))
def test_noise_in_a_checkpoint_is_refused_or_sound(noise: bytes, place: int) -> None:
    whole = json.dumps(members()).encode()
    try:
        state = parse_state(whole[:place] + noise + whole[place + len(noise) :], window=4, policy=POLICY)
    except AdmissionError:
        return
    assert all(Record.of(record.to_json()) == record for record in state.records)
