"""What is raised in a rank, and what every result that comes of it must look like."""

from __future__ import annotations

from typing import Any

from conformance.engine.replay import Divergence
from smtspool.cluster import (
    TEXT_LIMIT,
    Code,
    Proof,
    QualificationResult,
    require_complete,
    transcript_of,
)

__all__ = ["check_result", "control", "ordinary", "said"]


class _Silent(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


_Long = type("Long\nname" + "x" * 700, (_Silent,), {})


def ordinary(how: int) -> Exception:
    """An exception that a communicator, a clock or a file system may raise, none of a list that one might
    write down; some cannot be shown as they are (F355 section 4)."""
    kinds: list[Exception] = [
        LookupError("injected communicator adapter failure"),
        AssertionError("x" * 600),
        ZeroDivisionError("\n" * 600 + "after\x1b[31m the lines\0"),
        _Silent(),
        _Long(),
        KeyError(how),
    ]
    return kinds[how % len(kinds)]


def control(how: int) -> BaseException:
    """An exception that steers the process."""
    kinds = [KeyboardInterrupt(), SystemExit(3), GeneratorExit()]
    return kinds[how % len(kinds)]


def said(error: Exception) -> str:
    """What a diagnostic says of an exception, before it is cut (F355 section 4.3, 4.4)."""
    try:
        text = str(error)
    except RuntimeError:
        text = type(error).__name__
    lines = "".join(letter if letter.isprintable() else "\n" for letter in text).split("\n")
    return " ".join(line for line in lines if line).strip()


def check_result(result: QualificationResult, struck: Exception | None) -> None:
    """Raises :class:`Divergence` unless the parts of a result belong together. ``struck`` is what was raised
    in the protocol of this rank, if anything was."""
    wrong = list(_wrong(result, struck))
    if wrong:
        raise Divergence(f"{'; '.join(wrong)}: {result}", "result")


def _wrong(result: QualificationResult, struck: Exception | None) -> Any:
    text, code = result.error, result.diagnostic.code if result.diagnostic else None
    if type(result.generation) is not int:
        yield "the generation is no int"
    if len(text) > TEXT_LIMIT or not text.isprintable():
        yield "the diagnostic is not bounded or not printable"
    if result.clean != (result.diagnostic is None) or (result.verified and not result.clean):
        yield "the flags do not agree"
    proved = result.capability is not None and result.capability.proof is not None
    if proved != result.verified:
        yield "the capability claims something else than the result"
    if bool(result.proof.transcript) != result.verified:
        yield "the transcript is no verified one"
    if (struck is not None) != (code is Code.RAISED):
        yield f"raised was {struck!r}"
    if struck is not None:
        expected = f"cluster lock qualification raised: {said(struck)}"
        if text != expected[:TEXT_LIMIT].strip():
            yield f"the diagnostic is not {expected[:TEXT_LIMIT]!r}"
        if result.proof != Proof() or result.elapsed != 0.0:
            yield "a contained result claims something"
    if result.verified:
        try:
            require_complete(result.proof)
        except ValueError as error:
            yield str(error)
        bare = Proof(*(getattr(result.proof, name) for name in Proof.__slots__[:-1]))
        if result.proof.transcript != transcript_of(result.epoch, result.generation, bare):
            yield "the transcript is another one"
