"""The examples in docstrings are run as they stand."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

CODE = Path(__file__).parent.parent / "impl" / "smtspool"
WITH_EXAMPLES = sorted(path for path in CODE.rglob("*.py") if ">>> " in path.read_text())


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(CODE)))
def test_examples_give_what_they_say(path: Path) -> None:
    name = ".".join(path.relative_to(CODE.parent).with_suffix("").parts)
    failed, tried = doctest.testmod(import_module(name))
    assert tried and not failed
