"""Which engines there are and what one helper process may use."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smtspool.errors import ConfigError

from .bundled import BUNDLED, EVALUATOR

__all__ = ["EngineSpec", "HelperLimits", "Recycle", "parse_engine"]

MIB = 1 << 20
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """One engine: a bundled wheel (``command`` is None) or an external SMT-LIB 2 command.

    An external command is *interactive* (reads commands on its standard input for many queries) unless
    one of its words holds ``{query}``: then it is started once per query with the path of a script.
    ``options`` are ``(set-option :key value)`` pairs, set before the logic.
    """

    name: str
    command: tuple[str, ...] | None = None
    options: tuple[tuple[str, str], ...] = ()

    @property
    def interactive(self) -> bool:
        """False only for an external command that takes one file per query."""
        return self.command is None or not any("{query}" in word for word in self.command)

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> EngineSpec:
        """From what ``dataclasses.asdict`` gives, through JSON or not."""
        command = members["command"]
        options = tuple((key, value) for key, value in members["options"])
        return cls(members["name"], None if command is None else tuple(command), options)


@dataclass(frozen=True, slots=True)
class HelperLimits:
    """Bounds of one helper. Sizes are bytes; a limit of the machine that is lower wins."""

    memory: int = 4096 * MIB  # address space
    stack: int = 512 * MIB  # main thread: parsers of engines recurse on nesting
    cpu_s: int | None = None  # CPU seconds in the life of one helper
    frame: int = 256 * MIB  # one request or one reply
    stderr: int = 64 * 1024  # kept tail of what the engine printed
    spare: bool = True  # fork the next helper ahead of need


@dataclass(frozen=True, slots=True)
class Recycle:
    """When a healthy generation is replaced all the same: engines do not give all memory back."""

    rss_bytes: int = 1 << 30
    requests: int = 2000


def parse_engine(text: str) -> EngineSpec:
    """``z3``, or ``name=command`` as in ``yices=yices-smt2 --incremental`` or ``stp=stp --SMTLIB2 {query}``.

    Raises :class:`ConfigError`.
    """
    name, equals, command = text.partition("=")
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is not an engine name: use letters, digits, '_', '.' and '-'")
    if name == EVALUATOR:
        raise ConfigError(f"{name!r} is the name of smtspool's own evaluator: give the engine another one")
    if not equals:
        if name not in BUNDLED:
            raise ConfigError(f"no engine {name!r} is bundled: use {', '.join(BUNDLED)} or name=command")
        return EngineSpec(name)
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise ConfigError(f"the command of engine {name!r} cannot be split into words: {error}") from error
    if not words:
        raise ConfigError(f"engine {name!r} has an empty command")
    return EngineSpec(name, words)
