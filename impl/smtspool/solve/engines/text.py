"""Sessions of engines that take SMT-LIB commands and answer in SMT-LIB text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smtspool.query import Status

from .base import EngineError, WantedSymbol
from .sexpr import items

__all__ = ["TextSession", "definitions", "hexadecimal"]

_NIBBLES = re.compile(r"#b((?:[01]{4})+)(?![01])")
_AT_A_TIME = 1000  # values in one command: keeps lines short


class TextSession:
    """A session over :meth:`run`, which the engine provides."""

    def run(self, commands: str) -> str:
        """What the engine prints for the commands. Raises :class:`EngineError` if it complains."""
        raise NotImplementedError

    def load(self, commands: str) -> None:
        printed = self.run(commands)
        if printed.strip():
            raise EngineError(f"declarations and assertions were answered with {printed[:200]!r}")

    def push(self) -> None:
        self.load("(push 1)")

    def pop(self) -> None:
        self.load("(pop 1)")

    @property
    def ended(self) -> bool:
        return False

    def limit(self, timeout_ms: int) -> None:
        """Tell the engine how long the next check may take."""

    def check(self, timeout_ms: int) -> tuple[Status, str | None]:
        self.limit(timeout_ms)
        words = self.run("(check-sat)").split(None, 1)
        if words == ["sat"]:
            return Status.SAT, None
        if words == ["unsat"]:
            return Status.UNSAT, None
        if words and words[0] in ("unknown", "timeout"):
            return Status.UNKNOWN, self.why_unknown()
        raise EngineError(f"check-sat was answered with {' '.join(words)[:200]!r}")

    def why_unknown(self) -> str:
        """The engine's reason for ``unknown``, for people only, since the texts differ between engines."""
        try:
            _, reason = items(self.run("(get-info :reason-unknown)"))
        except (EngineError, ValueError):
            return "unknown"
        return reason.strip('"')[:200]

    def values(self, wanted: Sequence[WantedSymbol]) -> dict[str, str]:
        constants = [symbol.name for symbol in wanted if not symbol.params]
        found: dict[str, str] = {}
        for start in range(0, len(constants), _AT_A_TIME):
            names = constants[start : start + _AT_A_TIME]
            pairs = items(self.run(f"(get-value ({' '.join(names)}))"))
            if len(pairs) != len(names):
                raise EngineError(f"{len(names)} values were asked for, {len(pairs)} came")
            for name, pair in zip(names, pairs, strict=True):
                found[name] = hexadecimal(_two(pair)[1])
        if len(constants) < len(wanted):
            # In SMT-LIB 2.6 a function is no term, so its value can be read only from the whole model.
            model = definitions(self.run("(get-model)"))
            found |= {s.name: hexadecimal(model[s.name]) for s in wanted if s.params and s.name in model}
        return found

    def close(self) -> None:
        """Nothing to release."""


def hexadecimal(value: str) -> str:
    """The same value, its bit-vectors in hexadecimal where their width allows."""
    return _NIBBLES.sub(lambda found: f"#x{int(found[1], 2):0{len(found[1]) // 4}x}", value)


def definitions(model: str) -> dict[str, str]:
    """The ``define-fun`` commands of a model by name."""
    commands = items(model)
    if commands and commands[0] == "model":  # as some engines print it
        del commands[0]
    return {items(command)[1]: command for command in commands}


def _two(pair: str) -> list[str]:
    parts = items(pair)
    if len(parts) != 2:
        raise EngineError(f"a name and a value were expected, not {pair[:200]!r}")
    return parts
