"""The real state of a fleet as the variables of ``models/qualification``.

What a rank has found so far its master shows: its own record, what it has heard, what it could not observe.
Descriptors and locks are asked of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from conformance.engine.gates import At, Idle
from conformance.engine.replay import Divergence
from conformance.engine.values import Value, function
from conformance.qualification.environment import document_of
from conformance.qualification.ranks import Ranks
from smtspool.cluster import (
    FLEET,
    FROM_ROOT,
    Code,
    ExchangeView,
    QualificationResult,
    Stage,
)

__all__ = ["MODULE", "Projection"]

MODULE = Path(__file__).parents[2] / "models" / "qualification" / "Qualification.tla"
NONE = "none"
PC_OF_GATE = {
    "Observe": "observe",
    "Enter": "enter",
    "Exchange": "exchange",
    "CommitTranscript": "commit",
    "Consume": "consume",
    "Shutdown": "shutdown",
    "Abort": "abort",
}
PHASE_OF_ACT = {
    "Hold": "held",
    "Contend": "excluded",
    "Release": "released",
    "Reacquire": "reacquired",
    "CloseIdentity": "identity",
}
_OPENING = ("epoch", "membership", "root", "prepare", "anchor")
_ROUND = ("open", "held", "excluded", "released", "reacquired")
_CLOSING = ("identity", "transcript", "commit", "configuration")


def line(rounds: int) -> dict[tuple[str, int], int]:
    """The phases, numbered in their order."""
    litmus = [(phase, number) for number in range(rounds) for phase in _ROUND]
    every = [*((phase, 0) for phase in _OPENING), *litmus, *((phase, 0) for phase in _CLOSING)]
    return {phase: number for number, phase in enumerate(every, 1)}


class Projection:
    """Looks at one system. Nobody may move meanwhile."""

    def __init__(self, system: Ranks, hosts: int) -> None:
        self._of = system
        self._line = line(hosts if hosts > 1 else 0)

    def project(self, variables: Iterable[str]) -> dict[str, Value]:
        """Every variable."""
        self._pcs = {rank: self._pc(rank) for rank in self._of.ranks}
        return {name: getattr(self, f"_project_{name}")() for name in variables}

    # where a rank is

    def exchange(self, rank: int) -> ExchangeView:
        """Where it stands in its exchanges."""
        return self._of.masters[rank].view().exchange

    def pc(self, rank: int) -> str:
        """The step that a rank takes next."""
        return self._pc(rank)

    def _pc(self, rank: int) -> str:
        of = self._of
        position = of.stage.players[str(rank)].position
        if rank in of.unwound:
            return "unwound"
        if of.network.code:
            return "gone"
        if isinstance(position, Idle):
            return "work"
        if isinstance(position, At):
            if position.name == "Contain":
                return (
                    "fall" if position.params["stage"] in (Stage.CONFIGURATION, Stage.REQUEST) else "contain"
                )
            return PC_OF_GATE.get(position.name, "act")
        return "leaving" if of.masters[rank].view().waits_for_others else "wait"

    def _stage(self, rank: int) -> int:
        position = self._of.stage.players[str(rank)].position
        pc = self._pcs[rank]
        if pc == "act" and isinstance(position, At):
            return self._line[PHASE_OF_ACT[position.name], position.params.get("round", 0)]
        if pc in ("enter", "exchange") and isinstance(position, At):
            return self._line[position.params["phase"], position.params["round"]]
        if pc == "wait":
            exchange = self.exchange(rank)
            if exchange.phase is None:
                raise Divergence(f"rank {rank} waits outside of every exchange")
            return self._line[exchange.phase, exchange.round]
        if pc == "fall" and isinstance(position, At) and position.params["stage"] == Stage.CONFIGURATION:
            return self._line["configuration", 0]
        return self._line["commit", 0] if pc == "commit" else 0

    def all_in(self, phase: str) -> bool:
        """Whether every rank is in this phase."""
        self._pcs = {rank: self._pc(rank) for rank in self._of.ranks}
        return all(self._stage(rank) == self._line[phase, 0] for rank in self._of.ranks)

    def renews(self, rank: int) -> bool:
        """Whether it has a generation in flight."""
        controller = self._of.masters[rank].controller
        return controller is not None and controller.ledger.in_flight != 0

    def bears(self, rank: int) -> int:
        """The generation of its run."""
        controller = self._of.masters[rank].controller
        return controller.ledger.in_flight if controller and self.renews(rank) else self._of.start_at

    def _deaf(self, rank: int) -> bool:
        pc = self._pcs[rank]
        if pc == "consume":
            return not self._of.results[rank].verified
        return pc in ("contain", "fall", "shutdown", "leaving", "abort", "gone", "unwound")

    # what it has found and heard

    def record_of(self, rank: int) -> str:
        """Its own record, once it has entered its phase."""
        if rank == 0:
            exchange = self.exchange(0)
            return NONE if exchange.phase is None or exchange.own is None else _good(exchange.own)
        frame = self._of.network.unanswered.get(rank)
        try:
            return NONE if frame is None else _good(_record_in(frame, rank))
        except ValueError:
            return "garbled"

    def _record(self, rank: int) -> str:
        if self._deaf(0) or (rank == 0 and self._pcs[0] not in ("wait", "exchange")):
            return NONE
        return self.record_of(rank)

    def _heard(self, rank: int) -> str:
        if self._pcs[rank] != "exchange":
            return NONE
        exchange = self.exchange(rank)
        if exchange.failed is not None:
            return "Expired" if exchange.failed.code is Code.EXPIRED else "Refused"
        if exchange.agreed is None:
            raise Divergence(f"rank {rank} has heard nothing, and goes on")
        return "Agreed" if exchange.agreed else "Refused"

    def _reply(self, rank: int) -> str:
        waiting = self._of.network.waiting(0, rank, FROM_ROOT)
        if self._deaf(rank) or not waiting:
            return NONE
        return "good" if _agrees(document_of(waiting[-1])) else "bad"

    def _sound(self, rank: int) -> bool:
        pc, at = self._pcs[rank], self._stage(rank)
        membership = self._line["membership", 0]
        if pc in ("enter", "wait", "exchange") and (
            0 < at < membership or (pc == "enter" and at == membership)
        ):
            observed = self._of.masters[rank].view().observed
            if observed is None:
                raise Divergence(f"rank {rank} meets the others and has observed nothing")
            return observed.error == ""
        if pc == "enter":
            own = self.exchange(rank).own  # of a step that it took ahead of the exchange
            return own is None or bool(own["ok"])
        return True

    def _fatal(self, rank: int) -> str:
        fatal = self._of.masters[rank].fatal
        if fatal is None:
            return NONE
        if fatal.stage is Stage.COMPLETION and fatal.code is Code.RAISED:
            return "accounting"
        if fatal.stage is Stage.CONFIGURATION:
            return "configuration"
        if fatal.stage is Stage.REQUEST:
            return "fleet" if fatal.code is Code.RAISED else "told"
        return "proof"

    def leaf(self) -> str:
        """The lock file."""
        leaves, made = self._of.places.leaves(), self._of.files[0].made
        if not leaves or made is None:
            return NONE
        return "real" if leaves[0].stat().st_ino == made[1] else "other"

    # the variables

    def _each(self, of: Callable[[int], Value], ranks: Iterable[int] | None = None) -> Value:
        return function({rank: of(rank) for rank in (self._of.ranks if ranks is None else ranks)})

    def _ledger(self, rank: int, name: str) -> int:
        controller = self._of.masters[rank].controller
        return int(getattr(controller.ledger, name)) if controller is not None else 0

    def _project_pc(self) -> Value:
        return self._each(lambda rank: self._pcs[rank])

    def _project_stage(self) -> Value:
        return self._each(self._stage)

    def _project_heard(self) -> Value:
        return self._each(self._heard)

    def _project_sound(self) -> Value:
        return self._each(self._sound)

    def _project_record(self) -> Value:
        return self._each(self._record)

    def _project_reply(self) -> Value:
        return self._each(self._reply, self._of.ranks[1:])

    def _project_asked(self) -> Value:
        def asked(rank: int) -> bool:
            notices = [document_of(frame)["notice"] for frame in self._of.network.waiting(0, rank, FLEET)]
            return "renew" in notices and not self._deaf(rank)

        return frozenset(rank for rank in self._of.ranks[1:] if asked(rank))

    def _project_stops(self) -> Value:
        others = len(self._of.ranks) - 1
        return frozenset(rank for rank, told in self._of.network.told.items() if len(told) == others)

    def _project_kept(self) -> Value:
        return self._each(lambda rank: sum(1 for _ in self._of.files[rank].open_now()))

    def _project_locks(self) -> Value:
        return frozenset(rank for rank in self._of.ranks if self._of.files[rank].locks_now())

    def _project_leaf(self) -> Value:
        return self.leaf()

    def _project_outside(self) -> Value:
        return self._of.stranger is not None

    def _project_shared(self) -> Value:
        return self._of.shared

    def _project_given(self) -> Value:
        return self._each(lambda rank: self._of.given[rank])

    def _kind(self, rank: int) -> str:
        result = self._of.results.get(rank)
        if result is None:
            return NONE
        if result.clean:
            return "verified" if result.verified else "unproven"
        assert result.diagnostic is not None
        return "contained" if result.diagnostic.code is Code.RAISED else "failed"

    def _result(self, rank: int, of: Callable[[QualificationResult], int]) -> int:
        result = self._of.results.get(rank)
        return of(result) if result is not None else 0

    def _project_result(self) -> Value:
        return self._each(self._kind)

    def _project_proof(self) -> Value:
        return self._each(lambda rank: self._result(rank, lambda result: result.proof.rounds))

    def _project_stamp(self) -> Value:
        return self._each(lambda rank: self._result(rank, lambda result: result.generation))

    def _project_sworn(self) -> Value:
        return self._each(lambda rank: self._of.sworn[rank])

    def _project_generation(self) -> Value:
        known = self._of.masters
        return self._each(
            lambda rank: self._ledger(rank, "generation") if known[rank].controller else self._of.start_at
        )

    def _project_flight(self) -> Value:
        return self._each(lambda rank: self._ledger(rank, "in_flight"))

    def _project_attempts(self) -> Value:
        return self._each(lambda rank: self._ledger(rank, "attempts"))

    def _project_successes(self) -> Value:
        return self._each(lambda rank: self._ledger(rank, "successes"))

    def _project_failures(self) -> Value:
        return self._each(lambda rank: self._ledger(rank, "failures"))

    def _admits(self, rank: int) -> bool:
        return self._pcs[rank] not in ("gone", "unwound") and self._of.masters[rank].view().admits

    def _project_admits(self) -> Value:
        return frozenset(rank for rank in self._of.ranks if self._admits(rank))

    def _project_fatal(self) -> Value:
        return self._each(self._fatal)

    def _project_met(self) -> Value:
        def met(rank: int) -> str:
            error = self._of.struck.get(rank)
            return NONE if error is None else "ordinary" if isinstance(error, Exception) else "control"

        return self._each(met)

    def _project_code(self) -> Value:
        return self._of.network.code


def _good(record: Mapping[str, Any]) -> str:
    return "good" if record["ok"] else "bad"


def _agrees(answer: Mapping[str, Any]) -> bool:
    return not answer["error"] and all(record["ok"] for record in answer["records"])


def _record_in(frame: bytes, rank: int) -> Mapping[str, Any]:
    document = document_of(frame)
    record: Mapping[str, Any] = document["record"]
    if document["rank"] != rank or type(record["ok"]) is not bool or "extra" in record:
        raise ValueError("a damaged record")
    return record
