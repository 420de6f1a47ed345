"""Qualification: the masters of a fleet prove to each other that a directory's locks hold between them.

The phases are epoch, membership, litmus, transcript and commit. :func:`qualify` is total (F355): for every
ordinary exception the caller gets a well-formed result, and acts on it.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from .capability import Capability
from .communicator import Communicator
from .diagnostics import Code, Diagnostic, Position, Stage, contained, one_line
from .exchange import MAX_TIMEOUT, Exchange, ExchangeFailed, Record
from .inputs import DEFAULT_TIMEOUT, REAL_TIME, STARTUP, QualificationAttempt, Time
from .litmus import Litmus
from .lockfiles import LockFiles
from .observation import Observation, is_boot_id
from .proof import (
    Member,
    Proof,
    exact_generation,
    is_processor,
    is_token,
    representatives_of,
    require_complete,
    transcript_of,
)
from .result import QualificationResult, contained_failure
from .steps import action

__all__ = ["qualify"]

SHORTEST_TIMEOUT = 0.001
# The epoch of messages before one is agreed, and of ranks whose epoch is invalid.
_NO_EPOCH = "0" * 64


def qualify(
    comm: Communicator,
    root: Path,
    seen: Observation,
    attempt: QualificationAttempt = STARTUP,
    *,
    time: Time = REAL_TIME,
    files: LockFiles | None = None,
    began: Callable[[Exchange], object] = lambda exchange: None,
) -> QualificationResult:
    """Prove that an ``flock`` under ``root`` is respected between the hosts of ``comm``. All ranks call it.

    Total over ``Exception``: any failure gives a result that is not clean. ``KeyboardInterrupt``,
    ``SystemExit`` and their like propagate. In any case no descriptor and no lock of the attempt is left.

    :param seen: the result of :func:`observe_inputs` for ``root`` and this host; a rank with an error in it
        takes part in the first exchange to report it
    :param began: gets the exchange of this attempt, to look at while it lasts
    """
    at = Position(Stage.EPOCH, exact_generation(attempt.generation) or 0)
    return contained(
        "cluster lock qualification raised",
        at,
        lambda: _qualify(comm, root, seen, attempt, time, files or LockFiles(), at, began),
        lambda diagnostic: contained_failure(diagnostic, seen.capability, attempt.generation),
    )


def _qualify(
    comm: Communicator,
    root: Path,
    seen: Observation,
    attempt: QualificationAttempt,
    time: Time,
    files: LockFiles,
    at: Position,
    began: Callable[[Exchange], object],
) -> QualificationResult:
    started = time.clock()
    unusable = _unusable(root, seen, attempt)
    exchange = Exchange(
        comm,
        at,
        epoch=attempt.epoch if attempt.epoch is not None and is_token(attempt.epoch) else _NO_EPOCH,
        attempt=attempt.number,
        timeout=_clamped(attempt.timeout),
        time=time,
    )
    began(exchange)
    usable = seen.capability.unproved() if type(seen.capability) is Capability else None
    proof = Proof()

    def ended(
        diagnostic: Diagnostic | None, kept: Capability | None, *, verified: bool = False
    ) -> QualificationResult:
        return QualificationResult(
            clean=diagnostic is None,
            verified=verified,
            capability=kept,
            proof=proof,
            generation=at.generation,
            epoch=exchange.epoch,
            rank=exchange.rank,
            elapsed=time.clock() - started,
            stale=exchange.stale,
            diagnostic=diagnostic,
        )

    try:
        if attempt.epoch is None:
            exchange.epoch = _agreed_epoch(exchange)
        members = _met(exchange, seen, unusable)
        proof = Proof(members, representatives_of(members))
        if len(proof.representatives) < 2:
            return ended(None, usable)
        assert usable is not None  # else the first exchange has failed
        numbers = attempt.generation.to_bytes(8) + attempt.number.to_bytes(8)
        token = bytes.fromhex(exchange.epoch) + numbers
        with Litmus(exchange, proof, root, usable, token, files) as litmus:
            try:
                litmus.run()
            finally:
                proof = litmus.proof
        transcript = _sworn(exchange, proof, attempt.generation)
        # The last step: the other ranks may have verified by now, so nothing after it may fail on this rank.
        with action("CommitTranscript", rank=exchange.rank):
            proof = replace(proof, transcript=transcript)
            require_complete(proof)
            return ended(None, replace(usable, proof=proof), verified=True)
    except ExchangeFailed as error:
        return ended(error.diagnostic, usable)


def _unusable(root: Path, seen: Observation, attempt: QualificationAttempt) -> str:
    """Why this rank cannot take part in a proof, or "". It sends that, so that all ranks report it.

    Values may have any type, since they come from the caller and from the machine.
    """
    if type(seen.error) is not str:
        return "the local error is no text"
    if seen.error:
        return seen.error
    if exact_generation(attempt.generation) is None:
        return "the generation is no whole number of 63 bits"
    if attempt.epoch is not None and not is_token(attempt.epoch):
        return "the epoch is not 64 hexadecimal digits"
    if not is_processor(seen.processor):
        return "the name of this host is empty or unusable"
    if not is_boot_id(seen.boot):
        return "the boot id of this machine is unusable"
    capability = seen.capability
    if type(capability) is not Capability:
        return "the shared directory was not probed"
    if not capability.complete:
        return "the probe did not try everything that a shared directory needs"
    if capability.root != str(root.absolute()):
        return f"the probe was of {capability.root}, not of {root}"
    return ""


def _agreed_epoch(exchange: Exchange) -> str:
    """A fresh epoch: the proposal of rank 0."""
    proposals = exchange.gather(
        Stage.EPOCH, lambda: {"epoch": secrets.token_hex(32)}, facts=frozenset({"epoch"})
    )
    epoch = proposals[0]["epoch"]
    if not is_token(epoch):
        raise exchange.failure(Code.MALFORMED, "rank 0 proposed no epoch")
    return str(epoch)


def _met(exchange: Exchange, seen: Observation, unusable: str) -> tuple[Member, ...]:
    """All ranks and their hosts, if all can take part and no two machines have one name.

    Two machines with one name would count as one host, and might open one store, which only one host may.
    """

    def own() -> Record:
        if unusable:
            return {"ok": False, "error": one_line(unusable) or "it cannot say why"}
        return {"processor": seen.processor, "boot": seen.boot}

    records = exchange.gather(Stage.MEMBERSHIP, own, facts=frozenset({"processor", "boot"}))
    members = tuple(Member(rank, record["processor"]) for rank, record in enumerate(records))
    first: dict[str, tuple[int, str]] = {}  # host name: the first rank with a boot id, and that id
    for (rank, name), record in zip(members, records, strict=True):
        if not is_processor(name):
            raise exchange.failure(Code.MALFORMED, f"rank {rank} has no valid host name")
        if not is_boot_id(record["boot"]):
            raise exchange.failure(Code.MALFORMED, f"rank {rank} has no valid boot id")
        if record["boot"]:
            twin, known = first.setdefault(name, (rank, record["boot"]))
            if known != record["boot"]:
                raise exchange.failure(
                    Code.REFUSED,
                    f"rank {twin} and rank {rank} are on two machines with one name '{name}': "
                    "give each host its own name",
                )
    return members


def _sworn(exchange: Exchange, proof: Proof, generation: int) -> str:
    """The transcript, after all ranks have confirmed that all computed the same one.

    There are two exchanges. In the first each rank sends its transcript; in the second it confirms that it
    got M equal ones, and it is verified when it has all M confirmations. A rank that misses the last answer
    fails alone, and ends the fleet.
    """
    mine = transcript_of(exchange.epoch, generation, proof)
    records = exchange.gather(Stage.TRANSCRIPT, lambda: {"transcript": mine}, facts=frozenset({"transcript"}))
    differing = [str(rank) for rank, record in enumerate(records) if record["transcript"] != mine]
    complaint = f"another transcript on rank {', '.join(differing)}"
    exchange.gather(Stage.COMMIT, lambda: {"ok": False, "error": complaint} if differing else {})
    exchange.flush()
    return mine


def _clamped(timeout: float) -> float:
    if type(timeout) not in (int, float) or not math.isfinite(timeout):
        return DEFAULT_TIMEOUT
    return min(max(float(timeout), SHORTEST_TIMEOUT), MAX_TIMEOUT)
