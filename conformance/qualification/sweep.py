"""Fleets that run freely, each with one exception at one call: of the communicator, the clock, the file
layer or an input, of each rank, in turn until there is no such call any more.

Ranks are threads that nobody holds. Time passes only when every rank sleeps: then it leaps past every
deadline, and past the interval of renewals. What was done is recorded, to be checked against the model.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from conformance.engine.replay import Divergence
from conformance.engine.trace import Recorded
from conformance.qualification.environment import Gone, Places
from conformance.qualification.faults import check_result, control, ordinary
from conformance.qualification.fleet import Fleet
from conformance.seam import Recorder
from smtspool.actions import observed_by
from smtspool.cluster import Master

__all__ = ["CALLS", "FreeRun", "Strike", "sweep"]

CALLS = (
    "Get_rank", "Get_size", "isend", "receive", "Test", "clock", "pause", "probe", "processor_name",
    "heartbeat",
    "open_root", "file_system", "create", "open", "content", "node", "try_lock", "release", "remove",
)  # fmt: skip
_LEAP_S = 100.0
_PATIENCE_S = 20.0
_IDLE_TURNS = 6
_CLEARING = ("release", "remove")  # what a rank that is ended here still does; a process just stops


@dataclass(slots=True)
class Strike:
    """An exception at the ``count``-th call of its name that a rank makes."""

    rank: int
    call: str
    count: int
    error: BaseException
    hit: bool = False

    def __str__(self) -> str:
        return f"{type(self.error).__name__} at {self.call} {self.count} of rank {self.rank}"


@dataclass
class FreeRun:
    """One fleet from its startup to its end, with ``renewals`` in between."""

    places: Places
    hosts: Sequence[str]
    strike: Strike | None = None
    renewals: int = 1
    shared: bool = True
    recorder: Recorder = field(default_factory=Recorder)

    def run(self) -> FreeRun:
        """Run until every rank has ended. Raises :class:`Divergence` unless all ended as they must."""
        ranks = range(len(self.hosts))
        self._stir = threading.Condition()  # protects what is below
        self._alive, self._asleep, self._woken = set(ranks), set[int](), set[int]()
        self._left = Counter({strike.call: strike.count for strike in [self.strike] if strike})
        self.ended: dict[int, BaseException | None] = {}
        self.fleet = Fleet(
            self.places,
            self.hosts,
            calls=self._called,
            wakes=self._wake,
            pause=self._pause,
            shared=self.shared,
        )
        threads = [
            threading.Thread(target=self._live, args=[rank], name=f"rank {rank}", daemon=True)
            for rank in ranks
        ]
        with observed_by(self.recorder):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(_PATIENCE_S)
        if any(thread.is_alive() for thread in threads):
            raise Divergence(f"{self.strike}: a rank does not end", "blocked")
        self._check()
        return self

    @property
    def struck(self) -> str:
        """The call that was struck, "" for none."""
        return self.strike.call if self.strike is not None and self.strike.hit else ""

    @property
    def lines(self) -> list[Recorded]:
        """What was recorded."""
        return self.recorder.lines

    # one rank

    def _live(self, rank: int) -> None:
        error: BaseException | None = None
        try:
            self._serve(rank, self.fleet.masters[rank])
        except BaseException as raised:  # noqa: BLE001  how a rank ends is what is looked at
            error = raised
        with self._stir:
            self.ended[rank] = error
            self._alive.discard(rank)
            self._let_time_pass()

    def _serve(self, rank: int, master: Master) -> None:
        master.start()
        if rank and master.fatal is None:
            master.done()
        said = rank != 0
        turns = 0
        while master.fatal is None and not master.ended:
            master.turn()
            renewed = master.controller.ledger.successes if master.controller else self.renewals
            if not said and master.fatal is None and renewed >= self.renewals:
                said = True
                master.done()
            if master.fatal is None and not master.ended:
                turns += 1
                if turns > _IDLE_TURNS and self._forsaken():
                    return  # it works on: nobody has told it anything
                self._sleep(rank)
        if master.fatal is not None:
            master.shutdown(lambda: None)

    def _forsaken(self) -> bool:
        """Whether a rank was unwound, which in this process ends nobody else."""
        return any(error is not None and not isinstance(error, Exception) for error in self.ended.values())

    def _called(self, rank: int, call: str) -> None:
        if self.fleet.network.code and call not in _CLEARING:
            raise Gone
        strike = self.strike
        if strike is None or strike.hit or strike.rank != rank or strike.call != call:
            return
        if self._left[call] == 0:
            strike.hit = True
            raise strike.error
        self._left[call] -= 1

    def _pause(self, rank: int) -> None:
        self._called(rank, "pause")
        self._sleep(rank)
        if self.fleet.network.code:
            raise Gone

    def _sleep(self, rank: int) -> None:
        with self._stir:
            self._asleep.add(rank)
            self._let_time_pass()
            self._stir.wait_for(lambda: rank in self._woken)
            self._woken.discard(rank)
            self._asleep.discard(rank)

    def _wake(self, rank: int) -> None:
        with self._stir:
            self._woken.add(rank)
            self._stir.notify_all()

    def _let_time_pass(self) -> None:
        """If nobody is awake. Nothing else can happen then."""
        if self.fleet.network.code or (self._asleep >= self._alive and not self._woken & self._alive):
            for rank in self._alive:
                self.fleet.clocks[rank].leap(_LEAP_S)
            self._woken |= self._alive
            self._stir.notify_all()

    # what must hold in the end

    def _check(self) -> None:
        left = self.places.descriptors()
        if self.strike is None or self.strike.call != "remove":  # which is how the lock file goes
            left += map(str, self.places.leaves())
        self.places.clear()
        wrong = [f"left behind: {left}"] if left else []
        wrong += [text for rank in range(len(self.hosts)) for text in self._wrong(rank)]
        if wrong:
            raise Divergence(f"{self.strike}: {'; '.join(wrong)}", "sweep")

    def _wrong(self, rank: int) -> Iterator[str]:
        master, error = self.fleet.masters[rank], self.ended[rank]
        mine = self.strike if self.strike and self.strike.rank == rank and self.strike.hit else None
        if mine is not None and not isinstance(mine.error, Exception):
            if error is not mine.error:
                yield f"rank {rank} ended with {error!r}"
        elif error is not None and not isinstance(error, Gone):
            yield f"rank {rank} ended with {error!r}"
        if error is None and not master.ended and not self._forsaken():
            yield f"rank {rank} came to no end"
        if master.controller is not None:
            books = master.controller.ledger
            if books.attempts != books.successes + books.failures:
                yield f"the books of rank {rank} are {books}"
        if master.result is not None:
            struck = (
                mine.error
                if mine and master.result.error.startswith("cluster lock qualification r")
                else None
            )
            check_result(master.result, struck if isinstance(struck, Exception) else None)


def sweep(places: Places, hosts: Sequence[str], *, renewals: int) -> Iterator[FreeRun]:
    """A run for every call of every rank, ordinary and control exceptions in turn. Raises
    :class:`Divergence` where a run does not end as it must."""
    number = 0
    for rank in range(len(hosts)):
        for call in CALLS:
            count = 0
            while True:
                number += 1
                error = ordinary(number // 2) if number % 2 else control(number // 2)
                run = FreeRun(places, hosts, Strike(rank, call, count, error), renewals).run()
                assert run.strike is not None
                if not run.strike.hit:
                    break
                yield run
                count += 1
