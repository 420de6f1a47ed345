"""The committed graphs of cancellation, driven whole through today's code, and what must not pass."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance import protocols
from conformance.cancellation import run as cancellation_run
from conformance.cancellation.mutants import MUTANTS, SHOWS_IN
from conformance.cancellation.run import GRAPHS
from conformance.cancellation.system import INVARIANTS, MODULE, CancellationSystem
from conformance.engine.graph import Graph, load
from conformance.engine.module import definitions, identifiers, variables
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Divergence
from conformance.engine.values import Value

WORKERS = os.cpu_count() or 1


@pytest.fixture(scope="module")
def graphs() -> Sequence[Graph]:
    return [load(MODULE.with_name(f"{name}.graph.xz")) for name in GRAPHS]


@pytest.mark.slow
def test_every_edge_and_every_refusal() -> None:
    driven = cancellation_run.drive_all(workers=WORKERS)
    assert driven.states == 1776 + 1710 + 1487 + 1624
    assert driven.edges == driven.edges_required == 5778 + 4650 + 3489 + 5966
    assert driven.refusals == driven.refusals_required == 6926 + 5848 + 8207 + 11326
    assert driven.excluded == 0
    assert driven.complete


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_few_tours_leave_no_thread_and_no_descriptor(graph: str) -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with cancellation_run.replay(graph) as replay:
        drive = replay.run(most_tours=8)
    assert drive.tours == 8 and drive.steps > 60 and not drive.complete
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (threads, descriptors)


@pytest.mark.slow
def test_named_mutants_are_caught_and_the_control_survives() -> None:
    with ThreadPoolExecutor(WORKERS) as pool:
        kills = list(pool.map(cancellation_run.hunt, MUTANTS))
    assert [kill.mutant.name for kill in kills if not kill.as_wanted] == []
    assert {kill.mutant.name for kill in kills if kill.detector is None} == {"control"}
    (stuck,) = (kill for kill in kills if kill.mutant.name == "lock-held-while-killing")
    assert stuck.detector == "gates" and "is blocked" in stuck.message
    assert "python -m conformance cancellation/GraphCancel --variant" in stuck.message


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_apply_to_the_code_as_it_is(mutant: Mutant) -> None:
    mutant.check()


def test_hints_are_about_mutants_and_graphs() -> None:
    assert set(SHOWS_IN) <= {mutant.name for mutant in MUTANTS}
    assert set(SHOWS_IN.values()) <= set(GRAPHS)


def test_the_projection_has_the_variables_of_the_module(graphs: Sequence[Graph]) -> None:
    for graph in graphs:
        assert graph.variables == set(variables(MODULE))


def test_every_state_predicate_of_the_module_is_evaluated_on_the_real_state() -> None:
    stated = {name for name, _ in identifiers(MODULE).values()}
    others = {"TypeOK", "ColdAfterCancel", "CancelledEnds", "CloseEnds", "EveryRequestEnds"}
    assert stated - others == set(INVARIANTS)


def test_every_action_of_the_module_labels_an_edge(graphs: Sequence[Graph]) -> None:
    labelled = {str(label["name"]) for graph in graphs for label in graph.labels.values()}
    assert labelled == {
        "Register", "AcquireIO", "Admit", "Spawn", "Exchange", "Answer", "Settle", "Retire", "Unregister",
        "CancelSolver", "Close", "Signal", "CallOff", "Reply", "Crash", "Expire", "FailSpawn",
    }  # fmt: skip
    assert labelled <= set(definitions(MODULE))


def test_each_variable_takes_two_values(graphs: Sequence[Graph]) -> None:
    for name in variables(MODULE):
        assert any(len({str(state[name]) for state in graph.values}) > 1 for graph in graphs), name


def test_a_projection_without_one_variable_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def project(self: CancellationSystem) -> dict[str, Value]:
        return {name: value for name, value in whole(self).items() if name != "closed"}

    whole = CancellationSystem.project
    monkeypatch.setattr(CancellationSystem, "project", project)
    with cancellation_run.replay("GraphFaults") as replay, pytest.raises(Divergence, match="closed"):
        replay.run(most_tours=5)


def test_one_path_is_repeated_by_its_numbers(graphs: Sequence[Graph]) -> None:
    first = next(n for n, edge in enumerate(graphs[0].edges) if edge.source in graphs[0].initial)
    with protocols.replay("cancellation/GraphCancel") as replay:
        assert replay.path([first]).steps == 1
