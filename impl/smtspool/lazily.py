"""Packages whose modules are imported when one of their names is first asked for.

A command, and above all the process of an engine, needs a few names of a package; importing all of it would
take longer than the work itself. Such a package has three parts, which tests/test_house.py compares::

    if TYPE_CHECKING:  # for readers and type checkers
        from .answer import Answer, Status

    __all__ = ["Answer", "Status"]
    __getattr__, __dir__ = exports(__name__, {"answer": ("Answer", "Status")})
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module

__all__ = ["exports"]


def exports(
    package: str, modules: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package``; ``modules`` maps its modules to their public names."""
    homes = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)  # later look-ups do not come here
        return value

    return get, lambda: sorted(homes)
