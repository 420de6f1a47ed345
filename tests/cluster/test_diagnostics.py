"""Texts of at most 512 printable characters, whatever raised (F355 §4)."""

from __future__ import annotations

import pytest

from smtspool.cluster import TEXT_LIMIT, Code, Diagnostic, Position, Stage, contained, describe, one_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("as it is", "as it is"),
        ("two\nlines\r\n", "two lines"),
        ("\0nul\0", "nul"),
        ("\x1b[31mred\x1b[0m", "[31mred [0m"),
        ("a\u202eb\ud800c", "a b c"),
        ("Größe ∀", "Größe ∀"),
        ("\n\t\0", ""),
        ("x" * 600, "x" * TEXT_LIMIT),
        ("\n" * 600 + "x" * 600, "x" * TEXT_LIMIT),
    ],
)
def test_a_text_becomes_printable_and_then_short(text: str, expected: str) -> None:
    assert one_line(text) == expected


def test_a_huge_text_is_read_no_further_than_needed() -> None:
    class Endless(str):
        def __iter__(self):  # type: ignore[no-untyped-def]
            while True:
                yield "x"

    assert one_line(Endless()) == "x" * TEXT_LIMIT


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Forger(str):
    def __iter__(self):  # type: ignore[no-untyped-def]
        raise RuntimeError("no characters")


def test_an_exception_without_words_is_named_by_its_type() -> None:
    assert describe(Speechless()) == "Speechless"
    assert describe(ValueError()) == "ValueError"
    assert describe(ValueError("\n")) == "ValueError"
    assert describe(ValueError("why")) == "why"


def test_a_text_with_methods_of_its_own_is_not_trusted() -> None:
    class Forged(Exception):
        def __str__(self) -> str:
            return Forger("text")

    assert describe(Forged()) == "Forged"


def test_a_type_that_hides_its_name_is_named_all_the_same() -> None:
    hidden = Nameless("Hidden\n", (Exception,), {})
    assert describe(hidden()) == "Hidden"
    assert describe(type("\n", (Speechless,), {})()) == "Exception"


def test_a_signal_while_rendering_passes() -> None:
    class Interrupting(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        describe(Interrupting())


def test_the_boundary_returns_what_the_body_returns_or_what_the_failure_becomes() -> None:
    at = Position(Stage.OBSERVE, generation=4, rank=2)

    def body() -> Diagnostic:
        at.stage = Stage.HELD
        raise LookupError("why")

    assert contained("it failed", at, lambda: 7, lambda diagnostic: 0) == 7
    assert contained("it failed", at, body, lambda diagnostic: diagnostic) == Diagnostic(
        Stage.HELD, Code.RAISED, 2, 4, "it failed: why"
    )


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_the_boundary_lets_signals_pass(signal: type[BaseException]) -> None:
    def body() -> None:
        raise signal

    with pytest.raises(signal):
        contained("it failed", Position(Stage.OBSERVE), body, lambda diagnostic: None)
