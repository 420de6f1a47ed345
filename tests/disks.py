"""File systems that are small enough to be filled."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["fill", "mounted"]


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Path]:
    """A file system of this size, such as ``64k``, at ``folder``, which is made, until the block ends."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "small", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(disk: Path) -> Path:
    """Write a file until there is no room; removing the file makes room again."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))
    return filler
