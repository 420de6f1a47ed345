"""Every error that smtspool raises itself, in four kinds.

* :class:`AdmissionError` - the input is bad; the file is quarantined and nothing else happens (F365).
* :class:`ModelError` - a model has a missing or malformed value, so its engine gave no answer.
* :class:`InfrastructureError` - the machine failed; nothing is lost, and the work is tried again (F365).
* :class:`MisuseError` - the caller broke a rule of the interface.

The text of each says what is wrong and what to do about it; programs read the codes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

__all__ = [
    "AdmissionError",
    "ClosedError",
    "ConfigError",
    "InfrastructureError",
    "LastingError",
    "LockRefused",
    "MisuseError",
    "ModelError",
    "Place",
    "Reason",
    "SmtspoolError",
]


class Reason(StrEnum):
    """Why an input was refused; the ``reason`` member of a quarantine sidecar."""

    NOT_REGULAR = "not-regular"  # directory, FIFO, socket, device
    SYMLINK = "symlink"
    TOO_LARGE = "too-large"  # the file, or one counted part of it, is over its limit
    ENCODING = "encoding"  # not UTF-8
    JSON = "json"  # not strict JSON
    SCHEMA = "schema"  # a member is missing, unknown, or of the wrong type
    SYNTAX = "syntax"  # not SMT-LIB 2
    COMMAND = "command"  # an SMT-LIB command or option that a producer may not use
    LOGIC = "logic"  # a logic that no bundled engine supports
    SORT = "sort"  # an operator or function applied to what it does not take
    SYMBOL = "symbol"  # a symbol that is undeclared, declared twice, or reserved
    EMPTY = "empty"  # nothing is asked: no assertion or no check-sat
    SUFFIX = "suffix"  # neither *.json nor *.smt2, compressed or not
    UNREADABLE = "unreadable"  # the service has no permission to read this file
    INTERNAL = "internal"  # the decoder failed on it in an unforeseen way: a defect worth reporting


class Place(NamedTuple):
    """A position in an input at which an error was noticed. Lines and columns count from 1."""

    line: int
    column: int  # in characters
    near: str  # a few characters around it, of the same line
    # The member of an envelope that is to blame, such as ``prefix[3]``. Lines and columns are those of the
    # envelope's file; of an envelope that was given as a value, they count within the member's string.
    member: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON members; without ``member`` where the whole file is meant."""
        members = self._asdict()
        return members if self.member else {name: members[name] for name in ("line", "column", "near")}


class SmtspoolError(Exception):
    """Root of the tree; never raised itself."""


class AdmissionError(SmtspoolError):
    """Bad input. ``reason`` is its code, ``message`` a sentence, and ``str()`` that sentence with the place.

    ``at`` is the token at which the error was noticed, the very object that the lexer made. A caller that has
    the text finds the position of this object in it and sets ``place``. Both are None if the error has no
    single place.

    >>> import smtspool
    >>> try:
    ...     smtspool.check("(assert (= p q))(check-sat)")
    ... except smtspool.AdmissionError as error:
    ...     print(error.reason, "-", error)
    symbol - line 1, column 12: 'p' is not declared here, near '(assert (= p q))(check-sat)'
    """

    def __init__(
        self, reason: Reason, message: str, *, at: str | None = None, place: Place | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.at = at
        self.place = place

    def __str__(self) -> str:
        if self.place is None:
            return self.message
        return f"line {self.place.line}, column {self.place.column}: {self._near(self.place)}"

    def of(self, file: str) -> str:
        """The sentence with the place in ``file``, as compilers print it: ``FILE:LINE:COLUMN: ...``."""
        if self.place is None:
            return f"{file}: {self.message}"
        return f"{file}:{self.place.line}:{self.place.column}: {self._near(self.place)}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON members: ``reason``, ``message`` (with the place, if there is one), ``place``."""
        place = None if self.place is None else self.place.to_json()
        return {"reason": self.reason.value, "message": str(self), "place": place}

    def _near(self, place: Place) -> str:
        member = f" in {place.member}" if place.member else ""
        near = f" near {place.near!r}" if place.near else ""
        return f"{self.message},{member}{near}" if member or near else self.message


class ModelError(SmtspoolError):
    """A model is none: a value is missing, or is no value of its symbol's sort, or no byte of an input."""


class InfrastructureError(SmtspoolError):
    """A failed syscall, database or helper; the original error is ``__cause__``. Retrying is safe."""


class LastingError(InfrastructureError):
    """A failure that does not pass by waiting: a damaged store, a missing right. The text says what to do."""


class LockRefused(InfrastructureError):
    """The admission lock is a link, a FIFO, or not the inode its name leads to (F364 §4.1)."""


class MisuseError(SmtspoolError):
    """The caller broke a documented rule."""


class ClosedError(MisuseError):
    """The object was closed before the call."""


class ConfigError(MisuseError):
    """A setting is unknown, malformed or out of range."""
