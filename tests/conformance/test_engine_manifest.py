"""The manifest pins every run; whatever differs from it, or is not in it, is red."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from conformance.engine.graph import GraphError, load
from conformance.engine.manifest import (
    ManifestError,
    Run,
    check_all,
    check_raised,
    corpus_of,
    digest,
    load_manifest,
    pin,
)
from tests.sampling import WHOLE

MODELS = Path(__file__).parents[2] / "models"
MANIFESTS = sorted(MODELS.glob("*/manifest.toml"))
COUNTER = """---- MODULE Counter ----
EXTENDS Naturals
CONSTANT Top
VARIABLES n, act
Init == n = 0 /\\ act = [name |-> "Init"]
Up == n < Top /\\ n' = n + 1 /\\ act' = [name |-> "Up"]
Next == Up
Spec == Init /\\ [][Next]_<<n, act>>
Low == n < 2
====
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """A graph and a run that must fail, pinned."""
    (tmp_path / "counter").mkdir()
    (tmp_path / "counter" / "Counter.tla").write_text(COUNTER)
    (tmp_path / "counter" / "Graph.cfg").write_text("SPECIFICATION Spec\nCONSTANT Top = 3\n")
    (tmp_path / "counter" / "High.cfg").write_text("SPECIFICATION Spec\nCONSTANT Top = 3\nINVARIANT Low\n")
    path = tmp_path / "manifest.toml"
    run = '[[run]]\ncfg = "counter/{}.cfg"\nmodule = "counter/Counter.tla"\nkind = "{}"\noutcome = "{}"\n'
    graph = run.format("Graph", "graph", "ok")
    high = run.format("High", "non-property", "invariant") + 'violated = "Low"\n'
    path.write_text(graph + high)
    pin(path)
    return path


def differences(manifest: Path) -> list[str]:
    return [text for verdict in check_all(manifest) for text in verdict.differences]


def test_pinned_runs_come_out_again(manifest: Path) -> None:
    assert differences(manifest) == []
    graph, high = load_manifest(manifest)
    assert (graph.states, graph.edges, graph.outcome) == (4, 3, "ok")
    assert (high.outcome, high.violated) == ("invariant", "Low")


def test_a_changed_number_a_changed_bound_and_a_changed_module_differ(manifest: Path) -> None:
    original = manifest.read_text()
    manifest.write_text(original.replace("depth = 4", "depth = 5"))
    assert differences(manifest) == ["depth: pinned 5, found 4"]
    manifest.write_text(original)
    cfg = manifest.parent / "counter" / "Graph.cfg"
    cfg.write_text(cfg.read_text().replace("3", "2"))
    found = differences(manifest)
    assert any(text.startswith("sha256") for text in found) and any(
        text.startswith("distinct") for text in found
    )
    assert "Graph.graph.xz is not the graph that TLC finds" in found


def test_a_property_that_no_longer_fails_differs(manifest: Path) -> None:
    module = manifest.parent / "counter" / "Counter.tla"
    module.write_text(COUNTER.replace("Low == n < 2", "Low == n < 9"))
    assert "outcome: pinned 'invariant', found 'ok'" in differences(manifest)


def test_a_module_that_is_broken_differs(manifest: Path) -> None:
    (manifest.parent / "counter" / "Counter.tla").write_text(COUNTER.replace("n + 1", "n +"))
    assert len(differences(manifest)) == 2


def test_a_cfg_that_is_not_listed_is_refused(manifest: Path) -> None:
    (manifest.parent / "counter" / "New.cfg").write_text("")
    with pytest.raises(ManifestError, match=r"New\.cfg"):
        load_manifest(manifest)


def test_a_listed_cfg_must_exist(manifest: Path) -> None:
    (manifest.parent / "counter" / "High.cfg").unlink()
    with pytest.raises(ManifestError, match=r"High\.cfg"):
        load_manifest(manifest)


def test_a_run_that_must_fail_names_its_property(manifest: Path) -> None:
    manifest.write_text(manifest.read_text().replace('violated = "Low"\n', ""))
    with pytest.raises(ManifestError, match="must name the property"):
        load_manifest(manifest)


def test_an_empty_manifest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.toml").write_text("")
    with pytest.raises(ManifestError, match="no run"):
        load_manifest(tmp_path / "manifest.toml")


def test_a_missing_corpus_and_a_damaged_one_are_seen(manifest: Path) -> None:
    corpus = corpus_of(manifest.parent, load_manifest(manifest)[0])
    whole = corpus.read_bytes()
    corpus.write_bytes(whole[:-8])
    with pytest.raises(GraphError, match="damaged"):
        load(corpus)
    corpus.unlink()
    assert "Graph.graph.xz is missing" in differences(manifest)


def test_every_model_has_a_manifest() -> None:
    assert {path.parent for path in MANIFESTS} == {path.parent for path in MODELS.rglob("*.tla")}


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
def test_every_committed_cfg_is_listed_with_its_digest(path: Path) -> None:
    runs = load_manifest(path)
    assert {run.kind for run in runs} >= {"graph", "safety", "liveness", "legacy", "unfair", "witness"}
    for run in runs:
        assert run.sha256 == digest(path.parent, run), run.cfg


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
def test_every_cfg_says_what_it_shows(path: Path) -> None:
    for run in load_manifest(path):
        assert (path.parent / run.cfg).read_text().startswith("\\* "), run.cfg


def test_a_text_that_is_not_the_pinned_one_differs_also_if_it_is_not_run(manifest: Path) -> None:
    unrun = [verdict.differences for verdict in check_all(manifest, repeats=lambda run: False)]
    assert unrun == [(), ()]
    module = manifest.parent / "counter" / "Counter.tla"
    module.write_text(COUNTER.replace("Low == n < 2", "Low == n < 9"))
    unrun = [verdict.differences for verdict in check_all(manifest, repeats=lambda run: False)]
    assert unrun == [("sha256: the text is not the one that was pinned",)] * 2


@pytest.mark.slow
@pytest.mark.sampled
def test_models_come_out_as_pinned() -> None:
    """The texts of all runs, and the results: of all graphs, and of a quarter of the others in the sample."""

    def repeats(run: Run) -> bool:
        return WHOLE or run.kind == "graph" or int(run.sha256, 16) % 4 == 0

    for verdict in check_all(*MANIFESTS, repeats=repeats):
        assert not verdict.differences, f"{verdict.run.cfg}: {verdict.differences}"


def test_a_raised_bound_gives_more_states_and_must_hold(manifest: Path) -> None:
    low = "SPECIFICATION Spec\nCONSTANT Top = 0\nINVARIANT Low\n"
    (manifest.parent / "counter" / "High.cfg").write_text(low)
    for line, distinct, wrong in (
        ("CONSTANT Top = 1", 1, ()),
        ("CONSTANT Top = 1", 2, ("only 2 states",)),
        ("CONSTANT Top = 2", 1, ("invariant Low",)),
        ("CONSTANT Top = 0", 1, ("counter/High.cfg: raised = 'CONSTANT Top = 0' raises no bound",)),
    ):
        run = '[[run]]\ncfg = "counter/{}.cfg"\nmodule = "counter/Counter.tla"\noutcome = "ok"\n'
        safety = f'kind = "safety"\ndistinct = {distinct}\nraised = "{line}"\n'
        manifest.write_text(run.format("Graph") + 'kind = "graph"\n' + run.format("High") + safety)
        [verdict] = check_raised(manifest)
        assert verdict.differences == wrong


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
def test_the_manifest_is_plain_toml(path: Path) -> None:
    with path.open("rb") as source:
        assert len(tomllib.load(source)["run"]) == len(load_manifest(path))
