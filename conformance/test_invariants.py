"""The page of invariants is what the sources say today."""

from __future__ import annotations

from conformance.engine.module import identifiers
from conformance.invariants import PAGE, page
from conformance.spool import MODULE


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run: python -m conformance.invariants"


def test_every_identifier_has_its_chapter() -> None:
    text = PAGE.read_text()
    for identifier, (name, _) in identifiers(MODULE).items():
        assert f"## {identifier}: {name}\n" in text
