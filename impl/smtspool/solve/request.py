"""Requests to a helper, its replies, and the failures of a generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from smtspool.errors import InfrastructureError, MisuseError
from smtspool.query import Status

if TYPE_CHECKING:
    from smtspool.query import Level, Symbol

__all__ = ["FailureKind", "GenerationFailed", "Op", "Reply", "Request", "RequestRefused"]

_ALONE = 64  # levels at the end of a path that get a push of their own
_LAST_LINE = 300  # characters of stderr in a message


class Op(StrEnum):
    """The kinds of requests."""

    SOLVE = "solve"  # decide the levels, give a model of the wanted symbols
    CHECK = "check"  # decide a closed script (every symbol defined): verification of a model
    PING = "ping"  # answer at once; shows that the helper has started, and its size


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``attempt_id`` is fresh for every request and is echoed by the reply.

    ``script`` is for CHECK only: SMT-LIB text from ``set-logic`` to the last assertion; a ``check-sat`` at
    its end is ignored. ``fresh`` forbids to use or to keep an assertion stack. ``yielding`` lowers the
    helper's priority until it ends, so that other processes get most of a CPU that all of them want.
    ``timeout_ms`` is a limit that the engine keeps roughly; the deadline given to ``exchange`` is strict.
    """

    attempt_id: str
    op: Op
    logic: str = "QF_BV"
    levels: tuple[Level, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    timeout_ms: int = 10_000
    fresh: bool = False
    yielding: bool = False
    script: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A helper's answer; ``reason`` goes with ``unknown`` and ``error``.

    ``kept_levels`` were on the helper's stack already when the request came, ``held_levels`` are on it
    now. ``rss_bytes`` is the resident size of the helper after the answer, for recycling.
    """

    attempt_id: str
    status: Status
    model: Mapping[str, str] | None = None
    reason: str | None = None
    elapsed_ms: float = 0.0
    kept_levels: int = 0
    held_levels: int = 0
    rss_bytes: int = 0

    def to_wire(self) -> dict[str, Any]:
        """JSON members; the inverse of :meth:`from_wire`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_wire(cls, members: Mapping[str, Any]) -> Reply:
        """``KeyError``, ``TypeError``, ``ValueError`` or ``OverflowError`` for anything but a reply."""
        model = members["model"]
        if model is not None:
            model = {name: _typed(str, value) for name, value in _typed(dict, model).items()}
        reason = members["reason"]
        return cls(
            attempt_id=_typed(str, members["attempt_id"]),
            status=Status(members["status"]),
            model=model,
            reason=None if reason is None else _typed(str, reason),
            elapsed_ms=float(_typed((int, float), members["elapsed_ms"])),
            kept_levels=_typed(int, members["kept_levels"]),
            held_levels=_typed(int, members["held_levels"]),
            rss_bytes=_typed(int, members["rss_bytes"]),
        )


def pushes(kept: int, total: int) -> list[int]:
    """The pushes by which a helper that holds ``kept`` levels adds the rest.

    One push for each level, but a single one for all of the oldest if there are many.

    So all levels that the next query of the path shares are kept, be it longer or shorter. On a path of 45
    that shrinks by one assertion this saves four fifths of the CPU time in bitwuzla and cvc5, and on one that
    grows it costs nothing.
    """
    return list(range(max(kept + 1, total - _ALONE), total + 1))


def _typed(kind: type | tuple[type, ...], value: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{value!r:.80} is of the wrong type")
    return value


class FailureKind(StrEnum):
    """Why a generation can no longer be used."""

    TIMEOUT = "timeout"  # the deadline passed before the whole reply was in
    CRASHED = "crashed"  # the helper died: end of file, reset
    KILLED = "killed"  # signal_kill() or the caller's wake descriptor ended the exchange
    OVERSIZE = "oversize"  # a frame over the limit
    ECHO = "echo"  # the answer of another request
    ENCODING = "encoding"  # not UTF-8
    GARBAGE = "garbage"  # not a reply
    EXTRA = "extra"  # bytes outside of a reply
    RETIRED = "retired"  # was retired before the exchange began
    SYSTEM = "system"  # a system call of the service failed


class GenerationFailed(InfrastructureError):
    """The exchange failed and the generation is no longer valid; the caller retires it.

    ``stderr`` is the tail of what the helper printed, ``exit`` how it ended ("signal 9", "exit 1") when
    that is known already.
    """

    def __init__(self, kind: FailureKind, message: str, *, stderr: str = "", exit: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.stderr = stderr
        self.exit = exit

    @property
    def sentence(self) -> str:
        """The failure with all that is known about it, for people."""
        return ": ".join(filter(None, (self.kind.value, str(self), self.exit, self.stderr.strip())))

    def __str__(self) -> str:
        last = self.stderr.rstrip().rpartition("\n")[2][:_LAST_LINE]
        how = f" ({self.exit})" if self.exit else ""
        words = f", it last printed {last!r}" if last else ""
        return super().__str__() + how + words


class RequestRefused(MisuseError):
    """The request cannot be sent (too large, not UTF-8). Nothing was sent, the generation is valid."""
