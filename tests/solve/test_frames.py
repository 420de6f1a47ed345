"""Frames: whatever the bytes, either one object or a refusal."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.solve.frames import FrameError, Inbox, Oversize, pack, unpack

documents = st.dictionaries(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))


@given(documents, st.data())
def test_a_frame_arrives_whole_however_it_is_cut(document, data):
    frame = pack(document, 1 << 20)
    inbox = Inbox(1 << 20)
    body = None
    while frame:
        assert body is None
        cut = data.draw(st.integers(1, len(frame)))
        body = inbox.feed(frame[:cut])
        frame = frame[cut:]
    assert unpack(body) == document


def test_a_frame_over_the_limit_is_refused_by_its_length_alone():
    with pytest.raises(Oversize):
        Inbox(100).feed(b"\0\0\0\x65")
    with pytest.raises(Oversize):
        pack({"text": "x" * 100}, 100)


def test_a_frame_at_the_limit_passes():
    frame = pack({"a": ""}, 8)
    assert Inbox(8).feed(frame) == b'{"a":""}'


def test_bytes_after_a_frame_are_refused():
    with pytest.raises(FrameError, match="1 bytes follow"):
        Inbox(100).feed(pack({}, 100) + b"x")


@given(st.binary(max_size=200))
def test_any_body_is_an_object_or_refused(body):
    with suppress(FrameError, UnicodeDecodeError):
        assert isinstance(unpack(body), dict)


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"[]", b"1", b"", b"{} {}"])
def test_what_is_no_object_is_refused(body):
    with pytest.raises(FrameError):
        unpack(body)


def test_a_lone_surrogate_cannot_be_packed():
    with pytest.raises(UnicodeEncodeError):
        pack({"text": "\ud800"}, 100)
