"""What must turn a run of profile recovery red: whatever is taken away from the code's seam, the projection
or the corpus is missed."""

from __future__ import annotations

import lzma
import re
from pathlib import Path

import pytest

from conformance.engine.gates import Nursery
from conformance.engine.graph import Graph, GraphError, from_text, load, to_text
from conformance.engine.module import variables
from conformance.engine.mutants import Mutant, Substitution
from conformance.engine.replay import Divergence, Replay, State
from conformance.engine.tours import shortest_path
from conformance.engine.values import Function, Value
from conformance.profile_recovery import run as profile_run
from conformance.profile_recovery.run import ENTRY, GRAPHS
from conformance.profile_recovery.system import MODULE, ProfileAdapter, ProfileSystem

ROOT = MODULE.parent.parent.parent
SEAM = (
    "Observe", "Build", "WriteArtifact", "WriteRuntime", "WriteState", "Switch", "Serve",
    "LoadState", "VerifyRuntime", "Replay",
)  # fmt: skip
_COORDINATOR = "smtspool.profile.coordinator"


@pytest.fixture(scope="module")
def graph() -> Graph:
    """A small one in which everything of the seam happens."""
    return load(MODULE.with_name("GraphCountPublications.graph.xz"))


def test_the_seam_has_the_actions_of_the_model_and_no_other(graph: Graph) -> None:
    labels = {str(label["name"]) for label in graph.labels.values()}
    folder = ROOT / "impl" / "smtspool" / "profile"
    written = re.findall(r'\baction\(\s*"(\w+)"', "".join(path.read_text() for path in folder.glob("*.py")))
    assert sorted(written) == sorted(SEAM) == sorted(labels - {"Restart", "Crash"})


@pytest.mark.slow
@pytest.mark.parametrize("name", SEAM)
def test_an_action_less_in_the_seam(name: str) -> None:
    silent = Substitution(
        _COORDINATOR,
        f'action("{name}"',
        f'(lambda *_, **__: __import__("smtspool.actions").actions._Unobserved())("{name}"',
    )
    mutant = Mutant(f"no-{name}", f"{name} is no action", (silent,))
    with profile_run.replay("GraphCountPublications", mutant) as replay, pytest.raises(Divergence):
        replay.run(most_tours=12, longest=80)


@pytest.mark.parametrize("variable", variables(MODULE))
def test_a_variable_less_in_the_projection(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def project(self: ProfileSystem) -> dict[str, Value]:
        return {name: value for name, value in whole(self).items() if name != variable}

    whole = ProfileSystem.project
    monkeypatch.setattr(ProfileSystem, "project", project)
    with (
        profile_run.replay("GraphWindow") as replay,
        pytest.raises((Divergence, KeyError), match=variable) as seen,
    ):
        replay.path([])
    if isinstance(seen.value, Divergence):
        assert "(missing)" in str(seen.value)


def test_a_line_less_in_the_corpus(graph: Graph, tmp_path: Path) -> None:
    lines = to_text(graph).split("\n")
    damaged = tmp_path / "damaged.graph.xz"
    for number in [*range(0, len(lines) - 1, 29), len(lines) - 2]:
        damaged.write_bytes(lzma.compress("\n".join(lines[:number] + lines[number + 1 :]).encode(), preset=0))
        with pytest.raises(GraphError):
            load(damaged)


@pytest.mark.parametrize("name", ["Build", "Serve", "WriteState"])
def test_an_edge_less_in_a_corpus_that_is_whole_otherwise(graph: Graph, name: str) -> None:
    gone = next(edge for edge in graph.edges if graph.labels[edge.label]["name"] == name)
    less = from_text(to_text(Graph(graph.states, graph.initial, tuple(e for e in graph.edges if e != gone))))
    way = shortest_path(less, less.initial, lambda state: state == gone.source)
    assert way is not None
    with Nursery(ENTRY) as nursery, pytest.raises(Divergence) as seen:
        adapter = ProfileAdapter("profile", nursery, GRAPHS["GraphCountPublications"])
        Replay(less, adapter).path([less.edges.index(edge) for edge in way])
    assert seen.value.detector == "gates"


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
        adapter = ProfileAdapter.__new__(ProfileAdapter)
        return Replay(self._graph, adapter).ready(self._state)

    def close(self) -> None:
        pass


def test_an_adapter_that_echoes_the_model_is_seen(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProfileAdapter, "start", lambda _, initial, variant: _Echo(graph, initial))
    with (
        profile_run.replay("GraphCountPublications") as replay,
        pytest.raises(Divergence, match="no participant") as seen,
    ):
        replay.run(most_tours=5)
    assert seen.value.detector == "ledger"
