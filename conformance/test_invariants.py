"""The page of invariants is what the sources say today."""

from __future__ import annotations

import pytest

from conformance.engine.module import identifiers
from conformance.invariants import MODELS, PAGE, ROOT, Model, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run: python -m conformance.invariants"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.module.stem)
def test_every_identifier_has_its_chapter(model: Model) -> None:
    text = PAGE.read_text()
    for identifier, (name, _) in identifiers(model.module).items():
        assert f"### {identifier}: {name}\n" in text


def test_every_module_with_invariants_is_on_the_page() -> None:
    stated = {path for path in (ROOT / "models").glob("*/*.tla") if identifiers(path)}
    known = {path for model in MODELS for path in model.modules}
    legacy = {path for path in stated if path.stem.startswith("Legacy")}
    assert stated - legacy <= known
