"""A protocol is added by its model, its steps, one folder and one row, and is gone without them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from conformance import protocols
from conformance.contract import Protocol
from conformance.driving import drive_all, hunt, repeat_walk, walk
from conformance.engine.graph import Edge, Graph, save
from conformance.engine.mutants import Mutant, Substitution
from conformance.engine.values import Function, show, show_state

# Its model, and the graph of it that TLC would write: a lamp is on or off.
MODEL = "---- MODULE Lamp ----\nVARIABLE lit\nOn == ~lit /\\ lit' = TRUE\nOff == lit /\\ lit' = FALSE\n====\n"
GRAPH = Graph(
    (show_state({"lit": False}), show_state({"lit": True})),
    (0,),
    (Edge(0, show(Function({"name": "On"})), 1), Edge(1, show(Function({"name": "Off"})), 0)),
)
# The code, with its steps.
CODE = """
from smtspool.actions import Protocol

action = Protocol("lamp").action


class Lamp:
    lit = False

    def switch(self):
        with action("Off" if self.lit else "On"):
            self.lit = not self.lit
"""
# The adapter, in its folder; it walks, too.
SYSTEM = """
from conformance.engine.replay import gate_of
from conformance.engine.stage import Stage
from conformance.engine.values import Function
from conformance.seam import Seam
from lampcode import Lamp
from smtspool.actions import observed_by


class System:
    def __init__(self):
        self.lamp, self.stage, self.over = Lamp(), Stage(lambda player: False), False
        self.observing = observed_by(Seam("lamp", self.stage))
        self.observing.__enter__()
        self.stage.enter("hand")
        self.stage.call("hand", self.live)

    def live(self):
        while not self.over:
            self.lamp.switch()

    def moves(self):
        return {Function({"name": self.stage.players["hand"].position.name}): 1}

    def standing(self):
        return frozenset(map(gate_of, self.moves()))

    def perform(self, label):
        self.stage.release("hand")

    def take(self, move):
        self.perform(move)
        return ""

    def project(self):
        return {"lit": self.lamp.lit}

    def close(self):
        self.over = True
        self.stage.close(lambda: None)
        self.observing.__exit__(None, None, None)


class Adapter:
    external = kills = frozenset()
    excluded, recordings = {}, ()
    invariants = {"Lit": lambda state: state["lit"] in (True, False)}

    def start(self, initial, variant):
        return System()

    def begin(self, variant):
        return System()

    def shape(self, state):
        return state["lit"]
"""
# What the folder exports.
PROTOCOL = """
from contextlib import nullcontext
from pathlib import Path

from conformance.contract import Expected, Hunting, Protocol
from conformance.engine.mutants import Mutant
from lamp.system import Adapter

PROTOCOL = Protocol(
    package=__package__,
    module=Path(__file__).parents[1] / "Lamp.tla",
    code="lamp",
    steps=("lamp",),
    graphs=("Graph",),
    threads=True,
    shared=nullcontext,
    adapt=lambda mutant, graph, patience_s: Adapter(),
    walk=lambda mutant: Adapter(),
    walking=(3, 5),
    mutants=(),
    hunting=Hunting(likely=None, others=None),
    expected=Expected(driven=(2, 2, 2, 0), few=(1, 1), temporal=(), outside=(), floors={}, steps=1),
)
"""


@pytest.fixture
def lamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Protocol]:
    """The protocol, added as README.md says."""
    (tmp_path / "Lamp.tla").write_text(MODEL)
    save(GRAPH, tmp_path / "Graph.graph.xz")
    (tmp_path / "lampcode.py").write_text(CODE)
    (tmp_path / "lamp").mkdir()
    for name, text in (("__init__", ""), ("system", SYSTEM), ("protocol", PROTOCOL)):
        (tmp_path / "lamp" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    protocol: Protocol = import_module("lamp.protocol").PROTOCOL
    monkeypatch.setattr(protocols, "PROTOCOLS", [*protocols.PROTOCOLS, protocol])
    yield protocol
    for name in ("lamp", "lamp.system", "lamp.protocol", "lampcode"):
        sys.modules.pop(name, None)


def test_a_protocol_that_is_added_is_driven_walked_and_hunted(lamp: Protocol) -> None:
    assert protocols.named("lamp/Graph") == (lamp, "Graph")
    driven = drive_all(lamp)
    assert (driven.states, driven.edges, driven.refusals, driven.excluded) == lamp.expected.driven
    assert driven.complete
    walks = walk(lamp)
    assert set(walks.counts) == {"On", "Off"} and walks.missing({"On": 3, "Off": 3}) == []
    repeat_walk(lamp, 0, show((Function({"name": "On"}), Function({"name": "Off"}))))
    stuck = Substitution("lampcode", "self.lit = not self.lit", "self.lit = True")
    kill = hunt(lamp, Mutant("stuck", "it cannot be switched off", (stuck,)))
    assert kill.detector == "edge" and "python -m conformance lamp/Graph --variant" in kill.message


def test_it_is_gone_without_its_row() -> None:
    with pytest.raises(LookupError, match="lamp is no protocol"):
        protocols.named("lamp")
