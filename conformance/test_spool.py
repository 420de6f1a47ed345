"""The committed graph of spool admission, driven whole through today's code, and what must not pass."""

from __future__ import annotations

import os

import pytest

from conformance import protocols
from conformance.engine.gates import GateError
from conformance.engine.graph import Graph, load
from conformance.engine.module import definitions, identifiers, variables
from conformance.engine.mutants import Mutant, Substitution
from conformance.engine.replay import Divergence, Replay, State
from conformance.engine.values import Function, Value
from conformance.spool_admission.mutants import MUTANTS
from conformance.spool_admission.system import INVARIANTS, MODULE, SpoolAdapter

WORKERS = os.cpu_count() or 1


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load(protocols.CORPUS)


@pytest.mark.slow
def test_every_edge_and_every_refusal() -> None:
    with protocols.replay("spool") as replay:
        drive = replay.run(workers=WORKERS)
    assert len(drive.edges) == len(drive.graph.edges) == 6753
    assert len(drive.refusals) == drive.refusals_required == 5648
    assert drive.excluded == 276
    assert drive.complete


def test_a_few_tours_at_once() -> None:
    with protocols.replay("spool") as replay:
        drive = replay.run(workers=WORKERS, most_tours=6, longest=60)
    assert drive.tours == 6 and drive.steps > 100 and not drive.complete


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_named_mutants_are_caught_and_the_control_survives(mutant: Mutant) -> None:
    kill = protocols.hunt("spool", mutant)
    assert kill.as_wanted, kill.message


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_apply_to_the_code_as_it_is(mutant: Mutant) -> None:
    mutant.check()


def test_the_projection_has_the_variables_of_the_module(graph: Graph) -> None:
    assert graph.variables == set(variables(MODULE))


def test_every_state_predicate_of_the_module_is_evaluated_on_the_real_state() -> None:
    stated = {name for name, _ in identifiers(MODULE).values()}
    temporal = {"TypeOK", "SettledIsFinal", "Admitted"}
    assert stated - temporal == set(INVARIANTS)


def test_every_action_of_the_module_labels_an_edge(graph: Graph) -> None:
    labelled = {str(label["name"]) for label in graph.labels.values()}
    assert labelled <= set(definitions(MODULE))
    assert all(graph.count(name) for name in labelled)


def test_each_variable_takes_two_values(graph: Graph) -> None:
    for name in graph.variables:
        assert len({str(state[name]) for state in graph.values}) > 1, name


class _Echo:
    """A system that is not there: it answers with what the model expects."""

    def __init__(self, graph: Graph, initial: State) -> None:
        self._graph = graph
        self._state = graph.values.index(initial)

    def perform(self, label: Function) -> None:
        for edge in self._graph.outgoing[self._state]:
            if self._graph.labels[edge.label] == label:
                self._state = edge.target

    def project(self) -> dict[str, Value]:
        return dict(self._graph.values[self._state])

    def standing(self) -> frozenset[str]:
        replay = Replay(self._graph, SpoolAdapter.__new__(SpoolAdapter))
        return replay.ready(self._state)

    def close(self) -> None:
        pass


def test_an_adapter_that_echoes_the_model_is_seen(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpoolAdapter, "start", lambda _, initial, variant: _Echo(graph, initial))
    with protocols.replay("spool") as replay, pytest.raises(Divergence, match="no participant") as seen:
        replay.run(most_tours=5)
    assert seen.value.detector == "ledger"


def test_a_participant_that_blocks_is_reported() -> None:
    stuck = Mutant(
        "stuck",
        "a consumer waits for ever",
        (
            Substitution(
                "smtspool.spool.admission",
                "        batch = self._batch\n",
                "        import threading\n\n        threading.Event().wait()\n        batch = self._batch\n",
            ),
        ),
    )
    with (
        protocols.replay("spool", stuck, patience_s=1.0) as replay,
        pytest.raises((Divergence, GateError)) as seen,
    ):
        replay.run(most_tours=5)
    assert "is blocked" in str(seen.value)
    assert "python -m conformance spool" in str(seen.value)
