"""What there is of one fleet, for those who look at it, who disturb it and who move it."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.engine.gates import At
from conformance.qualification.environment import Places
from conformance.qualification.fleet import Fleet
from conformance.qualification.stage import RankStage
from smtspool.cluster import QualificationResult

__all__ = ["Ranks"]


class Ranks:
    """The ranks of one fleet on a stage, what they were given, and what is noted of them."""

    def __init__(
        self,
        places: Places,
        hosts: tuple[str, ...],
        *,
        shared: bool,
        given: Mapping[int, str] | None,
        start_at: int,
        variant: int,
        patience_s: float,
    ) -> None:
        self.ranks = range(len(hosts))
        self.places = places
        self.shared = shared
        self.given = dict(given or dict.fromkeys(self.ranks, "int"))
        self.start_at = start_at
        self.stage = RankStage(patience_s=patience_s)
        self.results: dict[int, QualificationResult] = {}  # the last one of each rank
        self.struck: dict[int, BaseException] = {}  # what hit its protocol, in its last run
        self.transcripts: dict[int, str] = {}  # of each generation that was verified
        self.sworn = dict.fromkeys(self.ranks, 0)
        self.unwound: set[int] = set()
        self.stranger: int | None = None
        self._how = variant
        self.armed: dict[int, tuple[str, int, BaseException]] = {}
        fleet = Fleet(
            places,
            hosts,
            calls=self._called,
            wakes=lambda rank: self.stage.wake(str(rank)),
            pause=lambda rank: self.stage.pause(str(rank)),
            shared=shared,
            generations={rank: start_at if kind == "int" else True for rank, kind in self.given.items()},
        )
        self.network, self.clocks, self.files = fleet.network, fleet.clocks, fleet.files
        self.held, self.masters = fleet.held, fleet.masters

    def _called(self, rank: int, name: str) -> None:
        """Every call that a rank makes of what it was given comes by here, and may raise."""
        armed = self.armed.get(rank)
        if armed is not None and armed[0] == name:
            wanted, count, error = armed
            if count:
                self.armed[rank] = (wanted, count - 1, error)
            else:
                del self.armed[rank]
                raise error

    def how(self) -> int:
        """Another number each time: which of several ways the environment takes."""
        self._how += 1
        return self._how

    def at(self, rank: int) -> str:
        """The gate where a rank stands, "" for none."""
        position = self.stage.players[str(rank)].position
        return position.name if isinstance(position, At) else ""
