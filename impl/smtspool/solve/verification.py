"""Verification: a model counts when the evaluator, or an engine other than its producer, has confirmed it.

The evaluator is no engine and makes no models. An engine checks the query itself with every declared symbol
defined as its value; nothing is left to search for, so that takes little more time than reading. Checks run
on helpers of their own, so a race that keeps every solving helper busy for seconds does not delay them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from smtspool.errors import InfrastructureError, ModelError
from smtspool.query import Query, Status, evaluate, refutable

from .bundled import EVALUATOR, usual
from .cancellation import Cancellation, CancelReason
from .persistent import PersistentSolver
from .views import SolverView

__all__ = ["NOBODY_KNOWS", "Confirm", "Verdict", "Verifier"]

_EVALUATION_MS = 0.1  # usual time for every 1000 characters of query and model ...
_SHORT = 1000  # ... and a constant part, as much as for so many characters
_LONGEST = 1 << 20  # longer texts go to engines; the evaluator would take a tenth of a second
_SMOOTHING = 0.1  # weight of the newest check in a mean
_FORGETTING = 0.01  # a check elsewhere moves a mean by this part back to the usual cost


class Confirm(StrEnum):
    """Who may confirm a model."""

    ANY = "any"  # the cheapest: the evaluator or another engine
    ENGINE = "engine"  # another engine


class Verdict(NamedTuple):
    """``confirmed`` is the result of the check ``by`` an engine or the :data:`EVALUATOR`; None if none could
    tell.

    It is False with no ``by`` if a value of the model is missing or malformed.
    """

    confirmed: bool | None
    by: str | None


NOBODY_KNOWS = Verdict(None, None)


@dataclass(slots=True)
class _Cost:
    """The cost of a check, milliseconds: by one engine, or by the evaluator for every 1000 characters."""

    usual_ms: float
    ms: float = field(init=False)
    generation: int = 0  # of the latest check

    def __post_init__(self) -> None:
        self.ms = self.usual_ms

    def add(self, ms: float, generation: int = 0) -> None:
        """Count a check, unless it is the first of its helper, which takes longer than later ones."""
        if generation == self.generation:
            self.ms += _SMOOTHING * (ms - self.ms)
        self.generation = generation

    def forget(self) -> None:
        """Move the cost back towards the usual one, after a check that was made elsewhere."""
        self.ms += _FORGETTING * (self.usual_ms - self.ms)


class Verifier:
    """Checks models by the evaluator or by an engine, whichever is cheaper. Thread-safe.

    It owns one solver per engine, a *lane*.
    """

    def __init__(
        self,
        lanes: Sequence[PersistentSolver],
        takes: Callable[[str, str], bool],
        *,
        start_s: Callable[[str], float] = lambda engine: 0.0,
        confirm: Confirm = Confirm.ANY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lanes = {lane.engine: lane for lane in lanes}
        self._takes = takes
        self._start_s = start_s
        self._confirm = confirm
        self._clock = clock
        self._costs = {lane.engine: _Cost(usual(lane.engine).check_ms) for lane in lanes}
        self._costs[EVALUATOR] = _Cost(_EVALUATION_MS)
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
        """Check ``model`` by the cheapest checker outside ``exclude`` that can tell.

        Each engine gets its share of the time left, so that one that hangs does not use up all of it. ``of``
        is the attempt whose model it is; the ids of the checks begin with it.
        Raises :class:`InfrastructureError` only if no checker could tell and an engine had no helper.
        """
        trouble: InfrastructureError | None = None
        length = query.size + sum(map(len, model.values()))
        able = self._able(query, length, exclude)
        for left, checker in zip(range(len(able), 0, -1), able, strict=True):
            now = self._clock()
            try:
                if checker == EVALUATOR:
                    verdict = self._evaluate(query, model, length)
                    if verdict is not None:
                        return verdict
                    continue
                said = self._lanes[checker].solve(
                    query,
                    attempt_id=f"{of}/check-{next(self._numbers)}",
                    deadline=now + (deadline - now) / left,
                    model=model,
                    cancellation=cancellation,
                )
            except ModelError:
                return Verdict(False, None)
            except InfrastructureError as error:
                if self._takes(checker, query.logic):  # else the engine was just found not to take the logic
                    trouble = error
                continue
            if said.status.definite:
                self._learn(checker, said.attempt.elapsed_ms, said.attempt.generation)
                return _verdict(query, said.status is Status.SAT, checker)
            if said.attempt.cancel_reason not in (None, CancelReason.DEADLINE):
                return NOBODY_KNOWS
        if trouble is not None:
            raise trouble
        return NOBODY_KNOWS

    def _able(self, query: Query, length: int, exclude: Collection[str | None]) -> list[str]:
        """The checkers that may be asked, the cheapest first; an engine may have to be started first."""
        expected = {
            engine: self._costs[engine].ms + 1e3 * self._start_s(engine)
            for engine in self._lanes
            if engine not in exclude and self._takes(engine, query.logic)
        }
        if self._confirm is Confirm.ANY and length <= _LONGEST:
            expected[EVALUATOR] = self._costs[EVALUATOR].ms * (length + _SHORT) / 1000
        return sorted(expected, key=expected.__getitem__)

    def _evaluate(self, query: Query, model: Mapping[str, str], length: int) -> Verdict | None:
        """The evaluator's verdict; None if it cannot tell. Raises ``ModelError`` for a malformed model."""
        started = self._clock()
        satisfied = evaluate(query, model)
        if satisfied is None:
            return None
        if satisfied:  # else it may have ended at the first assertion
            self._learn(EVALUATOR, (self._clock() - started) * 1e3 * 1000 / (length + _SHORT))
        return _verdict(query, satisfied, EVALUATOR)

    def _learn(self, checker: str, ms: float, generation: int = 0) -> None:
        for one, cost in self._costs.items():
            if one == checker:
                cost.add(ms, generation)
            else:
                cost.forget()

    def cancel(self, query_id: str, reason: CancelReason) -> bool:
        """Cancel the checks of models for ``query_id``; True if there was one."""
        told = [lane.cancel(query_id, reason) for lane in self._lanes.values()]
        return any(told)

    def view(self) -> tuple[SolverView, ...]:
        """Views of the lanes, in the fixed order; from any thread."""
        return tuple(lane.view() for lane in self._lanes.values())

    def close(self, grace_s: float) -> bool:
        """Close every lane; True once all callers have left."""
        left = [lane.close(grace_s) for lane in self._lanes.values()]
        return all(left)


def _verdict(query: Query, satisfied: bool, by: str) -> Verdict:
    return Verdict(satisfied, by) if satisfied or refutable(query) else NOBODY_KNOWS
