"""What runs record that nobody steers is a behaviour of the model."""

from __future__ import annotations

import os

import pytest

from conformance.contract import Protocol
from conformance.engine.walk import Walks
from conformance.protocols import PROTOCOLS

SEED = int(os.environ.get("CONFORMANCE_SEED", "381"))


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [p for p in PROTOCOLS if p.expected.recorded], ids=lambda one: one.name)
def test_free_runs_under_kills_are_behaviours_of_the_model(protocol: Protocol) -> None:
    *_, made = protocol.recordings(SEED, Walks())
    for lines, verdict in zip(made.lines, made.check(made.lines), strict=True):
        assert verdict.accepted, f"CONFORMANCE_SEED={SEED}\n{made.explain(lines, verdict)}"
    assert {line.action for lines in made.lines for line in lines} >= {*protocol.expected.recorded}
