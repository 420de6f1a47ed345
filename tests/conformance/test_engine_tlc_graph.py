"""One small module through TLC, the dump, the canonical graph, the corpus and the tours."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.graph import Edge, Graph, GraphError, from_dot, from_text, load, save, to_text
from conformance.engine.tlc import Outcome, Tlc, TlcError, run_all
from conformance.engine.tours import cover, shortest_path
from conformance.engine.values import parse

LAMP = r"""---- MODULE Lamp ----
EXTENDS Naturals
CONSTANTS Hands
VARIABLES on, worn, act
vars == <<on, worn, act>>
Init == on = FALSE /\ worn = 0 /\ act = [name |-> "Init"]
Press(h) == worn < 2 /\ on' = ~on /\ worn' = worn + 1 /\ act' = [name |-> "Press", h |-> h]
Look(h) == UNCHANGED <<on, worn>> /\ act' = [name |-> "Look", h |-> h]
Fix == on /\ worn' = 0 /\ UNCHANGED on /\ act' = [name |-> "Fix"]
Next == Fix \/ \E h \in Hands : Press(h) \/ Look(h)
Spec == Init /\ [][Next]_vars
Fair == Spec /\ WF_vars(Fix)
Young == worn < 2
Dark == [][on' => on]_vars
Wears == <>(worn = 2)
====
"""
CONSTANTS = "CONSTANTS Hands = {l, r}\n"


@pytest.fixture
def lamp(tmp_path: Path) -> Path:
    (tmp_path / "Lamp.tla").write_text(LAMP)
    return tmp_path / "Lamp.tla"


def cfg(lamp: Path, text: str) -> Path:
    path = lamp.with_name(f"{abs(hash(text))}.cfg")
    path.write_text(CONSTANTS + text)
    return path


def test_counts_depth_and_coverage(lamp: Path) -> None:
    result = Tlc().run(lamp, cfg(lamp, "SPECIFICATION Spec"), coverage=True)
    assert (result.outcome, result.violated, result.exit_code, result.left) == (Outcome.OK, None, 0, 0)
    assert result.distinct > 4 and result.generated > result.distinct and result.depth > 2
    assert result.coverage["Look"][1] > result.coverage["Fix"][1] > 0
    assert not list(lamp.parent.glob("states"))


def test_an_invariant_is_named_with_its_typed_counterexample(lamp: Path) -> None:
    result = Tlc().run(lamp, cfg(lamp, "SPECIFICATION Spec\nINVARIANT Young"))
    assert (result.outcome, result.violated) == (Outcome.INVARIANT, "Young")
    assert [state.values["worn"] for state in result.trace] == [0, 1, 2]
    assert [state.action for state in result.trace] == [None, "Press", "Press"]


def test_an_action_property_and_liveness_fail_differently(lamp: Path) -> None:
    action, live = run_all(
        [
            lambda: Tlc().run(lamp, cfg(lamp, "SPECIFICATION Spec\nPROPERTY Dark")),
            lambda: Tlc().run(lamp, cfg(lamp, "SPECIFICATION Fair\nPROPERTY Wears")),
        ]
    )
    assert not isinstance(action, TlcError) and not isinstance(live, TlcError)
    assert (action.outcome, action.violated) == (Outcome.ACTION_PROPERTY, "Dark")
    assert live.outcome is Outcome.LIVENESS and live.loop is not None


def test_a_module_that_does_not_parse_has_no_verdict(lamp: Path) -> None:
    lamp.write_text(LAMP.replace("worn < 2", "worn <"))
    with pytest.raises(TlcError, match="no verdict"):
        Tlc().run(lamp, cfg(lamp, "SPECIFICATION Spec"))


def test_a_run_that_takes_too_long_is_ended(lamp: Path) -> None:
    with pytest.raises(TlcError, match="longer than"):
        Tlc().run(lamp, cfg(lamp, "SPECIFICATION Spec"), timeout_s=0.05)


def test_another_jar_than_the_pinned_one_must_be_named(lamp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.engine.tlc.JAR_SHA256", "0" * 64)
    with pytest.raises(TlcError, match="pinned"):
        Tlc()
    monkeypatch.setenv("TLA2TOOLS_JAR", str(lamp))
    assert Tlc().jar == lamp


@pytest.fixture
def dump(lamp: Path) -> str:
    path = lamp.with_name("graph.dot")
    Tlc().run(lamp, cfg(lamp, "SPECIFICATION Spec"), dump=path)
    return path.read_text()


def test_self_loops_and_parallel_edges_survive(dump: str) -> None:
    graph = from_dot(dump)
    start = graph.initial[0]
    labels = Counter(edge.label for edge in graph.outgoing[start])
    assert set(labels.values()) == {1} and len(labels) == 4
    assert sum(edge.target == start for edge in graph.outgoing[start]) == 2, "both hands look, twice in a row"
    assert graph.count("Look") == 2 * len(graph.states)


def test_the_corpus_does_not_depend_on_the_numbering_of_tlc(lamp: Path, dump: str) -> None:
    again = lamp.with_name("again.dot")
    Tlc().run(lamp, cfg(lamp, "SPECIFICATION Spec"), dump=again, workers=2)
    assert again.read_text() != dump
    assert to_text(from_dot(again.read_text())) == to_text(from_dot(dump))


def test_the_corpus_comes_back_equal(dump: str, tmp_path: Path) -> None:
    graph = from_dot(dump)
    save(graph, tmp_path / "lamp.graph.xz")
    assert load(tmp_path / "lamp.graph.xz") == graph


def test_a_corpus_without_one_of_its_lines_is_refused(dump: str) -> None:
    lines = to_text(from_dot(dump)).split("\n")
    for index in range(len(lines) - 1):
        with pytest.raises((GraphError, ValueError, IndexError)):
            from_text("\n".join(lines[:index] + lines[index + 1 :]))


def test_a_label_that_influences_behaviour_is_found(lamp: Path) -> None:
    lamp.write_text(LAMP.replace("Fix == on", 'Fix == on /\\ act.name # "Look"'))
    path = lamp.with_name("graph.dot")
    Tlc().run(lamp, cfg(lamp, "SPECIFICATION Spec"), dump=path)
    with pytest.raises(GraphError, match="influence"):
        from_dot(path.read_text())


def test_a_cut_dump_is_refused(dump: str) -> None:
    lines = dump.splitlines()
    node = next(index for index, line in enumerate(lines) if " -> " not in line and "[label=" in line)
    with pytest.raises(GraphError):
        from_dot("\n".join(lines[:node] + lines[node + 1 :]))


@given(st.lists(st.tuples(st.integers(0, 7), st.sampled_from("xyz"), st.integers(0, 7)), min_size=1))
def test_tours_take_every_reachable_edge(arrows: list[tuple[int, str, int]]) -> None:
    reachable = {0}
    for _ in arrows:
        reachable |= {target for source, _, target in arrows if source in reachable}
    edges = tuple(sorted({Edge(s, f'[name |-> "{label}"]', t) for s, label, t in arrows if s in reachable}))
    graph = Graph(tuple(f"/\\ x = {index}" for index in range(8)), (0,), edges)
    driven = set()
    for start, tour in cover(graph):
        assert start == 0 and tour
        for before, after in pairwise(tour):
            assert before.target == after.source
        driven |= set(tour)
    assert driven == set(edges)


def test_an_unreachable_edge_is_an_error() -> None:
    graph = Graph(("/\\ x = 0", "/\\ x = 1"), (0,), (Edge(1, '[name |-> "x"]', 0),))
    with pytest.raises(GraphError, match="cannot be reached"):
        list(cover(graph))


def test_the_shortest_path_is_shortest(dump: str) -> None:
    graph = from_dot(dump)
    path = shortest_path(graph, graph.initial, lambda state: graph.values[state]["worn"] == 2)
    assert path is not None and [parse(edge.label) for edge in path] == [graph.labels[e.label] for e in path]
    assert len(path) == 2
