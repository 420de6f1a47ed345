"""The runtime text is loaded whole or not at all (F301)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.errors import AdmissionError
from smtspool.profile import Policy, Record, build_candidate, parse_runtime
from tests.profile.support import CONTEXT, OTHER, UINT64, Document, document, documents, saw

MOST = [UINT64, 64, 8 * 2, 0, [[UINT64 - value, 2] for value in range(8)]]


def text() -> bytes:
    record = Record.of(document(saw(0, 3), MOST, saw(1, site=9, bits=1)))
    assert record is not None
    return build_candidate([record], Policy(max_distinct_values=8)).generation.content


def test_it_is_what_the_source_says() -> None:
    head, artifact, policy, count, *profiles = text().decode("ascii").split("\n")
    assert head == "symcc-empirical-value-runtime-v1"
    assert artifact.startswith("artifact_sha256 ")
    assert policy == "policy empirical-sat-accept-unsat-full-formula-fallback-v1"
    assert count == "profile_count 3"
    assert profiles[:2] == [f"profile {CONTEXT} 7 32 2 0 3", f"profile {CONTEXT} 9 1 1 1"]
    assert profiles[2].startswith(f"profile {CONTEXT} {UINT64} 64 8 {UINT64 - 7} ")
    assert profiles[3:] == [""]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"runtime-v1", b"runtime-v2"),
        (b"artifact_sha256", b"artifact"),
        (b"artifact_sha256 ", b"artifact_sha256 A"),
        (b"policy ", b"policy x "),
        (b"profile_count 3", b"profile_count 2"),
        (b"profile_count 3", b"profile_count 4"),
        (b"profile_count 3", b"profile_count 03"),
        (b"profile_count 3", b"profile_count 3 "),
        (b" 7 32 2 0 3\n", b" 7 32 2 0 3 4\n"),
        (b" 7 32 2 0 3\n", b" 7 32 3 0 3\n"),
        (b" 7 32 2 0 3\n", b" 7 32 2 3 0\n"),
        (b" 7 32 2 0 3\n", b" 7 32 2 3 3\n"),
        (b" 7 32 2 0 3\n", b" 7 32 0\n"),
        (b" 7 32 2 0 3\n", b" 7 32 2 0  3\n"),
        (b" 7 32 2 0 3\n", b" 7 32 2 0 +3\n"),
        (b" 7 32 2 0 3\n", b" 7 32 2 0 0x3\n"),
        (b" 7 32 2 0 3\n", "\u0667 32 2 0 3\n".encode()),
        (b" 7 32 2 0 3\n", b" 0 32 2 0 3\n"),
        (b" 7 32 2 0 3\n", b" 7 0 2 0 3\n"),
        (b" 7 32 2 0 3\n", b" 7 65 2 0 3\n"),
        (b" 7 32 2 0 3\n", b" 7 1 2 0 3\n"),
        (b" 7 32 2 0 3\n", b" 18446744073709551616 32 2 0 3\n"),
        (b" 7 32 2 0 3\n", b" 9 1 2 0 1\n"),
        (b" 7 32 2 0 3\n", b" 7 32 2 0 3\r\n"),
        (b" 7 32 2 0 3\n", b" 7 32 2 0 3"),
        (CONTEXT.encode(), CONTEXT.upper().encode()),
        (b"\nprofile ", b"\nPROFILE "),
    ],
)
def test_one_wrong_thing_and_nothing_is_used(before: bytes, after: bytes) -> None:
    assert before in text()
    with pytest.raises(AdmissionError):
        parse_runtime(text().replace(before, after, 1))


@pytest.mark.parametrize("tail", [b"\n", b" ", b"\0", b"x\n", f"profile {OTHER} 7 32 1 1\n".encode()])
def test_nothing_may_follow(tail: bytes) -> None:
    with pytest.raises(AdmissionError):
        parse_runtime(text() + tail)


def test_every_cut_is_refused() -> None:
    whole = text()
    for end in range(len(whole)):
        with pytest.raises(AdmissionError):
            parse_runtime(whole[:end])


def test_nine_values_are_refused() -> None:
    nine = " ".join(map(str, range(9)))
    with pytest.raises(AdmissionError):
        parse_runtime(text().replace(b" 7 32 2 0 3\n", f" 7 32 9 {nine}\n".encode()))


def test_four_mebibytes_are_the_most() -> None:
    with pytest.raises(AdmissionError):
        parse_runtime(text() + b"x" * (4 << 20))


def test_no_domains_is_a_tombstone() -> None:
    record = Record.of(document(saw(*range(9))))
    assert record is not None
    content = build_candidate([record], Policy()).generation.content
    assert content.endswith(b"\nprofile_count 0\n")
    assert parse_runtime(content).domains == ()


@given(st.lists(documents(), max_size=4), st.data())
def test_all_or_nothing(given_: list[Document], data: st.DataObject) -> None:
    """A text that differs in any byte is refused, or it says something else in full."""
    records = [record for record in map(Record.of, given_) if record is not None]
    whole = build_candidate(records, Policy(min_observations=1)).generation.content
    sound = parse_runtime(whole)
    place = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:place] + data.draw(st.binary(max_size=2)) + whole[place + data.draw(st.integers(0, 2)) :]
    try:
        read = parse_runtime(changed)
    except AdmissionError:
        return
    assert len(read.domains) == changed.count(b"\nprofile ")
    assert (read.domains, read.artifact_sha256) != (sound.domains, sound.artifact_sha256) or changed == whole


@given(st.binary(max_size=200))
def test_noise_is_refused(noise: bytes) -> None:
    for data in (noise, text()[:80] + noise):
        with pytest.raises(AdmissionError):
            parse_runtime(data)
