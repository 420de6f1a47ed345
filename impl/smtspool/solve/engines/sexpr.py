"""S-expressions as engines print them, split without recursion."""

from __future__ import annotations

import re

from .base import EngineError

__all__ = ["items"]

_TOKEN = re.compile(r'\|[^|]*\||"(?:[^"]|"")*"|;[^\n]*|[()]|[^\s()|";]+')


def items(text: str) -> list[str]:
    """The elements of the one list that ``text`` is, each with its text inside on one line."""
    tokens = [token for token in _TOKEN.findall(text) if not token.startswith(";")]
    if len(tokens) < 2 or tokens[0] != "(" or tokens[-1] != ")":
        raise EngineError(f"a list was expected, not {text[:200]!r}")
    found: list[str] = []
    depth = start = 0
    for position, token in enumerate(tokens[1:-1], 1):
        if depth == 0:
            start = position
        depth += (token == "(") - (token == ")")
        if depth < 0:
            break
        if depth == 0:
            found.append(_spell(tokens[start : position + 1]))
    if depth != 0:
        raise EngineError(f"parentheses do not match in {text[:200]!r}")
    return found


def _spell(tokens: list[str]) -> str:
    return " ".join(tokens).replace("( ", "(").replace(" )", ")")
