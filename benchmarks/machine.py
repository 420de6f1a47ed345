"""What was measured on: versions of everything that took part, and the machine."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .children import cpus

__all__ = ["describe", "version_of"]

PACKAGES = ("smtspool", "bitwuzla", "z3-solver", "cvc5", "huey", "litequeue", "persist-queue", "PySMT")


def describe(work: Path) -> dict[str, object]:
    """JSON members."""
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "packages": {name: version_of(name) for name in PACKAGES},
        "processor": _first("/proc/cpuinfo", "model name"),
        "cpus": cpus(),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "file_system": _file_system(work),
        "load": os.getloadavg()[0],
    }


def version_of(package: str) -> str | None:
    """None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _first(path: str, key: str) -> str | None:
    return next((value for name, value in _pairs(path) if name == key), None)


def _pairs(path: str) -> Iterable[tuple[str, str]]:
    for line in Path(path).read_text().splitlines():
        name, _, value = line.partition(":")
        yield name.strip(), value.strip()


def _file_system(work: Path) -> str | None:
    """Type of the mount that holds the directory."""
    device = work.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[2] == wanted:
            return fields[fields.index("-") + 1]
    return None
