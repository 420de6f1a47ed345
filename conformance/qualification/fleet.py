"""Real masters on a network, with clocks, directories and inputs of their own, one for each rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from conformance.qualification.environment import Calls, Clock, Files, Network, Places, RankEnd
from smtspool.cluster import Capability, Host, Master, QualificationAttempt, RenewalPlan, Time

__all__ = ["PLAN", "Fleet"]

PLAN = RenewalPlan(interval=60.0, timeout=30.0, jitter=0.1)


class Fleet:
    """One master for each host in ``hosts``. ``calls`` is told of every call that a rank makes of what it was
    given, and may raise; ``pause`` is how a rank waits. Where locks are not ``shared`` there are two
    hosts."""

    def __init__(
        self,
        places: Places,
        hosts: Sequence[str],
        *,
        calls: Calls,
        wakes: Callable[[int], None],
        pause: Callable[[int], None],
        shared: bool = True,
        generations: Mapping[int, int] | None = None,
    ) -> None:
        self._places = places
        self._calls = calls
        self._pause = pause
        self._apart = [not shared and host != hosts[0] for host in hosts]
        self.network = Network(len(hosts), calls, wakes)
        self.clocks = [Clock() for _ in hosts]
        self.held: dict[int, tuple[int, str]] = {}
        self.files = [
            Files(rank, self._root(rank), None if shared else places.other, calls, self.held)
            for rank in range(len(hosts))
        ]
        given = generations or {}
        self.masters = [self._master(rank, host, given.get(rank, 0)) for rank, host in enumerate(hosts)]

    def _root(self, rank: int) -> Path:
        return self._places.other if self._apart[rank] else self._places.shared

    def _master(self, rank: int, host: str, generation: int) -> Master:
        root = self._root(rank)

        def probe() -> Capability:
            self._calls(rank, "probe")
            return self._places.capabilities[root]

        def processor_name() -> str:
            self._calls(rank, "processor_name")
            return host

        def heartbeat() -> int:
            self._calls(rank, "heartbeat")
            return 0

        def clock() -> float:
            self._calls(rank, "clock")
            return self.clocks[rank]()

        return Master(
            RankEnd(self.network, rank),
            Host(root, probe, processor_name, files=self.files[rank]),
            startup=QualificationAttempt(generation=generation),
            plan=PLAN,
            heartbeat=heartbeat,
            time=Time(clock, lambda seconds: self._pause(rank)),
        )
