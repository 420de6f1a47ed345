"""The exchange: before a deadline every rank gets the records of all ranks, or the reason why it cannot.

Each rank sends its record to rank 0, which sends all of them to every rank: 2(M-1) messages and no collective
call. In the first exchange of an attempt each rank waits for the others by its own clock. The first answer of
rank 0 then announces one deadline for everything that follows. As in every protocol over a network, a rank
may miss the last answer that the others have received. It fails alone then, and its abort ends the fleet.

Waiting is polling: MPI implementations spin inside their blocking calls, which would take CPU time from the
solvers if there are more ranks than cores. Between two polls without news lies one ``pause``, growing to 5
ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .communicator import FROM_ROOT, TO_ROOT, Communicator, OversizeMessage, Sending
from .diagnostics import TEXT_LIMIT, Code, Diagnostic, Position, Stage, describe
from .frames import FRAME_LIMIT, MAX_MASTERS, Malformed, Place, decode, encode
from .inputs import Time
from .steps import action

__all__ = ["MAX_TIMEOUT", "Exchange", "ExchangeFailed", "ExchangeView", "Record"]

RECORD_SCHEMA = "smtspool-cluster-record-v1"
ANSWER_SCHEMA = "smtspool-cluster-answer-v1"
RECORD_KEYS = frozenset({"phase", "round", "rank", "record"})
ANSWER_KEYS = frozenset({"phase", "round", "seconds", "error", "records"})

MAX_TIMEOUT = 3600.0
FIRST_PAUSE = 50e-6
LONGEST_PAUSE = 5e-3

# The record of a rank in one phase: "ok", "error", and the facts of that phase.
Record = Mapping[str, Any]


class ExchangeFailed(Exception):
    """This phase failed; ``diagnostic`` has the reason."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.text)
        self.diagnostic = diagnostic


@dataclass(frozen=True, slots=True)
class ExchangeView:
    """The position of a rank in its exchanges. ``phase`` is None between two of them."""

    phase: Stage | None = None
    round: int = 0
    own: Record | None = None  # what this rank says, as soon as it has done its part of the phase
    agreed: bool | None = None  # what it has heard from all: whether nobody reported a failure
    failed: Diagnostic | None = None  # why it has not


class Exchange:
    """The exchanges of one attempt on one rank, in order. For one thread; no message is sent twice.

    ``at`` is updated with each phase. ``stale`` counts dropped messages of earlier attempts.
    """

    def __init__(
        self,
        comm: Communicator,
        at: Position,
        *,
        epoch: str,
        attempt: int,
        timeout: float,
        time: Time,
    ) -> None:
        self._comm = comm
        self._at = at
        self.epoch = epoch
        self._attempt = attempt
        self._timeout = timeout
        self._time = time
        self.deadline = time.clock() + timeout
        self.rank = at.rank = comm.Get_rank()
        self.size = comm.Get_size()
        self.stale = 0
        self._number = -1
        self._view = ExchangeView()  # replaced whole, so that other threads may look
        self._sendings: list[Sending] = []
        if not (type(self.rank) is type(self.size) is int and 0 <= self.rank < self.size <= MAX_MASTERS):
            raise self.failure(
                Code.MALFORMED, f"rank {self.rank!r} of {self.size!r} is no member of a communicator"
            )

    def failure(self, code: Code, text: str) -> ExchangeFailed:
        """The error of this phase."""
        return ExchangeFailed(self._at.diagnose(code, text))

    def attempt(self, stage: Stage, work: Callable[[], Record]) -> Record:
        """The result of ``work()`` as the record of the phase ``stage``, for :meth:`gather`.

        For work that is a protocol step of its own. If it raises ``OSError``, the record reports a failure.
        """
        self._at.stage = stage
        try:
            record: Record = {"ok": True, "error": "", **work()}
        except OSError as error:
            record = {"ok": False, "error": describe(error)}
        self._view = replace(self._view, own=record)
        return record

    def view(self) -> ExchangeView:
        """The position of this rank; from any thread."""
        return self._view

    def gather(
        self, stage: Stage, own: Callable[[], Record], *, facts: frozenset[str] = frozenset(), round: int = 0
    ) -> list[Record]:
        """The records of all ranks in rank order, none of which reports a failure.

        ``own()`` does this rank's part of the phase and returns its ``facts``. If it raises ``OSError``, this
        rank's record reports a failure, which all ranks receive.

        :raises ExchangeFailed: on every rank: a rank failed, is missing, or sent something else
        """
        self._number += 1
        names = {"phase": stage.value, "round": round}
        with action("Enter", rank=self.rank, **names):
            record = self.attempt(stage, own)
            self._view = ExchangeView(stage, round, record)
            if self.rank:
                self._send([0], TO_ROOT, RECORD_SCHEMA, {**names, "rank": self.rank, "record": record})
        try:
            return self._follow(names, facts) if self.rank else self._lead(names, facts, record)
        finally:
            self._view = ExchangeView()

    def flush(self) -> None:
        """Wait until all messages of this rank have been sent; ExchangeFailed if that takes too long."""

        def all_sent() -> bool:
            self._sendings = [sending for sending in self._sendings if not sending.Test()]
            return not self._sendings

        self._wait_until(all_sent, lambda: f"{len(self._sendings)} messages did not leave")

    # -- rank 0 -----------------------------------------------------------------------------------------

    def _lead(self, names: dict[str, Any], facts: frozenset[str], own: Record) -> list[Record]:
        records = {0: own}
        try:
            self._collect(names, facts, records)
            failed: ExchangeFailed | None = None
            self._view = replace(self._view, agreed=_all_ok(records.values()))
        except ExchangeFailed as error:
            failed = error
            self._view = replace(self._view, failed=error.diagnostic)
        with action("Exchange", rank=0, **names) as step:
            if self._number == 0:
                self.deadline = self._time.clock() + self._timeout
            answer = {
                **names,
                "seconds": max(0.0, self.deadline - self._time.clock()),
                "error": "" if failed is None else failed.diagnostic.text,
                "records": [] if failed else [records[rank] for rank in range(self.size)],
            }
            self._send(range(1, self.size), FROM_ROOT, ANSWER_SCHEMA, answer)
            step.outcome = _outcome(failed, records.values())
        if failed is not None:
            raise failed
        return self._agreed([records[rank] for rank in range(self.size)])

    def _collect(self, names: dict[str, Any], facts: frozenset[str], records: dict[int, Record]) -> None:
        def all_there() -> bool:
            for peer in range(1, self.size):
                if peer not in records:
                    message = self._receive(peer, TO_ROOT, RECORD_SCHEMA, RECORD_KEYS, names)
                    if message is not None:
                        if message["rank"] != peer:
                            raise self.failure(Code.MALFORMED, f"rank {peer} sent the record of another")
                        records[peer] = self._checked(message["record"], facts, peer)
            return len(records) == self.size

        def missing() -> str:
            ranks = [str(rank) for rank in range(self.size) if rank not in records]
            return f"no record from rank {', '.join(ranks)}"

        self._wait_until(all_there, missing)

    # -- the other ranks --------------------------------------------------------------------------------

    def _follow(self, names: dict[str, Any], facts: frozenset[str]) -> list[Record]:
        answers: list[dict[str, Any]] = []

        def answered() -> bool:
            message = self._receive(0, FROM_ROOT, ANSWER_SCHEMA, ANSWER_KEYS, names)
            if message is not None:
                answers.append(message)
            return bool(answers)

        records: list[Record] = []
        failed: ExchangeFailed | None = None
        try:
            self._wait_until(answered, lambda: "no answer from rank 0")
            records_said = answers[0]["records"]
            self._view = replace(self._view, agreed=not answers[0]["error"] and _all_ok(records_said))
        except ExchangeFailed as error:
            failed = error
            self._view = replace(self._view, failed=error.diagnostic)
        with action("Exchange", rank=self.rank, **names) as step:
            if failed is None:
                try:
                    records = self._taken(answers[0], facts)
                except ExchangeFailed as error:
                    failed = error
            step.outcome = _outcome(failed, records)
        if failed is not None:
            raise failed
        return self._agreed(records)

    def _taken(self, answer: dict[str, Any], facts: frozenset[str]) -> list[Record]:
        error, seconds, records = answer["error"], answer["seconds"], answer["records"]
        if type(error) is not str or len(error) > TEXT_LIMIT:
            raise self.failure(Code.MALFORMED, "rank 0 sent an answer without a text")
        if error:
            raise self.failure(Code.REFUSED, error)
        if type(records) is not list or len(records) != self.size:
            raise self.failure(Code.MALFORMED, "rank 0 sent an answer without the records of all")
        if self._number == 0:
            if type(seconds) is not float or not 0 <= seconds <= MAX_TIMEOUT:
                raise self.failure(Code.MALFORMED, f"rank 0 announced no deadline but {seconds!r}")
            self.deadline = self._time.clock() + seconds
        return [self._checked(record, facts, rank) for rank, record in enumerate(records)]

    # -- both -------------------------------------------------------------------------------------------

    def _checked(self, record: Any, facts: frozenset[str], rank: int) -> Record:
        if type(record) is not dict or record.keys() - facts != {"ok", "error"}:
            raise self.failure(Code.MALFORMED, f"the record of rank {rank} has other members")
        ok, error = record["ok"], record["error"]
        if type(ok) is not bool or type(error) is not str or len(error) > TEXT_LIMIT or ok == bool(error):
            raise self.failure(Code.MALFORMED, f"the record of rank {rank} says neither ok nor why not")
        if ok and record.keys() - {"ok", "error"} != facts:
            raise self.failure(Code.MALFORMED, f"the record of rank {rank} is not complete")
        return record

    def _agreed(self, records: list[Record]) -> list[Record]:
        for rank, record in enumerate(records):
            if not record["ok"]:
                raise self.failure(Code.REFUSED, f"rank {rank}: {record['error']}")
        return records

    def _send(self, to: Iterable[int], tag: int, schema: str, members: dict[str, Any]) -> None:
        frame = encode(schema, self.epoch, self._place(), members)
        for dest in to:
            self._sendings.append(self._comm.isend(frame, dest, tag))

    def _receive(
        self, source: int, tag: int, schema: str, keys: frozenset[str], names: dict[str, Any]
    ) -> dict[str, Any] | None:
        """The message of this exchange from ``source``, if it has arrived; older ones are dropped."""
        while True:
            try:
                frame = self._comm.receive(source, tag, FRAME_LIMIT)
                if frame is None:
                    return None
                epoch, place, message = decode(frame, schema, keys)
            except (Malformed, OversizeMessage) as error:
                raise self.failure(Code.MALFORMED, f"rank {source} sent {describe(error)}") from None
            if epoch != self.epoch or place < self._place():
                self.stale += 1
                continue
            if place > self._place() or any(message[name] != names[name] for name in names):
                raise self.failure(
                    Code.MALFORMED,
                    f"rank {source} is at {message['phase']!r} of generation {place.generation}, "
                    f"attempt {place.attempt}; this rank is at {names['phase']!r} of {self._at.generation}, "
                    f"{self._attempt}",
                )
            return message

    def _place(self) -> Place:
        return Place(self._at.generation, self._attempt, self._number)

    def _wait_until(self, done: Callable[[], bool], what: Callable[[], str]) -> None:
        """Poll ``done`` until it holds; at least once, even after the deadline."""
        delay = FIRST_PAUSE
        while not done():
            left = self.deadline - self._time.clock()
            if left <= 0:
                raise self.failure(Code.EXPIRED, f"{what()} within the time allowed{self._dropped()}")
            self._time.pause(min(delay, left))
            delay = min(2 * delay, LONGEST_PAUSE)

    def _dropped(self) -> str:
        return f" ({self.stale} stale messages dropped)" if self.stale else ""


def _all_ok(records: Any) -> bool:
    """Whether no record reports a failure; they may be anything that was received."""
    return isinstance(records, Iterable) and all(
        isinstance(record, Mapping) and record.get("ok") is True for record in records
    )


def _outcome(failed: ExchangeFailed | None, records: Any) -> str:
    if failed is not None:
        return "Expired" if failed.diagnostic.code is Code.EXPIRED else "Refused"
    return "Agreed" if all(record["ok"] for record in records) else "Refused"
