"""A consumer that stands still between two gates is reported as one that is blocked."""

from __future__ import annotations

import pytest

from conformance.engine.gates import GateError
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Divergence
from conformance.spool_admission.protocol import PROTOCOL


def test_a_participant_that_blocks_is_reported() -> None:
    stuck = Mutant.of(
        "stuck",
        "a consumer waits for ever",
        (
            "smtspool.spool.admission",
            "        batch = self._batch\n",
            "        import threading\n\n        threading.Event().wait()\n        batch = self._batch\n",
        ),
    )
    with (
        PROTOCOL.replay("Graph", stuck.to_json(), patience_s=1.0) as replay,
        pytest.raises((Divergence, GateError)) as seen,
    ):
        replay.run(most_tours=5)
    assert "is blocked" in str(seen.value)
    assert "python -m conformance spool_admission/Graph" in str(seen.value)
