"""Cancellation, as everything that holds models to code takes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.cancellation.environment import Helpers
from conformance.cancellation.mutants import MUTANTS, SHOWS_IN
from conformance.cancellation.projection import MODULE
from conformance.cancellation.stress import stress
from conformance.cancellation.system import Bounds, adapter
from conformance.cancellation.trace import check
from conformance.cancellation.walk import walks
from conformance.cancellation.windows import SOLVING, check_recorded
from conformance.contract import Expected, Hunting, Judge, Protocol, Recordings
from conformance.engine.replay import Divergence
from conformance.engine.walk import Walks
from conformance.traces import explain

__all__ = ["PROTOCOL"]

_BOTH: Mapping[str, str] = {"r1": "a", "r2": "b"}
_ONE = frozenset({"r1"})
# What the cfg of the same name in models/cancellation bounds.
GRAPHS: Mapping[str, Bounds] = {
    "GraphCancel": Bounds(_BOTH),
    "GraphSame": Bounds({"r1": "a", "r2": "a"}),
    "GraphClose": Bounds(_BOTH, cancellers=()),
    "GraphFaults": Bounds({"r1": "a"}, racing=_ONE, limited=_ONE),
}


def _recordings(seed: int, _: Walks) -> Iterator[Recordings]:
    runs = [stress(seed + number, asking=3, requests=6, kills=2) for number in range(4)]
    if not all(run.sound for run in runs):
        raise Divergence(f"cancellation: seed {seed}: a request came to no end of its own", "stress")
    if not any(run.kills for run in runs):
        raise Divergence(f"cancellation: seed {seed}: no helper was killed", "stress")
    yield Recordings([run.lines for run in runs], check, explain)


_RECORDED = (
    "Register", "AcquireIO", "Admit", "Spawn", "Exchange", "Answer", "Settle", "Retire", "Unregister",
    "CancelSolver", "Signal", "Close",
)  # fmt: skip
EXPECTED = Expected(
    driven=(6597, 19883, 32307, 0),
    few=(8, 60),
    temporal={"TypeOK", "ColdAfterCancel", "CancelledEnds", "CloseEnds", "EveryRequestEnds"},
    outside={"CallOff", "Reply", "Crash", "Expire", "FailSpawn"},
    floors={
        "Register": 50,
        "Register ClosedError": 5,
        "AcquireIO acquired": 50,
        "AcquireIO busy": 20,
        "AcquireIO left": 10,
        "Admit cold": 20,
        "Admit warm": 2,
        "Admit cancelled": 5,
        "Spawn": 20,
        "Exchange sent": 20,
        "Answer sat": 5,
        "Settle answered": 5,
        "Settle user": 5,
        "Retire": 20,
        "Unregister": 50,
        "CancelSolver": 50,
        "Crash": 5,
        "Close": 5,
    },
    steps=1500,
    recorded=_RECORDED,
    small="GraphFaults",
    seen_by={"lock-held-while-killing": "blocked"},
)

PROTOCOL = Protocol(
    package=__package__,
    module=MODULE,
    code="solve",
    steps=("cancellation", "race"),  # its CallOff is the race's
    graphs=tuple(GRAPHS),
    threads=True,
    shared=lambda _: Helpers(),
    adapt=lambda helpers, graph, patience_s: adapter(helpers, GRAPHS[graph], patience_s),
    walk=walks,
    walking=(60, 50),
    mutants=MUTANTS,
    shows_in=SHOWS_IN,
    # Wherever a fault shows, it shows in one of so many tours of one of the graphs.
    hunting=Hunting(likely=250, others=250),
    expected=EXPECTED,
    recordings=_recordings,
    judge=Judge(SOLVING, check_recorded),
)
