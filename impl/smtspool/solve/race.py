"""One race: which engine is asked when, whose answer counts, and how the others end.

The race runs on the thread that wants the answer. Attempts run on the portfolio's threads and report to
the race's inbox; a cancellation from outside is a letter in the same inbox. So one thread decides everything,
one letter at a time, and it waits only for the next letter or the next point in time.

Its steps, by the names of the model::

    Enter         the race joins the list of the portfolio, so that a close tells it
    Submit        an engine's part is given to the pool
    Register ...  the part asks its engine, and for ``sat`` another one (see PersistentSolver)
    Report        the part has ended: a letter
    Tell          the race is cancelled from outside: a letter
    Hear          a letter is read
    CallOff       the switch is set: a part that registers from here on is told at once
    CancelFuture  a loser that has not begun never does ...
    CancelSolver  ... one that has begun is told
    Leave         the race returns
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial

from smtspool import threads
from smtspool.errors import ClosedError, InfrastructureError, MisuseError, ModelError
from smtspool.query import Answer, Attempt, Query, Status, complete

from .cancellation import Cancellation, CancelReason
from .engineanswer import EngineAnswer
from .hedging import Plan, Time
from .mailbox import Mailbox
from .persistent import PersistentSolver
from .request import RequestRefused
from .runner import Finding, Runner
from .steps import race_action as action
from .verification import Verdict, Verifier
from .views import RaceView

__all__ = ["Conclusion", "Race", "RaceRules"]


@dataclass(frozen=True, slots=True)
class RaceRules:
    """``cpus`` engines at once at most; ``grace_s`` past the limit an engine that stops by itself is still
    heard; ``report_s`` is what losers get to report what became of them; ``confirm_unsat`` asks for two."""

    cpus: int = 2
    grace_s: float = 0.1
    report_s: float = 0.005
    confirm_unsat: bool = False


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The outcome of a race, of which :meth:`Race.answer` makes the answer."""

    status: Status
    reason: str | None = None  # why it is neither ``sat`` nor ``unsat``
    engine: str | None = None
    model: Mapping[str, str] | None = None
    verified_by: str | None = None
    disagreement: bool = False


@dataclass(slots=True, eq=False)
class Race:
    """One query's race, for one call of :meth:`run`. ``name`` is in the ids of its attempts.

    Its thread alone changes who runs and what was heard, under ``_guard`` so that others may look.
    """

    name: str
    query: Query
    plan: Plan
    lanes: Mapping[str, PersistentSolver]
    verifier: Verifier
    rules: RaceRules
    limit: float  # when the query's time is over
    pool: Executor
    clock: Callable[[], float]
    wait: threads.Wait
    stood_still: Callable[[], float]  # seconds that the clock has left out so far
    outside: Cancellation  # the caller's
    over: Cancellation = field(default_factory=Cancellation)
    inbox: Mailbox[Future[Finding] | CancelReason] = field(init=False)
    _running: dict[Future[Finding], Runner] = field(default_factory=dict)
    _runners: list[Runner] = field(default_factory=list)
    _to_come: deque[str] = field(init=False)  # engines that have not joined
    _next_start: float = field(init=False)  # when the first of them may
    _started: float = 0.0
    _ended: float = 0.0
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.inbox = Mailbox(self.clock, self.wait)
        self._to_come = deque(self.plan.order)
        self._next_start = self.clock()

    @property
    def cutoff(self) -> float:
        """The absolute deadline of every request of this race."""
        return self.limit + self.rules.grace_s

    def run(self) -> Conclusion:
        """Race until an answer is accepted, no engine is left, the time is over, or it is cancelled.

        Raises :class:`InfrastructureError` if no engine was asked because none got a helper.
        """
        self._started = self.clock()
        try:
            reason = self._until_decided()
        except BaseException:
            self._dismiss(CancelReason.USER)
            raise
        self._dismiss(reason)
        conclusion = self._conclude(reason)
        self._ended = self.clock()
        return conclusion

    def answer(self, conclusion: Conclusion, attempts: tuple[Attempt, ...], limit_ms: int) -> Answer:
        """The answer to the query, whose time limit was ``limit_ms``, with these ``attempts``."""
        at_limit = self._ended >= self.limit
        return Answer(
            conclusion.status,
            conclusion.model,
            engine=conclusion.engine,
            reason=conclusion.reason,
            verified_by=conclusion.verified_by,
            disagreement=conclusion.disagreement,
            at_limit=at_limit,
            limit_ms=limit_ms if at_limit else None,
            elapsed_ms=(self._ended - self._started) * 1e3,
            attempts=attempts,
        )

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The attempts of all engines that were asked, as far as their outcome is known."""
        return tuple(runner.attempt for runner in self._runners)

    def view(self) -> RaceView:
        """A view of the race; from any thread. Raises InfrastructureError if its lock is not free."""
        letters, waits_until = self.inbox.view()
        with threads.looking_at(self._guard, self.name):
            attempts = {runner.future: runner.attempt_id for runner in self._runners}
            return RaceView(
                self.name,
                self.query.id,
                tuple(runner.view() for runner in self._runners),
                tuple(self._to_come),
                self._next_start,
                tuple(one.value if isinstance(one, CancelReason) else attempts[one] for one in letters),
                waits_until,
                self.over.reason,
            )

    def tell(self, reason: CancelReason) -> None:
        """Cancel the race from outside; from any thread."""
        with action("Tell", race=self.name, reason=reason.value):
            self.inbox.put(reason)
            over = self.over.reason is not None
        if over:  # nobody reads letters any more, but a second check of a model may run
            self.verifier.cancel(self.query.id, reason)

    def times(self) -> Iterator[Time]:
        """The times of engines from which the policy learns after a race.

        An engine without an answer counts with the whole time of the query, however late it joined. One that
        was cut off counts only if it ran longer than the winner, and one that got no helper not at all. Times
        with most of a path on the stack are left out, since the next path starts without a stack.
        """
        best = min((one.said.attempt.elapsed_ms for one in self._findings() if one.accepted), default=None)
        for runner in self._runners:
            finding, engine = runner.finding, runner.solver.engine
            if runner.trouble is not None:
                continue
            if finding is None or finding.said.attempt.cancelled:
                ran_ms = (self.clock() - runner.started) * 1e3
                if best is not None and ran_ms > best:
                    yield Time(engine, ran_ms, cut_off=True)
            elif finding.said.attempt.prefix_hit and finding.said.status.definite:
                continue
            elif finding.accepted or finding.unchecked:
                yield Time(engine, finding.said.attempt.elapsed_ms)
            else:
                yield Time(engine, (self.limit - self._runners[0].started) * 1e3)

    # -- until it is decided ----------------------------------------------------------------------------

    def _until_decided(self) -> CancelReason:
        """Run until the race is decided; returns why. LOST_RACE means that an engine's answer decided it."""
        while True:
            while self._can_start() and self.clock() >= self._next_start:
                self._next_start = self._start() + self.plan.delay_s
            now = self.clock()
            if not self._running:
                return CancelReason.LOST_RACE if now < self.limit else CancelReason.DEADLINE
            letter = self.inbox.get(min(self._next_start, self.cutoff) if self._can_start() else self.cutoff)
            if letter is None:
                if self.clock() >= self.cutoff:
                    return CancelReason.DEADLINE
                continue
            reason = self._hear(letter)
            if reason is not None:
                return reason
            self._next_start = self.clock()  # its answer did not decide the race

    def _can_start(self) -> bool:
        return bool(self._to_come) and len(self._running) < self.rules.cpus

    def _start(self) -> float:
        """Give the next engine's part to the pool; returns the time."""
        with self._guard:
            engine = self._to_come.popleft()
        joining = bool(self._running) and self.plan.delay_s > 0
        runner = Runner(self.lanes[engine], f"{self.name}.{len(self._runners) + 1}", self.clock(), joining)
        try:
            with action("Submit", **self._who(runner)):
                future = threads.submit(self.pool, partial(self._attempt, runner))
                with self._guard:
                    runner.future = future
                    self._running[future] = runner
                    self._runners.append(runner)
        except InfrastructureError as error:
            runner.trouble = error  # the others go on; if there are none, it is raised
            with self._guard:
                self._runners.append(runner)
            return runner.started
        future.add_done_callback(partial(self._report, runner))
        return runner.started

    def _attempt(self, runner: Runner) -> Finding:
        """One engine's part; runs on a thread of the pool."""
        said = self._ask(runner)
        if said.status is not Status.SAT:
            return Finding(said)
        try:
            model = complete(self.query, said.model or {})
        except ModelError:
            return Finding(said, verdict=Verdict(False, None))
        return Finding(said, model, self._verify(said.attempt, model, self.over))

    def _ask(self, runner: Runner) -> EngineAnswer:
        """The engine's answer. If it gave up and the machine had stood still, it is asked again with the time
        it had before, since its own clock went on. In the model that is an engine that takes longer."""
        attempt_id = runner.attempt_id
        while True:
            stood_still, left_s = self.stood_still(), self.limit - self.clock()
            said = runner.solver.solve(
                self.query,
                attempt_id=attempt_id,
                deadline=self.cutoff,
                timeout_ms=max(1, int(left_s * 1e3)),
                yielding=runner.yielding,
                cancellation=self.over,
                decided=runner.settle,
            )
            given_up = said.status is Status.UNKNOWN and not said.attempt.cancelled
            if not given_up or self.stood_still() == stood_still:
                return said
            self.limit = max(self.limit, self.clock() + left_s)
            runner.settled = False
            attempt_id += "+"

    def _report(self, runner: Runner, future: Future[Finding]) -> None:
        """Post the letter; a part that was cancelled before it began posts none."""
        if not future.cancelled():
            with action("Report", **self._who(runner)):
                self.inbox.put(future)

    def _verify(
        self, producer: Attempt, model: Mapping[str, str], cancellation: Cancellation, *also_not: str
    ) -> Verdict:
        return self.verifier.verify(
            self.query,
            model,
            exclude=(producer.engine, *also_not),
            deadline=self.cutoff,
            cancellation=cancellation,
            of=producer.attempt_id,
        )

    def _hear(self, letter: Future[Finding] | CancelReason) -> CancelReason | None:
        """Read one letter; returns the reason if that ends the race."""
        if isinstance(letter, CancelReason):
            with action("Hear", race=self.name, letter=letter.value):
                return letter
        runner = self._running[letter]
        with action("Hear", race=self.name, letter=runner.attempt_id), self._guard:
            del self._running[letter]
            try:
                runner.finding = letter.result()
            except ClosedError:
                runner.told = runner.told or CancelReason.CLOSED
            except (InfrastructureError, MisuseError) as error:
                runner.trouble = error
            return CancelReason.LOST_RACE if self._decided() else None

    def _decided(self) -> bool:
        accepted = [one.said.status for one in self._findings() if one.accepted]
        unsats = accepted.count(Status.UNSAT)
        needed = 2 if self.rules.confirm_unsat else 1
        return unsats >= needed or unsats < len(accepted)

    # -- the others -------------------------------------------------------------------------------------

    def _dismiss(self, reason: CancelReason) -> None:
        """Cancel all parts that still run, and read the letters of those that end at once."""
        with action("CallOff", race=self.name, reason=reason.value):
            self.over.cancel(reason)
        if not self._running:
            return
        for future, runner in list(self._running.items()):
            with self._guard:
                runner.told = reason
            with action("CancelFuture", **self._who(runner)) as step:
                unstarted = future.cancel()
                step.outcome = "cancelled" if unstarted else "running"
            if unstarted:
                del self._running[future]
            else:
                runner.solver.cancel(self.query.id, reason)
        self.verifier.cancel(self.query.id, reason)
        until = self.clock() + self.rules.report_s
        while self._running:
            letter = self.inbox.get(until)
            if letter is None:
                return
            self._hear(letter)

    # -- what it comes to -------------------------------------------------------------------------------

    def _findings(self) -> list[Finding]:
        return [runner.finding for runner in self._runners if runner.finding is not None]

    def _conclude(self, reason: CancelReason) -> Conclusion:
        sats = [one for one in self._findings() if one.said.status is Status.SAT]
        unsats = [one for one in self._findings() if one.said.status is Status.UNSAT]
        if unsats and any(self._stands(sat, unsats) for sat in sats):
            return Conclusion(Status.UNKNOWN, "disagreement: both sat and unsat", disagreement=True)
        for sat in sats:
            if sat.accepted:
                return Conclusion(Status.SAT, engine=sat.engine, model=sat.model, verified_by=sat.verdict.by)
        if len(unsats) > 1:
            return Conclusion(Status.UNSAT, engine=unsats[0].engine, verified_by=unsats[1].engine)
        if unsats and not self.rules.confirm_unsat:
            return Conclusion(Status.UNSAT, engine=unsats[0].engine)
        if reason is not CancelReason.LOST_RACE:
            return Conclusion(Status.UNKNOWN, reason.sentence)
        if unsats:
            return Conclusion(Status.UNKNOWN, f"unverified: only {unsats[0].engine} says unsat")
        return self._nothing()

    def _stands(self, sat: Finding, unsats: Sequence[Finding]) -> bool:
        """Whether this ``sat`` contradicts the ``unsats``, so that the race ends in a disagreement.

        It does not if an engine that did not say ``unsat`` refutes its model; a refutation by one that did is
        no further evidence. A model that another engine has confirmed always does.
        """
        if sat.accepted:
            return True
        parties = [one.engine for one in unsats]
        verdict = sat.verdict
        if verdict.confirmed is None or verdict.by in parties:
            try:
                verdict = self._verify(sat.said.attempt, sat.model, self.outside, *parties)
            except (InfrastructureError, RequestRefused):
                return True
        return verdict.confirmed is not False

    def _nothing(self) -> Conclusion:
        """The conclusion without an answer. If the machine failed every engine, that error is raised."""
        troubles = [runner.trouble for runner in self._runners]
        for trouble in troubles:
            if isinstance(trouble, InfrastructureError) and all(troubles):
                raise trouble
        attempts = {runner.attempt.status for runner in self._runners}
        status = Status.ERROR if attempts == {Status.ERROR} else Status.UNKNOWN
        return Conclusion(status, "; ".join(runner.complaint for runner in self._runners))

    def _who(self, runner: Runner) -> dict[str, object]:
        return {
            "race": self.name,
            "solver": runner.solver.name,
            "attempt": runner.attempt_id,
            "query": self.query.id,
        }
