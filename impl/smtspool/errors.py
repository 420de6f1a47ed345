"""Every error smtspool raises on purpose, in three kinds.

* :class:`AdmissionError` - the input is bad; the file is quarantined and nothing else happens.
* :class:`InfrastructureError` - the machine failed us; nothing is lost, the work is tried again.
* :class:`MisuseError` - the caller broke a rule of the interface.

The text of each says what is wrong and what to do about it; codes are for machines (F365).
"""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "AdmissionError",
    "ClosedError",
    "ConfigError",
    "InfrastructureError",
    "LockRefused",
    "MisuseError",
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
    SYMBOL = "symbol"  # a symbol that is undeclared, declared twice, or reserved
    EMPTY = "empty"  # nothing is asked: no assertion or no check-sat
    SUFFIX = "suffix"  # neither *.json nor *.smt2
    UNREADABLE = "unreadable"  # the service has no permission to read this file
    INTERNAL = "internal"  # the decoder failed on it in an unforeseen way: a defect worth reporting


class SmtspoolError(Exception):
    """Root of the tree; never raised itself."""


class AdmissionError(SmtspoolError):
    """Bad input. ``reason`` is its code, ``str()`` the sentence for people.

    ``at`` is the token of the input at which it was noticed, the very object that the reader handed out, so
    that who read the text can say where the token stands; None where no single token is to blame.
    """

    def __init__(self, reason: Reason, message: str, *, at: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.at = at


class InfrastructureError(SmtspoolError):
    """A failed syscall, database or helper; the original error is ``__cause__``. Retrying is safe."""


class LockRefused(InfrastructureError):
    """The admission lock is a link, a FIFO, or not the inode its name leads to (F364 §4.1)."""


class MisuseError(SmtspoolError):
    """The caller broke a documented rule."""


class ClosedError(MisuseError):
    """The object was closed before the call."""


class ConfigError(MisuseError):
    """A setting is unknown, malformed or out of range."""
