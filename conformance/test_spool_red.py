"""What must turn a run red: whatever is taken away from the code's seam, the projection, the manifest or the
corpus is missed."""

from __future__ import annotations

import lzma
import re
import shutil
from pathlib import Path

import pytest

from conformance import protocols
from conformance.engine.gates import Nursery
from conformance.engine.graph import Graph, GraphError, from_text, load, to_text
from conformance.engine.manifest import ManifestError, load_manifest
from conformance.engine.module import variables
from conformance.engine.mutants import Mutant, Substitution
from conformance.engine.replay import Divergence, Replay
from conformance.engine.tours import shortest_path
from conformance.engine.values import Value
from conformance.spool_admission.system import MODULE, SpoolAdapter, SpoolSystem

MODELS = MODULE.parent.parent
SEAM = {
    "TryLock": "smtspool.spool.spool",
    "List": "smtspool.spool.spool",
    "Release": "smtspool.spool.spool",
    "Open": "smtspool.spool.admission",
    "Verify": "smtspool.spool.admission",
    "Commit": "smtspool.spool.admission",
    "WriteSidecar": "smtspool.spool.admission",
    "Move": "smtspool.spool.admission",
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load(protocols.CORPUS)


def test_the_seam_has_the_actions_of_the_model_and_no_other(graph: Graph) -> None:
    labels = {str(label["name"]) for label in graph.labels.values()}
    outside = {"Publish", "Replace", "Crash", "FailStore", "FailMove"}
    folder = MODELS.parent / "impl" / "smtspool" / "spool"
    written = re.findall(r'\baction\(\s*"(\w+)"', "".join(path.read_text() for path in folder.glob("*.py")))
    assert sorted(written) == sorted(labels - outside) == sorted(SEAM)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEAM)
def test_an_action_less_in_the_seam(name: str) -> None:
    silent = Substitution(
        SEAM[name],
        f'action("{name}", ',
        f'__import__("smtspool.actions").actions._Unobserved() if True else action("{name}", ',
    )
    kill = protocols.hunt("spool", Mutant(f"no-{name}", f"{name} is no action", (silent,)))
    assert kill.detector is not None


@pytest.mark.parametrize("variable", variables(MODULE))
def test_a_variable_less_in_the_projection(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Without(SpoolSystem):
        def project(self) -> dict[str, Value]:
            return {name: value for name, value in super().project().items() if name != variable}

    monkeypatch.setattr("conformance.spool_admission.system.SpoolSystem", Without)
    with (
        protocols.replay("spool") as replay,
        pytest.raises((Divergence, KeyError), match=variable) as seen,
    ):
        replay.path([])
    if isinstance(seen.value, Divergence):
        assert "(missing)" in str(seen.value)


def test_a_cfg_less_in_the_manifest(tmp_path: Path) -> None:
    model = tmp_path / "spool_admission"
    shutil.copytree(MODELS / "spool_admission", model)
    manifest = model / "manifest.toml"
    head, *runs = manifest.read_text().split("[[run]]")
    for number, run in enumerate(runs):
        manifest.write_text("[[run]]".join([head, *runs[:number], *runs[number + 1 :]]))
        with pytest.raises(ManifestError, match=re.escape(run.split('"')[1])):
            load_manifest(manifest)


def test_a_line_less_in_the_corpus(graph: Graph, tmp_path: Path) -> None:
    lines = to_text(graph).split("\n")
    damaged = tmp_path / "damaged.graph.xz"
    for number in [*range(0, len(lines) - 1, 97), len(lines) - 2]:
        damaged.write_bytes(lzma.compress("\n".join(lines[:number] + lines[number + 1 :]).encode(), preset=0))
        with pytest.raises(GraphError):
            load(damaged)


@pytest.mark.parametrize("name", ["Open", "Crash", "Publish"])
def test_an_edge_less_in_a_corpus_that_is_whole_otherwise(graph: Graph, name: str) -> None:
    gone = next(
        edge
        for edge in graph.edges
        if graph.labels[edge.label]["name"] == name and edge.source not in graph.initial
    )
    less = from_text(to_text(Graph(graph.states, graph.initial, tuple(e for e in graph.edges if e != gone))))
    way = shortest_path(less, less.initial, lambda state: state == gone.source)
    assert way is not None
    with Nursery(protocols.ENTRY) as nursery, pytest.raises(Divergence) as seen:
        Replay(less, SpoolAdapter(nursery)).path([less.edges.index(edge) for edge in way])
    assert seen.value.detector in ("gates", "refusal")
