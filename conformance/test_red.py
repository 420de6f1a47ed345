"""What must turn a run red: whatever is taken away from the code's seam, the projection, the manifest or the
corpus is missed."""

from __future__ import annotations

import lzma
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.contract import Protocol
from conformance.driving import hunt
from conformance.engine.graph import Graph, GraphError, from_text, load, to_text
from conformance.engine.manifest import ManifestError, load_manifest
from conformance.engine.module import variables
from conformance.engine.mutants import Mutant, Substitution
from conformance.engine.replay import Divergence, Replay, State, System
from conformance.engine.tours import shortest_path
from conformance.engine.values import Function, Value
from conformance.protocols import PROTOCOLS
from conformance.seam import actions_of

each = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
SEAM = [
    (protocol, name) for protocol in PROTOCOLS for name in sorted(actions_of(protocol.code, protocol.name))
]
PROJECTED = [(protocol, name) for protocol in PROTOCOLS for name in variables(protocol.module)]
MISSED = [(protocol, name) for protocol in PROTOCOLS for name in protocol.expected.missed]
MODELS = sorted({protocol.module.parent for protocol in PROTOCOLS})


def _id(one: object) -> str:
    return str(getattr(one, "name", one))


def _smallest(protocol: Protocol) -> Graph:
    return min(map(protocol.graph, protocol.graphs), key=lambda graph: len(graph.edges))


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "name"), SEAM, ids=_id)
def test_an_action_less_in_the_seam(protocol: Protocol, name: str) -> None:
    silent = Substitution(
        f"smtspool.{protocol.code}.steps",
        "import Protocol\n",
        "import _UNOBSERVED, Protocol as _Whole\n\n\n"
        "class Protocol(_Whole):\n"
        "    def action(self, name, /, **params):\n"
        f'        if (self.name, name) == ("{protocol.name}", "{name}"):\n'
        "            return _UNOBSERVED\n"
        "        return super().action(name, **params)\n",
    )
    hunting = replace(protocol.hunting, first=protocol.expected.silent.get(name, protocol.expected.small))
    kill = hunt(protocol, Mutant(f"no-{name}", f"{name} is no action", (silent,)), hunting=hunting)
    assert kill.detector is not None


@pytest.mark.parametrize(("protocol", "variable"), PROJECTED, ids=_id)
def test_a_variable_less_in_the_projection(
    protocol: Protocol, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = protocol.expected.small or protocol.graphs[0]
    with protocol.adapter(graph) as adapter:
        whole: Callable[[State, int], System] = adapter.start

        def start(initial: State, variant: int) -> System:
            system = whole(initial, variant)
            project = system.project
            monkeypatch.setattr(
                system, "project", lambda: {n: v for n, v in project().items() if n != variable}
            )
            return system

        monkeypatch.setattr(adapter, "start", start)
        with pytest.raises((Divergence, KeyError), match=variable) as seen:
            Replay(protocol.graph(graph), adapter, protocol.name).path([])
    if isinstance(seen.value, Divergence):
        assert "(missing)" in str(seen.value)


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.name)
def test_a_cfg_less_in_the_manifest(model: Path, tmp_path: Path) -> None:
    copy = tmp_path / model.name
    shutil.copytree(model, copy)
    manifest = copy / "manifest.toml"
    head, *runs = manifest.read_text().split("[[run]]")
    for number, run in enumerate(runs):
        manifest.write_text("[[run]]".join([head, *runs[:number], *runs[number + 1 :]]))
        with pytest.raises(ManifestError, match=re.escape(run.split('"')[1])):
            load_manifest(manifest)


@each
def test_a_line_less_in_the_corpus(protocol: Protocol, tmp_path: Path) -> None:
    lines = to_text(_smallest(protocol)).split("\n")
    damaged = tmp_path / "damaged.graph.xz"
    for number in [*range(0, len(lines) - 1, max(1, len(lines) // 60)), len(lines) - 2]:
        damaged.write_bytes(lzma.compress("\n".join(lines[:number] + lines[number + 1 :]).encode(), preset=0))
        with pytest.raises(GraphError):
            load(damaged)


@pytest.mark.parametrize(("protocol", "name"), MISSED, ids=_id)
def test_an_edge_less_in_a_corpus_that_is_whole_otherwise(protocol: Protocol, name: str) -> None:
    where = protocol.expected.missed[name]
    graph = protocol.graph(where)
    gone = next(
        edge
        for edge in graph.edges
        if graph.labels[edge.label]["name"] == name and edge.source not in graph.initial
    )
    less = from_text(to_text(Graph(graph.states, graph.initial, tuple(e for e in graph.edges if e != gone))))
    way = shortest_path(less, less.initial, lambda state: state == gone.source)
    assert way is not None
    with protocol.adapter(where) as adapter, pytest.raises(Divergence) as seen:
        Replay(less, adapter, protocol.name).path([less.edges.index(edge) for edge in way])
    assert seen.value.detector in ("gates", "refusal")


class _Echo:
    """A system that is not there: it answers with what the model expects."""

    def __init__(self, graph: Graph, ready: Callable[[int], frozenset[str]], initial: State) -> None:
        self._graph = graph
        self._ready = ready
        self._state = graph.values.index(initial)

    def perform(self, label: Function) -> None:
        for edge in self._graph.outgoing[self._state]:
            if self._graph.labels[edge.label] == label:
                self._state = edge.target

    def project(self) -> dict[str, Value]:
        return dict(self._graph.values[self._state])

    def standing(self) -> frozenset[str]:
        return self._ready(self._state)

    def close(self) -> None:
        pass


@each
def test_an_adapter_that_echoes_the_model_is_seen(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = protocol.graph(protocol.graphs[0])
    with protocol.adapter(protocol.graphs[0]) as adapter:
        replay = Replay(graph, adapter, protocol.name)
        monkeypatch.setattr(adapter, "start", lambda initial, variant: _Echo(graph, replay.ready, initial))
        with pytest.raises(Divergence, match="no participant") as seen:
            replay.run(most_tours=5)
    assert seen.value.detector == "ledger"
