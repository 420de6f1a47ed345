"""``set-option``: what a producer's options mean for a query.

No option reaches an engine. An option that changes what the script means is honoured. One that would make a
solver write to a file is refused, because its producer would wait for that file. All others only say how to
search or what to print, and are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto

from smtspool.errors import AdmissionError, Reason

__all__ = ["Effect", "effect_of"]


class Effect(Enum):
    """What is to be done about an option."""

    NONE = auto()  # it only concerns printing or the search
    UNKNOWN = auto()  # of some solver; probably the same, but worth a note
    KEEP_DECLARATIONS = auto()  # pop removes assertions alone
    SCOPE_DECLARATIONS = auto()  # pop removes declarations, too, as it does without any option


_HARMLESS = frozenset(
    {
        ":print-success",
        ":produce-models",
        ":produce-assignments",
        ":produce-unsat-cores",
        ":produce-unsat-assumptions",
        ":produce-proofs",
        ":produce-assertions",
        ":interactive-mode",
        ":incremental",
        ":random-seed",
        ":verbosity",
        ":reproducible-resource-limit",
        ":timeout",
        ":tlimit",
        ":tlimit-per",
        ":rlimit",
    }
)
_SCOPING = frozenset({":global-declarations", ":global-decls"})
_SCOPES = {"true": Effect.KEEP_DECLARATIONS, "false": Effect.SCOPE_DECLARATIONS}
# Words in the names of options that open a file or redirect a channel, and cvc5's names of its channels.
_WRITING = frozenset(["channel", "directory", "dot", "drat", "dump", "file", "log", "path", "trace"])
_CHANNELS = frozenset({":in", ":out", ":err"})
_WORD = re.compile(r"[a-z0-9]+")


def effect_of(arguments: Sequence[str]) -> Effect:
    """What ``(set-option ARGUMENTS)`` does to a query. Raises ``AdmissionError`` (command, syntax)."""
    option = arguments[0] if arguments else ""
    if option in _HARMLESS:
        return Effect.NONE
    if option in _SCOPING:
        effect = _SCOPES.get(" ".join(arguments[1:]))
        if effect is None:
            raise AdmissionError(Reason.COMMAND, f"the option {option} is true or false", at=option)
        return effect
    if option[:1] != ":":
        raise AdmissionError(Reason.SYNTAX, "an option begins with a colon", at=option or None)
    if option in _CHANNELS or not _WRITING.isdisjoint(_WORD.findall(option.lower())):
        message = f"the option {option[:64]!r} is not allowed: it is about files or channels"
        raise AdmissionError(Reason.COMMAND, message, at=option)
    return Effect.UNKNOWN
