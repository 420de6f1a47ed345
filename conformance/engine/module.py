"""What a TLA+ module declares, read from its text: the words that code and tests must share with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["definitions", "identifiers", "strip_comments", "variables"]

_DEFINITION = re.compile(r"^([A-Za-z_]\w*)(?:\(([^)]*)\))?\s*==", re.MULTILINE)
_IDENTIFIER = re.compile(r"^\\\* ([A-Z]+-\d+): (.*(?:\n\\\*   *.*)*)\n([A-Za-z_]\w*)\b", re.MULTILINE)


def strip_comments(text: str) -> str:
    """The module without ``(* *)`` and ``\\*`` comments."""
    return re.sub(r"\\\*[^\n]*", "", re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL))


def variables(module: Path) -> tuple[str, ...]:
    """The names after VARIABLES, in order."""
    found = re.search(
        r"^VARIABLES?\b(.*?)(?:\n\s*\n)", strip_comments(module.read_text()), re.DOTALL | re.MULTILINE
    )
    if found is None:
        raise ValueError(f"{module.name} declares no variables")
    return tuple(re.findall(r"[A-Za-z_]\w*", found[1]))


def definitions(module: Path) -> Mapping[str, tuple[str, ...]]:
    """The operators at the margin, with the names of their parameters."""
    text = strip_comments(module.read_text())
    return {
        name: tuple(re.findall(r"\w+", parameters or "")) for name, parameters in _DEFINITION.findall(text)
    }


def identifiers(module: Path) -> Mapping[str, tuple[str, str]]:
    """Stable identifier -> (definition, statement), from comments of the form ``\\* SPOOL-3: statement``."""
    return {
        identifier: (name, " ".join(statement.replace("\\*", " ").split()))
        for identifier, statement, name in _IDENTIFIER.findall(module.read_text())
    }
