"""The committed graphs of every protocol, driven whole through today's code."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from functools import cache

import pytest

from conformance.__main__ import main
from conformance.contract import Protocol
from conformance.driving import WORKERS, drive_all
from conformance.engine.graph import Graph
from conformance.engine.module import definitions, identifiers, variables
from conformance.protocols import PROTOCOLS
from conformance.seam import actions_of

each = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
GRAPHS = [(protocol, graph) for protocol in PROTOCOLS for graph in protocol.graphs]


@cache
def graphs_of(name: str) -> Sequence[Graph]:
    [protocol] = [protocol for protocol in PROTOCOLS if protocol.name == name]
    return [protocol.graph(graph) for graph in protocol.graphs]


def labelled(protocol: Protocol) -> set[str]:
    return {str(label["name"]) for graph in graphs_of(protocol.name) for label in graph.labels.values()}


@pytest.mark.slow
@each
def test_every_edge_and_every_refusal(protocol: Protocol) -> None:
    driven = drive_all(protocol)
    states, edges, refusals, left_out = protocol.expected.driven
    assert driven.states == sum(len(graph.states) for graph in graphs_of(protocol.name)) == states
    assert driven.edges == driven.edges_required == edges
    assert edges == sum(len(graph.edges) for graph in graphs_of(protocol.name))
    assert driven.refusals == driven.refusals_required == refusals
    assert driven.excluded == left_out
    assert driven.complete


@pytest.mark.slow
def test_one_graph_is_driven_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """One whose participants are threads: of such systems a process has one at a time."""
    assert main(["race/RaceClose"]) == 0
    [graph] = [protocol.graph("RaceClose") for protocol in PROTOCOLS if protocol.name == "race"]
    assert f"RaceClose: {len(graph.edges)} edges" in capsys.readouterr().out


@pytest.mark.parametrize(("protocol", "graph"), GRAPHS, ids=lambda one: getattr(one, "name", one))
def test_a_few_tours_leave_no_thread_and_no_descriptor(protocol: Protocol, graph: str) -> None:
    few, steps = protocol.expected.few
    longest = protocol.hunting.longest
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with protocol.replay(graph) as replay:
        drive = replay.run(workers=1 if protocol.threads else WORKERS, most_tours=few, longest=longest)
    assert drive.tours == few and drive.steps > steps and not drive.complete
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (threads, descriptors)


@each
def test_one_path_is_repeated_by_its_numbers(protocol: Protocol) -> None:
    graph = graphs_of(protocol.name)[0]
    first = next(number for number, edge in enumerate(graph.edges) if edge.source in graph.initial)
    with protocol.replay(protocol.graphs[0]) as replay:
        assert replay.path([first]).steps == 1


@each
def test_the_projection_has_the_variables_of_the_module(protocol: Protocol) -> None:
    for graph in graphs_of(protocol.name):
        assert graph.variables == set(variables(protocol.module))


@each
def test_each_variable_takes_two_values(protocol: Protocol) -> None:
    for name in variables(protocol.module):
        graphs = graphs_of(protocol.name)
        assert len({str(state[name]) for graph in graphs for state in graph.values}) > 1, name


@each
def test_every_state_predicate_of_the_module_is_evaluated_on_the_real_state(protocol: Protocol) -> None:
    stated = {name for name, _ in identifiers(protocol.module).values()}
    for graph in protocol.graphs:
        with protocol.adapter(graph) as adapter:
            assert set(adapter.invariants) == stated - set(protocol.expected.temporal)


@each
def test_the_seam_has_the_actions_of_the_model_and_no_other(protocol: Protocol) -> None:
    expected, written = protocol.expected, actions_of(protocol.code, protocol.name)
    assert {*written, *expected.shared} == labelled(protocol) - set(expected.outside)
    assert set(expected.outside) <= labelled(protocol)
    assert {name for name, places in written.items() if len(places) == 2} == set(expected.twice)
    assert all(len(places) <= 2 for places in written.values())


@each
def test_every_label_is_an_operator_of_the_module(protocol: Protocol) -> None:
    assert labelled(protocol) - set(definitions(protocol.module)) == set(protocol.expected.undefined)
