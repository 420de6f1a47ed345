"""Compressed files: what they unpack to is bounded, whatever they claim. Used once a name says so."""

from __future__ import annotations

import io

from smtspool.errors import AdmissionError, Reason

__all__ = ["MAGIC", "UNPACKERS"]

_XZ_MEMORY = 1 << 27  # bytes that its dictionary may take; `xz -9` asks for half of it


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

    pieces: list[bytes] = []
    left = most
    try:
        while left and (data or not pieces):
            stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)
            pieces.append(stream.decompress(data, left))
            left -= len(pieces[-1])
            if left and not stream.eof:
                raise AdmissionError(Reason.ENCODING, "not a sound xz file: it ends too early")
            data = stream.unused_data.lstrip(b"\0")  # streams may follow each other, padded with zeros
    except lzma.LZMAError as error:
        raise AdmissionError(Reason.ENCODING, f"not a sound xz file: {error}") from None
    return b"".join(pieces)


# By the suffix: the content of a compressed file, or so many bytes of it. ``AdmissionError`` (encoding).
UNPACKERS = {".gz": _gzip, ".xz": _xz}

# How each begins.
MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\0"}
