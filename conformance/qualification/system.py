"""Qualification: ``models/qualification`` driven through real masters.

Ranks are threads, each with a real ``Master`` over a network within this process, a real directory and real
locks. Nothing waits for time: a rank sleeps in its pause until a message, a leap of its clock or an exception
comes. What the model calls the environment is done here: exceptions in every step and wait, damaged and old
messages, files that fail, strangers with the lock.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from conformance.adapters import GraphAdapter
from conformance.engine.gates import At, Idle, Passed
from conformance.engine.module import variables
from conformance.engine.replay import Divergence, State, gate_of
from conformance.engine.stage import Moving
from conformance.engine.values import Function, Value
from conformance.qualification.disturbances import Disturbances
from conformance.qualification.environment import Places
from conformance.qualification.faults import check_result
from conformance.qualification.invariants import INVARIANTS
from conformance.qualification.projection import MODULE, Projection
from conformance.qualification.ranks import Ranks
from conformance.seam import Seam
from conformance.states import each
from smtspool.actions import observed_by
from smtspool.cluster import QualificationResult

__all__ = ["EXTERNAL", "INVARIANTS", "MODULE", "Bounds", "QualificationSystem", "adapter"]

VARIABLES = variables(MODULE)

# Where every other rank is when an exception may hit one, in the graphs that are bounded so.
_CALM = frozenset({"observe", "wait", "leaving", "work", "unwound"})


class QualificationSystem(Ranks):
    """One fleet."""

    def __init__(
        self,
        places: Places,
        hosts: tuple[str, ...],
        *,
        shared: bool = True,
        given: Mapping[int, str] | None = None,
        start_at: int = 0,
        working: bool = False,
        variant: int = 0,
        patience_s: float = 10.0,
    ) -> None:
        super().__init__(
            places,
            hosts,
            shared=shared,
            given=given,
            start_at=start_at,
            variant=variant,
            patience_s=patience_s,
        )
        self._closing = ExitStack()
        self.projection = Projection(self, len(set(hosts)))
        self.disturb = Disturbances(self, self.projection, self.go_on)
        self._closing.enter_context(observed_by(Seam("qualification", self.stage)))
        self.stage.free = working
        for rank in self.ranks:
            self.stage.enter(str(rank))
        for rank in self.ranks:
            self._begin(rank)
        if working:
            self.stage.come_to_rest("startup")
            self.stage.free = False
            self.network.unanswered.clear()
            for rank, master in enumerate(self.masters):
                assert master.result is not None
                self.results[rank] = master.result
                self._check_transcript(master.result)
                self.sworn[rank] = start_at + 1

    def _begin(self, rank: int) -> None:
        """Call ``start``; when everybody runs freely, without waiting for where it comes to."""
        player = self.stage.players[str(rank)]
        if self.stage.free and rank < len(self.ranks) - 1:
            with self.stage._changed:
                player.call, player.position = self.masters[rank].start, Moving()
                self.stage._changed.notify_all()
        else:
            self.stage.call(str(rank), self.masters[rank].start)

    def close(self) -> None:
        """End all threads. Raises :class:`Divergence` when one of them has left a descriptor or a lock file,
        unless something else is on its way up."""
        with self._closing:
            try:
                self.stage.close_all()
            finally:
                if self.stranger is not None:
                    os.close(self.stranger)
        left = self.places.descriptors()
        files = self.places.leaves()
        self.places.clear()
        if (left or files) and sys.exc_info()[0] is None:
            raise Divergence(f"left behind: {left + [str(path) for path in files]}", "left")

    # steps

    def perform(self, label: Function) -> None:
        """Take the step ``label`` for real."""
        name, by = str(label["name"]), label.get("by", 0)
        assert isinstance(by, int)
        if name == "RaiseOrdinary":
            sent = label["sent"]
            assert isinstance(sent, int)
            self.disturb.raise_ordinary(by, sent)
        elif name in self.disturb.steps:
            self.disturb.steps[name](by)
        else:
            self._take(label, name, by)

    def _take(self, label: Function, name: str, by: int) -> None:
        outcome = str(label.get("outcome", ""))
        if name == "Observe" and outcome == "Failed":
            self.disturb.refuse_inputs(by)
        if outcome == "Accounting":
            self.disturb.refuse_books(by)
        passed = self.advance(by)
        if passed.name != name:
            raise Divergence(f"rank {by} took {passed.name} where the model takes {label}")
        went = "Gone" if passed.error == "FileNotFoundError" else passed.outcome
        if went != label.get("outcome") and not (went == "Gone" and outcome == "Changed"):
            raise Divergence(f"{name} of rank {by} went {went} where the model takes {label}")
        if passed.error not in (None, "Gone") and outcome not in ("Gone", "Changed"):
            raise Divergence(f"{name} of rank {by} raised {passed.error}")

    def advance(self, rank: int) -> Passed:
        """Let a rank take the step at whose gate it stands."""
        passed = self.stage.release(str(rank))
        self.armed.pop(rank, None)
        self._note(rank, passed)
        self.go_on()
        return passed

    def _note(self, rank: int, passed: Passed) -> None:
        if passed.name == "Exchange" and rank == 0:
            self.network.unanswered.clear()
        elif passed.name == "Observe":
            self.struck.pop(rank, None)
        elif passed.name == "Enter" and passed.params["phase"] == "commit":
            if self.projection.record_of(rank) == "good":
                self.sworn[rank] = self.projection.bears(rank) + 1
        elif passed.name == "Abort":
            for other in self.ranks:
                if other != rank:
                    self.stage.end(str(other))

    def go_on(self) -> None:
        """What a service does: it shuts down a master that must. And what came out of a run is looked at."""
        for rank in self.ranks:
            player = self.stage.players[str(rank)]
            if self.network.code or rank in self.unwound:
                continue
            if self.at(rank) == "Consume":
                self._look_at(rank)
            if isinstance(player.position, Idle):
                if player.raised is not None:
                    raise Divergence(f"rank {rank} raised {player.raised!r}", "escaped")
                if self.masters[rank].fatal is not None:
                    self.stage.call(str(rank), partial(self.masters[rank].shutdown, lambda: None))

    def _look_at(self, rank: int) -> None:
        result = self.masters[rank].view().latest
        assert result is not None
        if result is not self.results.get(rank):
            self.results[rank] = result
            struck = self.struck.get(rank)
            check_result(result, struck if isinstance(struck, Exception) else None)
            if result.verified:
                self._check_transcript(result)

    def _check_transcript(self, result: QualificationResult) -> None:
        """One generation has one transcript, which no other one has."""
        known = self.transcripts.setdefault(result.generation, result.proof.transcript)
        if known != result.proof.transcript or list(self.transcripts.values()).count(known) > 1:
            raise Divergence(f"the transcript of generation {result.generation} is {known}", "result")

    # projection

    def project(self) -> dict[str, Value]:
        """The real state as values of the module's variables."""
        return self.projection.project(VARIABLES)

    def standing(self) -> frozenset[str]:
        """The gates where ranks stand."""
        return frozenset(
            gate_of(Function(_gate(rank, player.position)))
            for rank, player in ((rank, self.stage.players[str(rank)]) for rank in self.ranks)
            if isinstance(player.position, At)
        )


def _gate(rank: int, at: At) -> dict[Value, Value]:
    kept = () if at.name == "Contain" else ("phase", "round", "at", "code")
    if at.params["rank"] != rank:
        raise Divergence(f"rank {rank} stands at {at}", "gates")
    return {"name": at.name, "by": rank, **{key: at.params[key] for key in kept if key in at.params}}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a graph bounds. An exception hits a rank only while the others wait if ``calmly``; a deadline
    passes only where nobody waits to be asked for a renewal if ``alone``."""

    hosts: tuple[str, ...] = ("hosta", "hostb")
    start_at: int = 0
    renewals: int = 0
    calmly: bool = True
    alone: bool = False


EXTERNAL = frozenset(
    {"Turn", "RaiseOrdinary", "RaiseControl", "Expire", "Stray", "Garble", "FailFile", "Intrude", "Swap"}
)


def adapter(places: Places, bounds: Bounds, patience_s: float) -> GraphAdapter:
    """The bounded model's ranks, as threads."""
    last = bounds.start_at + bounds.renewals

    def at_the_bound(label: Function, state: State) -> bool:
        return label["by"] == 0 and each(state, "pc")[0] == "work" and each(state, "generation")[0] == last

    def stormy(label: Function, state: State) -> bool:
        others = {at for rank, at in each(state, "pc").items() if rank != label["by"]}
        return bounds.calmly and not others <= set(_CALM)

    def in_company(label: Function, state: State) -> bool:
        return bounds.alone and each(state, "pc")[label["by"]] == "wait"

    def start(initial: State, variant: int) -> QualificationSystem:
        return QualificationSystem(
            places,
            bounds.hosts,
            shared=initial["shared"] is True,
            given={int(str(rank)): str(kind) for rank, kind in each(initial, "given").items()},
            start_at=bounds.start_at,
            working=each(initial, "pc")[0] == "work",
            variant=variant,
            patience_s=patience_s,
        )

    return GraphAdapter(
        invariants=INVARIANTS,
        external=EXTERNAL,
        kills=frozenset(),
        # What the bounds of the graph leave out, and the code would do.
        excluded={
            "Turn": at_the_bound,
            "RaiseOrdinary": stormy,
            "RaiseControl": stormy,
            "Expire": in_company,
        },
        start=start,
    )
