"""The frames of a journal (SQLite file format, "The Write-Ahead Log"), and damage in the middle of it.

SQLite reads a journal up to the first frame whose checksum is wrong, since a power cut leaves such a frame at
the end. If a byte in the middle is damaged, SQLite does the same, and silently ignores all that was committed
after it.
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct

__all__ = ["unread_commits"]

_HEADER = Struct(">8I")  # magic, version, page size, sequence, two salts, two checksums
_FRAME = Struct(">6I")  # page, size of the database if it commits, two salts, two checksums
_MAGIC = 0x377F0682  # its last bit says that the words of checksums are big-endian
_Sums = tuple[int, int]


def unread_commits(journal: Path) -> int:
    """How many transactions lie behind the place where SQLite stops reading the journal; 0 if it is sound.

    The result means nothing if the journal is written meanwhile; the caller checks that.
    """
    with journal.open("rb") as file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return 0
        magic, _, page_size, _, *salts, sum0, sum1 = _HEADER.unpack(header)
        order = ">" if magic & 1 else "<"
        sums = _sums(order, header[:-8], (0, 0))
        sound = magic & ~1 == _MAGIC and sums == (sum0, sum1)
        if not 512 <= page_size <= 65536:
            page_size = 4096  # the page size of our databases, since the header is damaged
        unread = 0
        while len(frame := file.read(_FRAME.size + page_size)) == _FRAME.size + page_size:
            page, commits, *salts_here, sum0, sum1 = _FRAME.unpack_from(frame)
            if sound:
                sums = _sums(order, frame[:8] + frame[_FRAME.size :], sums)
                sound = page > 0 and salts_here == salts and sums == (sum0, sum1)
            # One salt is enough: the other may be what is damaged.
            if not sound and commits and any(map(int.__eq__, salts_here, salts)):
                unread += 1
        return unread


def _sums(order: str, data: bytes, start: _Sums) -> _Sums:
    first, second = start
    words = Struct(f"{order}{len(data) // 4}I").unpack(data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
