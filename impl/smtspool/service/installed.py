"""What is installed: this package, its engines, and the Python that runs them."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from smtspool import __version__

__all__ = ["versions"]

_PACKAGES = {"bitwuzla": "bitwuzla", "z3": "z3-solver", "cvc5": "cvc5"}


def versions() -> dict[str, str]:
    """Name to version; read from what pip has written, so that no engine is imported."""
    engines = {engine: _installed(package) for engine, package in _PACKAGES.items()}
    return {"smtspool": __version__, **engines, "Python": platform.python_version()}


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
