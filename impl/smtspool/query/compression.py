"""Compressed files. Their kind is told by the name; the size of the content is limited while unpacking."""

from __future__ import annotations

import io

from smtspool.errors import AdmissionError, Reason

__all__ = ["MAGIC", "UNPACKERS"]

_XZ_MEMORY = 1 << 27  # bytes that its dictionary may take; `xz -9` asks for half of it
_CHUNK = 1 << 14  # bytes given at a time; the rest behind the end of a stream is copied


def _gzip(data: bytes, most: int) -> bytes:
    import gzip
    import zlib

    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return file.read(most)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise AdmissionError(Reason.ENCODING, f"not a sound gzip file: {error}") from None


def _xz(data: bytes, most: int) -> bytes:
    import lzma

    def begin() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)

    stream: lzma.LZMADecompressor | None = begin()  # None between streams, which zeros may part
    unpacked: list[bytes] = []
    left = most
    try:
        for at in range(0, len(data), _CHUNK):
            rest = data[at : at + _CHUNK]
            while left and (rest := rest if stream else rest.lstrip(b"\0")):
                stream = stream or begin()
                unpacked.append(stream.decompress(rest, left))
                left -= len(unpacked[-1])
                rest, stream = (stream.unused_data, None) if stream.eof else (b"", stream)
    except lzma.LZMAError as error:
        raise AdmissionError(Reason.ENCODING, f"not a sound xz file: {error}") from None
    if left and stream:
        raise AdmissionError(Reason.ENCODING, "not a sound xz file: it ends too early")
    return b"".join(unpacked)


# By the suffix: the content of a compressed file, or so many bytes of it. ``AdmissionError`` (encoding).
UNPACKERS = {".gz": _gzip, ".xz": _xz}

# How each begins.
MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\0"}
