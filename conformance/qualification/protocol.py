"""Qualification, as everything that holds models to code takes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

from conformance.contract import Expected, Hunting, Protocol, Recordings
from conformance.engine.walk import Walks
from conformance.qualification.environment import places
from conformance.qualification.mutants import MUTANTS, SHOWS_IN
from conformance.qualification.sweep import sweep
from conformance.qualification.system import EXTERNAL, MODULE, Bounds, adapter
from conformance.qualification.trace import check, explain
from conformance.qualification.walk import walks

__all__ = ["HOSTS", "PROTOCOL"]

HOSTS = ("hosta", "hostb")  # of fleets that run freely
# What the cfg of the same name in models/qualification bounds; those that take longest first.
GRAPHS: Mapping[str, Bounds] = {
    "GraphStart": Bounds(),
    "GraphRenew": Bounds(renewals=1, alone=True),
    "GraphFaults": Bounds(),
    "GraphOneHost": Bounds(hosts=("hosta", "hosta"), calmly=False),
    "GraphAccounting": Bounds(renewals=2),
    "GraphControl": Bounds(),
    "GraphInputs": Bounds(start_at=7),
}


def _recordings(_: int, __: Walks) -> Iterator[Recordings]:
    with places() as directories:
        runs = list(sweep(directories, HOSTS, renewals=1))
    told = f"{len(runs)} calls struck: {dict(Counter(run.struck for run in runs))}"
    yield Recordings([run.lines for run in runs], partial(check, hosts=HOSTS), explain, told)


EXPECTED = Expected(
    driven=(4414, 8864, 21331, 4139),
    few=(6, 20),
    temporal={"TypeOK", "NeverAgain", "EveryRankEnds", "FailureEndsTheJob"},
    outside=EXTERNAL,
    twice={"Consume", "Exchange", "Observe"},
    floors={
        "Observe Observed": 7,
        "Enter": 75,
        "Exchange Agreed": 62,
        "Exchange Refused": 1,
        "Exchange Expired": 2,
        "Hold Acquired": 1,
        "Contend Blocked": 5,
        "Release": 7,
        "Reacquire Acquired": 2,
        "CloseIdentity Same": 2,
        "CommitTranscript": 2,
        "Contain": 1,
        "Consume EveryMaster": 2,
        "Consume Success": 1,
        "Consume Failure": 3,
        "Consume Refused": 1,
        "Shutdown": 3,
        "Abort Gone": 2,
        "RaiseOrdinary": 1,
        "RaiseControl": 1,
        "Expire": 3,
        "Stray": 3,
        "Turn": 4,
    },
    steps=2000,
    small="GraphInputs",
    silent={"Contain": "GraphOneHost", "Abort": "GraphOneHost", "Shutdown": "GraphAccounting"},
)

PROTOCOL = Protocol(
    package=__package__,
    module=MODULE,
    code="cluster",
    steps=("qualification",),
    graphs=tuple(GRAPHS),
    threads=True,
    shared=lambda _: places(),
    adapt=lambda places, graph, patience_s: adapter(places, GRAPHS[graph], patience_s),
    walk=walks,
    walking=(50, 80),
    mutants=MUTANTS,
    shows_in=SHOWS_IN,
    # A fault that does not show in its graph may show in so many tours of another one.
    hunting=Hunting(likely=None, others=30),
    expected=EXPECTED,
    recordings=_recordings,
)
