"""A model is believed when an engine other than its producer agrees (design: answers).

The check is the query itself with every declared symbol defined as its value: nothing is left to search
for, so it costs the engine little more than reading. Checks run on helpers of their own: a race that keeps
every solving helper busy for seconds delays no verification.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from smtspool.errors import InfrastructureError, ModelError
from smtspool.query import Attempt, Query, Status, refutable

from .bundled import usual
from .cancellation import Cancellation, CancelReason
from .persistent import PersistentSolver
from .views import SolverView

__all__ = ["NOBODY_KNOWS", "Verdict", "Verifier"]

_SMOOTHING = 0.1  # weight of the newest check in an engine's mean cost
_FORGETTING = 0.01  # what a check elsewhere takes an engine back towards its usual cost: it is tried again


class Verdict(NamedTuple):
    """``confirmed``: True and False say what ``engine`` found, None that no engine could tell.

    False without an engine: the model is no model at all, a value is missing or not a value.
    """

    confirmed: bool | None
    engine: str | None


NOBODY_KNOWS = Verdict(None, None)


@dataclass(slots=True)
class _Cost:
    """What a check by one engine costs, milliseconds."""

    usual_ms: float
    ms: float = field(init=False)
    generation: int = 0  # of the latest check

    def __post_init__(self) -> None:
        self.ms = self.usual_ms

    def add(self, check: Attempt) -> None:
        """Count a check, unless it is the first of its helper, which pays for the helper too."""
        if check.generation == self.generation:
            self.ms += _SMOOTHING * (check.elapsed_ms - self.ms)
        self.generation = check.generation


class Verifier:
    """Checks models on one lane per engine, the cheapest first. Thread-safe; the lanes are its own."""

    def __init__(
        self,
        lanes: Sequence[PersistentSolver],
        takes: Callable[[str, str], bool],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lanes = {lane.engine: lane for lane in lanes}
        self._takes = takes
        self._clock = clock
        self._costs = {lane.engine: _Cost(usual(lane.engine).check_ms) for lane in lanes}
        self._numbers = itertools.count(1)

    def verify(
        self,
        query: Query,
        model: Mapping[str, str],
        *,
        exclude: Collection[str | None],
        deadline: float,
        cancellation: Cancellation | None = None,
        of: str = "model",
    ) -> Verdict:
        """Have ``model`` checked by the cheapest engine outside ``exclude`` that can tell.

        Each engine gets its share of the time left, so that one that hangs does not use up all of it. ``of``
        is the attempt whose model it is; the ids of the checks begin with it.
        Raises :class:`InfrastructureError` only if no engine could tell and one had no helper to give.
        """
        trouble: InfrastructureError | None = None
        able = [one for one in self._lanes if one not in exclude and self._takes(one, query.logic)]
        able.sort(key=lambda engine: self._costs[engine].ms)
        for left, engine in zip(range(len(able), 0, -1), able, strict=True):
            now = self._clock()
            try:
                said = self._lanes[engine].solve(
                    query,
                    attempt_id=f"{of}/check-{next(self._numbers)}",
                    deadline=now + (deadline - now) / left,
                    model=model,
                    cancellation=cancellation,
                )
            except ModelError:
                return Verdict(False, None)
            except InfrastructureError as error:
                if self._takes(engine, query.logic):  # it has not turned out just now that it cannot tell
                    trouble = error
                continue
            if said.status.definite:
                self._learn(said.attempt)
                if said.status is Status.UNSAT and not refutable(query):
                    return NOBODY_KNOWS
                return Verdict(said.status is Status.SAT, engine)
            if said.attempt.cancel_reason not in (None, CancelReason.DEADLINE):
                return NOBODY_KNOWS
        if trouble is not None:
            raise trouble
        return NOBODY_KNOWS

    def _learn(self, check: Attempt) -> None:
        for engine, cost in self._costs.items():
            if engine == check.engine:
                cost.add(check)
            else:
                cost.ms += _FORGETTING * (cost.usual_ms - cost.ms)

    def cancel(self, query_id: str, reason: CancelReason) -> bool:
        """Cancel the checks of models for ``query_id``; True if there was one."""
        told = [lane.cancel(query_id, reason) for lane in self._lanes.values()]
        return any(told)

    def view(self) -> tuple[SolverView, ...]:
        """What its lanes are doing, in the fixed order; from any thread."""
        return tuple(lane.view() for lane in self._lanes.values())

    def close(self, grace_s: float) -> bool:
        """Close every lane; True once all callers have left."""
        left = [lane.close(grace_s) for lane in self._lanes.values()]
        return all(left)
