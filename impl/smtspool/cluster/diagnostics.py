"""Bounded diagnostics, and the one boundary that turns an ordinary exception into a failed value.

F354 to F358 guard five calls in the same way. An exception that derives from ``Exception`` becomes a value of
the caller's choice with a text of at most 512 printable characters; others, such as ``KeyboardInterrupt`` and
``SystemExit``, propagate. :func:`contained` is that guard.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from .steps import action

__all__ = ["TEXT_LIMIT", "Code", "Diagnostic", "Position", "Stage", "contained", "describe", "one_line"]

log = logging.getLogger("smtspool")

TEXT_LIMIT = 512  # characters, prefix included (F355 §4)

T = TypeVar("T")


class Stage(StrEnum):
    """The part of a qualification that failed; the phases of the protocol are in their order."""

    OBSERVE = "observe"
    EPOCH = "epoch"
    MEMBERSHIP = "membership"
    ROOT = "root"
    PREPARE = "prepare"
    ANCHOR = "anchor"
    OPEN = "open"
    HELD = "held"
    EXCLUDED = "excluded"
    RELEASED = "released"
    REACQUIRED = "reacquired"
    IDENTITY = "identity"
    TRANSCRIPT = "transcript"
    COMMIT = "commit"
    CONFIGURATION = "configuration"
    REQUEST = "request"
    HEARTBEAT = "heartbeat"
    COMPLETION = "completion"
    SERVICE = "service"


class Code(StrEnum):
    """The kind of a failure."""

    RAISED = "raised"  # an exception was contained; nothing is known about the other ranks
    REFUSED = "refused"  # a rank reported a failure, which every rank received
    MALFORMED = "malformed"  # a message is not what the protocol allows here
    EXPIRED = "expired"  # the deadline passed
    UNVERIFIED = "unverified"  # nothing failed, but what had to be proved was not


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Why there is no proof: ``text`` for people (printable, at most 512 characters), the rest for machines.

    ``rank`` is the rank that reports it, None if asking for its number raised.
    """

    stage: Stage
    code: Code
    rank: int | None
    generation: int
    text: str

    def to_json(self) -> dict[str, object]:
        return {
            "stage": self.stage.value,
            "code": self.code.value,
            "rank": self.rank,
            "generation": self.generation,
            "text": self.text,
        }


@dataclass(slots=True)
class Position:
    """How far the body of :func:`contained` has come. The body updates it; diagnostics are made from it."""

    stage: Stage
    generation: int = 0
    rank: int | None = None

    def diagnose(self, code: Code, text: str) -> Diagnostic:
        return Diagnostic(self.stage, code, self.rank, self.generation, one_line(text))


def contained(what: str, at: Position, body: Callable[[], T], failed: Callable[[Diagnostic], T]) -> T:
    """``body()``, or ``failed(diagnostic)`` if it raised an ordinary exception.

    Total over ``Exception`` while objects can be allocated (F355 §9.4); other exceptions propagate. The text
    is ``what``, a colon, and the exception as text or, if that raises, its type.
    """
    try:
        return body()
    except Exception as error:  # F355 §3: a list of types would not be total
        with action("Contain", rank=at.rank, stage=at.stage.value):
            log.debug("contained at stage %s", at.stage.value, exc_info=error)  # the text has no traceback
            return failed(at.diagnose(Code.RAISED, f"{what}: {describe(error)}"))


def describe(error: BaseException) -> str:
    """``error`` as at most 512 printable characters; the name of its type if that raises or is empty."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an exception that cannot be rendered is still one (F355 §4.4)
        text = ""
    said = one_line(text) if type(text) is str else ""  # methods of a subclass might raise
    return said or one_line(_name_of(type(error))) or "Exception"


# The name itself: a metaclass may have put a property in its place.
_name_of: Callable[[type], str] = type.__dict__["__name__"].__get__


def one_line(text: str) -> str:
    """``text`` on one line: runs of unprintable characters become one space, then it is cut to 512."""
    kept: list[str] = []
    for character in text:
        if character.isprintable():
            kept.append(character)
        elif kept and kept[-1] != " ":
            kept.append(" ")
        if len(kept) == TEXT_LIMIT:
            break
    return "".join(kept).strip()
