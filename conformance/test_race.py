"""The committed graphs of races, driven whole through today's code, and what must not pass."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

import pytest

from conformance import protocols
from conformance.engine.graph import Graph, load
from conformance.engine.module import definitions, identifiers, variables
from conformance.engine.mutants import Mutant
from conformance.race import run as race_run
from conformance.race.invariants import invariants
from conformance.race.mutants import MUTANTS, SHOWS_IN
from conformance.race.run import GRAPHS
from conformance.race.system import MODULE
from conformance.race.walk import walk

WORKERS = os.cpu_count() or 1
FLOORS = {
    "Enter": 30, "Submit": 60, "Register": 60, "Register no helper": 3, "Reply sat": 10, "Reply unsat": 5,
    "Crash": 3, "Settle answered": 30, "Settle user": 3, "Report": 40, "Hear": 40, "CallOff": 20,
    "CancelFuture running": 10, "CancelFuture cancelled": 1, "CancelSolver told": 1, "Leave": 20,
    "Cancel": 10, "Tell": 5, "Shut": 10, "Close": 30, "FreeThread": 5, "Expire": 5, "Delay": 2, "GiveUp": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def graphs() -> Sequence[Graph]:
    return [load(MODULE.with_name(f"{name}.graph.xz")) for name in GRAPHS]


@pytest.mark.slow
def test_every_edge_and_every_refusal() -> None:
    driven = race_run.drive_all(workers=WORKERS)
    assert driven.states == 969 + 1969 + 510 + 1363 + 889
    assert driven.edges == driven.edges_required == 1648 + 3480 + 963 + 2989 + 1756
    assert driven.refusals == driven.refusals_required == 9394 + 26995 + 2786 + 7498 + 4912
    assert driven.excluded == 0
    assert driven.complete


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_few_tours_leave_no_thread_and_no_descriptor(graph: str) -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with race_run.replay(graph) as replay:
        drive = replay.run(most_tours=8)
    assert drive.tours == 8 and drive.steps > 60 and not drive.complete
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (threads, descriptors)


@pytest.mark.slow
def test_named_mutants_are_caught_and_the_control_survives() -> None:
    kills = list(race_run.hunt_all(workers=WORKERS))
    assert [kill.mutant.name for kill in kills if not kill.as_wanted] == []
    assert {kill.mutant.name for kill in kills if kill.detector is None} == {"control"}


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
    others = {"TypeOK", "ReturnedStays", "RaceEnds", "PartsEnd", "CloseEnds"}
    assert stated - others == set(invariants(2))


def test_every_action_of_the_module_labels_an_edge(graphs: Sequence[Graph]) -> None:
    labelled = {str(label["name"]) for graph in graphs for label in graph.labels.values()}
    assert labelled == {
        "Enter", "Submit", "Register", "Settle", "Report", "Tell", "Hear", "CallOff", "CancelFuture",
        "CancelSolver", "Leave", "Cancel", "Shut", "Close", "Reply", "Crash", "FreeThread",
        "Expire", "Delay", "GiveUp",
    }  # fmt: skip
    assert labelled - {"Crash"} <= set(definitions(MODULE))


def test_each_variable_takes_two_values(graphs: Sequence[Graph]) -> None:
    for name in variables(MODULE):
        assert any(len({str(state[name]) for state in graph.values}) > 1 for graph in graphs), name


def test_one_path_is_repeated_by_its_numbers(graphs: Sequence[Graph]) -> None:
    first = next(n for n, edge in enumerate(graphs[0].edges) if edge.source in graphs[0].initial)
    with protocols.replay("race/RaceAnswers") as replay:
        assert replay.path([first]).steps == 1


@pytest.mark.slow
def test_random_walks_of_three_engines_keep_the_invariants() -> None:
    walks = walk(walks=120, steps=60, fresh="CONFORMANCE_SEED" in os.environ)
    assert walks.missing(FLOORS) == []
    assert walks.steps > 2500
