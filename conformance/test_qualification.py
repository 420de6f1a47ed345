"""The committed graphs of qualification, driven whole through today's code, and what must not pass."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance import protocols
from conformance.engine.graph import Graph, load
from conformance.engine.module import definitions, identifiers, variables
from conformance.engine.mutants import Mutant, Substitution
from conformance.engine.replay import Divergence
from conformance.engine.values import Function, Value
from conformance.qualification import run as qualification_run
from conformance.qualification.disturbances import FILE_CALL
from conformance.qualification.mutants import MUTANTS, SHOWS_IN
from conformance.qualification.projection import PC_OF_GATE, PHASE_OF_ACT
from conformance.qualification.run import GRAPHS
from conformance.qualification.system import INVARIANTS, MODULE, QualificationSystem

WORKERS = os.cpu_count() or 1
CODE = MODULE.parent.parent.parent / "impl" / "smtspool" / "cluster"
OUTSIDE = {
    "Turn", "RaiseOrdinary", "RaiseControl", "Expire", "Stray", "Garble", "FailFile", "Intrude", "Swap",
}  # fmt: skip
# The actions of the seam, and where each is taken.
SEAM = {
    "Observe": "master", "Consume": "master", "Shutdown": "master", "Abort": "master",
    "Contain": "diagnostics", "Enter": "exchange", "Exchange": "exchange", "Hold": "litmus",
    "Contend": "litmus", "Release": "litmus", "Reacquire": "litmus", "CloseIdentity": "litmus",
    "CommitTranscript": "qualification",
}  # fmt: skip


@pytest.fixture(scope="module")
def graphs() -> Sequence[Graph]:
    return [load(MODULE.with_name(f"{name}.graph.xz")) for name in GRAPHS]


@pytest.mark.slow
def test_every_edge_and_every_refusal(graphs: Sequence[Graph]) -> None:
    driven = qualification_run.drive_all(workers=WORKERS)
    assert driven.states == sum(len(graph.states) for graph in graphs)
    assert driven.edges == driven.edges_required == sum(len(graph.edges) for graph in graphs)
    assert driven.refusals == driven.refusals_required > 20_000
    assert driven.complete


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_few_tours_leave_no_thread_and_no_descriptor(graph: str) -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with qualification_run.replay(graph) as replay:
        drive = replay.run(most_tours=6)
    assert drive.tours == 6 and drive.steps > 20 and not drive.complete
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (threads, descriptors)


@pytest.mark.slow
def test_named_mutants_are_caught_and_the_control_survives() -> None:
    with ThreadPoolExecutor(WORKERS) as pool:
        kills = list(pool.map(qualification_run.hunt, MUTANTS))
    assert [kill.mutant.name for kill in kills if not kill.as_wanted] == []
    assert {kill.mutant.name for kill in kills if kill.detector is None} == {"control"}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_apply_to_the_code_as_it_is(mutant: Mutant) -> None:
    mutant.check()


def test_hints_are_about_mutants_and_graphs() -> None:
    assert set(SHOWS_IN) == {mutant.name for mutant in MUTANTS}
    assert set(SHOWS_IN.values()) <= set(GRAPHS)


def test_the_projection_has_the_variables_of_the_module(graphs: Sequence[Graph]) -> None:
    for graph in graphs:
        assert graph.variables == set(variables(MODULE))


def test_every_state_predicate_of_the_module_is_evaluated_on_the_real_state() -> None:
    stated = {name for name, _ in identifiers(MODULE).values()}
    assert stated - {"TypeOK", "NeverAgain", "EveryRankEnds", "FailureEndsTheJob"} == set(INVARIANTS)


def test_the_seam_has_the_actions_of_the_model_and_no_other(graphs: Sequence[Graph]) -> None:
    labelled = {str(label["name"]) for graph in graphs for label in graph.labels.values()}
    written = set(
        re.findall(r'\baction\(\s*"(\w+)"', "".join(path.read_text() for path in CODE.glob("*.py")))
    )
    assert written == labelled - OUTSIDE == set(SEAM) == {*PC_OF_GATE, *PHASE_OF_ACT, "Contain"}
    assert labelled - written == OUTSIDE
    assert labelled <= set(definitions(MODULE))


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


def test_each_variable_takes_two_values(graphs: Sequence[Graph]) -> None:
    for name in variables(MODULE):
        values = {str(state[name]) for graph in graphs for state in graph.values}
        assert len(values) > 1, name


@pytest.mark.slow
@pytest.mark.parametrize("name", SEAM)
def test_an_action_less_in_the_seam(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Substitution(
        f"smtspool.cluster.{SEAM[name]}",
        "from .steps import action\n",
        "import smtspool.actions as _seam\nfrom .steps import action as _action\n\n\n"
        "def action(name, **params):\n"
        f'    return _seam._UNOBSERVED if name == "{name}" else _action(name, **params)\n',
    )
    graph = {"Contain": "GraphOneHost", "Abort": "GraphOneHost", "Shutdown": "GraphAccounting"}
    monkeypatch.setitem(SHOWS_IN, f"no-{name}", graph.get(name, "GraphInputs"))
    kill = qualification_run.hunt(Mutant(f"no-{name}", f"{name} is no action", (silent,)))
    assert kill.detector is not None


@pytest.mark.parametrize("variable", variables(MODULE))
def test_a_variable_less_in_the_projection(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def project(self: QualificationSystem) -> dict[str, Value]:
        return {name: value for name, value in whole(self).items() if name != variable}

    whole = QualificationSystem.project
    monkeypatch.setattr(QualificationSystem, "project", project)
    with (
        qualification_run.replay("GraphInputs") as replay,
        pytest.raises((Divergence, KeyError), match=variable),
    ):
        replay.path([])


def test_one_path_is_repeated_by_its_numbers(graphs: Sequence[Graph]) -> None:
    first = next(n for n, edge in enumerate(graphs[0].edges) if edge.source in graphs[0].initial)
    with protocols.replay("qualification/GraphStart") as replay:
        assert replay.path([first]).steps == 1
