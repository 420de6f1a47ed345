"""The installed versions of this package, its engines, and the Python that runs them."""

from __future__ import annotations

from smtspool import __version__
from smtspool.solve import BUNDLED, ENGINES

__all__ = ["BUNDLED", "versions"]


def versions() -> dict[str, str]:
    """Name to version, read from the metadata that pip has written, so that no engine is imported."""
    import platform  # here, since every command imports this module for the names of the engines
    from importlib.metadata import PackageNotFoundError, version

    def installed(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "not installed"

    engines = {engine.name: installed(engine.package) for engine in ENGINES}
    return {"smtspool": __version__, **engines, "Python": platform.python_version()}
