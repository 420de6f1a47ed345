"""Races, as everything that holds models to code takes it."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.cancellation.environment import Helpers
from conformance.contract import Expected, Hunting, Protocol, Say
from conformance.race.mutants import MUTANTS, SHOWS_IN
from conformance.race.projection import MODULE
from conformance.race.stress import stress
from conformance.race.system import SHARED, Bounds, adapter
from conformance.race.walk import walks

__all__ = ["PROTOCOL"]

# What the cfg of the same name in models/cancellation bounds.
GRAPHS: Mapping[str, Bounds] = {
    "RaceAnswers": Bounds(),
    "RaceHedged": Bounds(hedged=True),
    "RaceCancel": Bounds(cpus=1),
    "RaceQueue": Bounds(checked=False, busy=2, queue=True),
    "RaceClose": Bounds(cpus=1),
}


def _stress(seed: int, runs: int, say: Say) -> object:
    return stress(seed, races=runs, say=say)


EXPECTED = Expected(
    driven=(5700, 10836, 51585, 0),
    few=(8, 60),
    temporal={"TypeOK", "ReturnedStays", "RaceEnds", "PartsEnd", "CloseEnds"},
    outside={"Cancel", "Reply", "Crash", "FreeThread", "Expire", "Delay", "GiveUp"},
    shared=SHARED,
    twice={"Hear"},
    undefined={"Crash"},
    floors={
        "Enter": 30,
        "Submit": 60,
        "Register": 60,
        "Register no helper": 3,
        "Reply sat": 10,
        "Reply unsat": 5,
        "Crash": 3,
        "Settle answered": 30,
        "Settle user": 3,
        "Report": 40,
        "Hear": 40,
        "CallOff": 20,
        "CancelFuture running": 10,
        "CancelFuture cancelled": 1,
        "CancelSolver told": 1,
        "Leave": 20,
        "Cancel": 10,
        "Tell": 5,
        "Shut": 10,
        "Close": 30,
        "FreeThread": 5,
        "Expire": 5,
        "Delay": 2,
        "GiveUp": 1,
    },
    steps=2500,
    silent={"Tell": "RaceCancel", "Shut": "RaceClose"},
)

PROTOCOL = Protocol(
    package=__package__,
    module=MODULE,
    code="solve",
    steps=("cancellation", "race"),  # of a solver's: those that a race waits for
    graphs=tuple(GRAPHS),
    threads=True,
    shared=lambda _: Helpers(),
    adapt=lambda helpers, graph, patience_s: adapter(helpers, GRAPHS[graph], patience_s),
    walk=walks,
    walking=(120, 60),
    mutants=MUTANTS,
    shows_in=SHOWS_IN,
    # Wherever a fault shows, it shows in so many tours of the graph that is about it, or of the others.
    hunting=Hunting(likely=300, others=30),
    expected=EXPECTED,
    stress=_stress,
)
