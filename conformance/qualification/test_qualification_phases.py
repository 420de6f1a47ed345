"""What the graphs of qualification meet: every phase, and an exception of either kind in each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conformance.engine.graph import Graph
from conformance.engine.values import Function, Value
from conformance.qualification.disturbances import FILE_CALL
from conformance.qualification.projection import PC_OF_GATE, PHASE_OF_ACT
from conformance.qualification.protocol import PROTOCOL
from conformance.seam import actions_of


@pytest.fixture(scope="module")
def graphs() -> Sequence[Graph]:
    return [PROTOCOL.graph(name) for name in PROTOCOL.graphs]


def test_every_mutant_has_a_hint() -> None:
    assert set(PROTOCOL.shows_in) == {mutant.name for mutant in PROTOCOL.mutants}


def test_the_projection_knows_every_action_of_the_seam() -> None:
    assert set(actions_of("cluster", "qualification")) == {*PC_OF_GATE, *PHASE_OF_ACT, "Contain"}


def test_every_phase_and_every_kind_of_exception_is_met(graphs: Sequence[Graph]) -> None:
    phases = {str(label["phase"]) for graph in graphs for label in graph.labels.values() if "phase" in label}
    assert len(phases) == 14
    struck: dict[str, set[Value]] = {"RaiseOrdinary": set(), "RaiseControl": set()}
    for graph in graphs:
        for edge in graph.edges:
            name, stage = str(graph.labels[edge.label]["name"]), graph.values[edge.source]["stage"]
            if name in struck:
                assert isinstance(stage, Function)
                struck[name].add(stage[graph.labels[edge.label]["by"]])
    # Outside of a phase, and in each of startup's: 4, twice 5, 3, and the one before and the one behind.
    assert struck["RaiseOrdinary"] == struck["RaiseControl"] == set(range(20))


def test_files_are_refused_in_every_phase_that_asks_for_them(graphs: Sequence[Graph]) -> None:
    assert set(FILE_CALL) == {
        "root", "prepare", "anchor", "open", "Hold", "Contend", "Release", "Reacquire", "CloseIdentity",
    }  # fmt: skip
