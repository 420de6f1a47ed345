"""One engine's helper, asked one request at a time, and cancellable at every moment (F381).

The protocol of one request, in the words of the model::

    Register   its event joins ``running[query id]``: from here on no cancellation can miss it
    AcquireIO  its turn at the helper comes, or it is cancelled or runs out of time while it waits
    Admit      it becomes the active request, unless it was cancelled; a valid generation is made sure of
    Exchange   it is sent, unless it was cancelled
    Answer     the whole reply is here, or the generation failed
    Settle     answer or cancellation, decided once; the turn passes on; a doubtful generation is detached
    Retire     a detached generation is killed and reaped
    Unregister outermost, on every way out

Each step happens under the state lock, and nothing else does: the waiting (for the turn, for a helper to
start, to reply) is between the steps. An observer's ``before`` runs ahead of the lock, so that a thread
held at its gate does not delay others; one that wants the exact order of all steps keeps a mutex of its own
from ``before`` to ``after``.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from smtspool import threads
from smtspool.errors import ClosedError, InfrastructureError, MisuseError
from smtspool.query import Attempt, Failure, Query, Status, script

from .cancellation import Cancellation, CancelReason
from .engineanswer import EngineAnswer
from .registration import Registration
from .request import FailureKind, GenerationFailed, Op, Reply, Request, RequestRefused
from .spec import Recycle
from .steps import solver_action as action
from .views import SolverView, Waiting

if TYPE_CHECKING:
    from .generation import Generation, Helpers

__all__ = ["PersistentSolver"]


class PersistentSolver:
    """One engine behind one long-lived helper; every method may be called from any thread.

    Requests are served one at a time. A generation serves another request only after an exchange without
    failure; cancellation, deadline, failure or any exception retires it whole, and the next request starts
    cold (F381 §2.3). A cancellation that comes before ``Settle`` makes the request *cancelled*, even if half
    a frame was sent or the answer had arrived; one that comes later changes nothing.

    Lock order: the turn at the helper (``_holder``), then the state lock. No thread waits with the state lock
    held, except on the condition that releases it.

    ``clock`` is the fork server's; deadlines are absolute readings of it. The caller closes the fork server.
    """

    _HISTORY = 1 << 16  # attempt ids remembered, as in F371

    def __init__(
        self,
        server: Helpers,
        *,
        name: str | None = None,
        recycle: Recycle | None = None,
        clock: Callable[[], float] = time.monotonic,
        wait: threads.Wait = threading.Condition.wait,
    ) -> None:
        self.name = name or server.spec.name
        self.engine = server.spec.name
        self._server = server
        self._process = os.getpid()
        self._recycle = recycle or Recycle()
        self._clock = clock
        self._wait = wait
        self._state = threading.Lock()  # protects everything below; held for moments
        self._changed = threading.Condition(self._state)  # the turn is free, a request was told or has left
        self._running: dict[str, set[Registration]] = {}
        self._holder: Registration | None = None  # whose turn it is: F381's I/O lock
        self._active: Registration | None = None  # whose request the generation works on
        self._generation: Generation | None = None
        self._served = 0  # requests answered by it
        self._used: OrderedDict[str, None] = OrderedDict()
        self._closed = False
        self._leaving = 0  # calls of close that wait until all requests have left

    # -- one request ------------------------------------------------------------------------------------

    def solve(
        self,
        query: Query,
        *,
        attempt_id: str,
        deadline: float,
        timeout_ms: int | None = None,
        model: Mapping[str, str] | None = None,
        fresh: bool = False,
        yielding: bool = False,
        cancellation: Cancellation | None = None,
        decided: Callable[[CancelReason | None], object] = lambda reason: None,
    ) -> EngineAnswer:
        """Ask for ``query``; with ``model``, ask whether that satisfies it: ``sat`` if so, else ``unsat``.

        Returns by ``deadline``, whatever the engine does, plus the moment it takes to send a signal:

        * ``unknown``, reason ``timeout``, or ``cancelled: why`` if :meth:`cancel`, :meth:`close` or
          ``cancellation`` told it so;
        * ``error`` if the helper died of it (a :class:`Failure`, and a reason with the end of its stderr) or
          sent a malformed reply;
        * else the engine's answer. ``timeout_ms`` is the engine's own limit; by default all the time left.

        ``decided`` is called at ``Settle``, on this thread and with the solver locked, with the reason of the
        cancellation or None. Raises
        :class:`ClosedError`; :class:`MisuseError` for an attempt id that was used before or a request that
        cannot be sent, neither of which costs the generation; :class:`InfrastructureError` if the machine
        gives no helper.
        """
        started = self._clock()
        if timeout_ms is None:
            timeout_ms = max(1, int((deadline - started) * 1e3))
        if model is None:
            request = Request(
                attempt_id,
                Op.SOLVE,
                query.logic,
                query.levels,
                query.symbols,
                timeout_ms=timeout_ms,
                fresh=fresh,
                yielding=yielding,
            )
        else:
            closed = script(query, model=model)
            request = Request(attempt_id, Op.CHECK, query.logic, timeout_ms=timeout_ms, script=closed)
        me = Registration(attempt_id, query.id, deadline, decided)
        self._register(me, cancellation)
        try:
            if self._acquire_io(me):
                try:
                    generation = self._admit(me)
                    if generation is not None:
                        self._exchange(me, generation, request)
                finally:
                    self._settle(me)
        finally:
            self._unregister(me)
        return self._answer(me, (self._clock() - started) * 1e3)

    def _register(self, me: Registration, cancellation: Cancellation | None) -> None:
        with action("Register", **self._who(me)), self._state:
            if self._closed:
                raise ClosedError(f"the solver {self.name} is closed")
            if me.attempt_id in self._used:
                raise MisuseError(f"attempt id {me.attempt_id!r} was used before")
            self._used[me.attempt_id] = None
            if len(self._used) > self._HISTORY:
                self._used.popitem(last=False)
            self._running.setdefault(me.query_id, set()).add(me)
            if cancellation is not None:
                # A canceller sets this and then calls cancel(), so one of the two reaches this request.
                me.reason = cancellation.reason

    def _acquire_io(self, me: Registration) -> bool:
        while True:
            with action("AcquireIO", **self._who(me)) as step, self._state:
                if self._holder is None:
                    self._holder = me
                    step.outcome = "acquired"
                    return True
                if self._is_over(me):
                    me.decide()
                    step.outcome = "left"
                    return False
                step.outcome = "busy"
            with self._state:
                me.waiting = Waiting.TURN
                self._await(lambda: self._holder is None or me.reason is not None, me.deadline)
                me.waiting = None

    def _admit(self, me: Registration) -> Generation | None:
        with action("Admit", **self._who(me)) as step, self._state:
            if self._is_over(me):
                step.outcome = "cancelled"  # nothing is sent, and yet Settle detaches the generation
                return None
            self._active = me
            generation = self._generation
            if generation is not None and generation.alive:
                me.generation = generation.number
                step.outcome = "warm"
                return generation
            self._generation = None
            me.waiting = Waiting.HELPER
            step.outcome = "cold"
        if generation is not None:
            self._retire(generation, "died")
        try:
            with action("Spawn", **self._who(me)) as step:
                generation = self._server.spawn(me.deadline)
                with self._state:
                    self._generation, self._served = generation, 0
                    me.generation, me.waiting = generation.number, None
                step.outcome = f"generation {generation.number}"
        except InfrastructureError as error:
            me.trouble = error  # raised once Settle has decided that nobody cancelled it
            with self._state:
                me.waiting = None
                self._is_over(me)
            return None
        return generation

    def _exchange(self, me: Registration, generation: Generation, request: Request) -> None:
        with action("Exchange", **self._who(me)) as step, self._state:
            if self._is_over(me):
                step.outcome = "cancelled"
                return
            me.waiting = Waiting.REPLY
            step.outcome = "sent"
        try:
            me.reply = generation.exchange(request, me.deadline)
        except GenerationFailed as failure:
            me.failure = failure
        except RequestRefused:
            me.keep = True
            raise
        with action("Answer", **self._who(me)) as step, self._state:
            self._served += 1
            me.waiting = None
            me.keep = me.reply is not None and self._is_fit(me.reply) and not request.yielding
            step.outcome = "failed" if me.reply is None else me.reply.status.value

    def _settle(self, me: Registration) -> None:
        with action("Settle", **self._who(me)) as step, self._state:
            if me.reason is None and me.failure is not None and me.failure.kind is FailureKind.TIMEOUT:
                me.reason = CancelReason.DEADLINE
            me.decide()
            me.waiting = doomed = None
            if me.ended is not None or not me.keep:
                doomed, self._generation = self._generation, None
            if self._active is me:
                self._active = None
            self._holder = None
            self._changed.notify_all()
            step.outcome = "answered" if me.ended is None else me.ended.value
        if doomed is not None:
            self._retire(doomed, "unfit" if me.ended is None else me.ended.value)

    def _unregister(self, me: Registration) -> None:
        with action("Unregister", **self._who(me)), self._state:
            siblings = self._running[me.query_id]
            siblings.discard(me)
            if not siblings:
                del self._running[me.query_id]
            self._changed.notify_all()

    def held(self, query: Query) -> int:
        """How many of the query's assertions the helper has on its stack."""
        with self._state:
            generation = self._generation
        return 0 if generation is None else generation.held(query.levels)

    # -- cancellation -----------------------------------------------------------------------------------

    def cancel(self, query_id: str, reason: CancelReason) -> bool:
        """Cancel every request for ``query_id``; True if at least one was registered and is told now.

        A helper is killed only if it works on one of them. It is read together with the events, under the
        state lock, and a request that was told retires its generation, so no other request is hit. The first
        reason a request was told counts.
        """
        what = {"solver": self.name, "query": query_id, "reason": reason.value}
        with action("CancelSolver", **what) as step, self._state:
            registered = self._running.get(query_id, set())
            target = self._tell(registered, reason)
            told = bool(registered)
            step.outcome = "told" if told else "nobody"
        self._signal(target)
        return told

    def close(self, grace_s: float = 5.0) -> bool:
        """Refuse new requests, cancel those there are, retire the helper; True once every caller has left.

        Returns within ``grace_s``. A caller that still waits for its helper to start then has been told, and
        retires the helper itself. Idempotent; no effect in a forked child.
        """
        if os.getpid() != self._process:
            return True
        with action("Close", solver=self.name), self._state:
            self._closed = True
            everybody = {one for registered in self._running.values() for one in registered}
            target = self._tell(everybody, CancelReason.CLOSED)
        self._signal(target)
        with self._state:
            self._leaving += 1
            left = self._await(lambda: not self._running, self._clock() + grace_s)
            self._leaving -= 1
            doomed = None
            if self._holder is None:
                doomed, self._generation = self._generation, None
        if doomed is not None:
            self._retire(doomed, CancelReason.CLOSED.value)
        return left

    def _tell(self, registered: set[Registration], reason: CancelReason) -> Generation | None:
        """Set their events; returns the generation to kill, if any. Called under the state lock."""
        for one in registered:
            if one.reason is None:
                one.reason = reason
        self._changed.notify_all()
        return self._generation if self._active in registered else None

    def _signal(self, generation: Generation | None) -> None:
        if generation is not None:
            with action("Signal", solver=self.name, generation=generation.number):
                generation.signal_kill()

    # -- parts ------------------------------------------------------------------------------------------

    def view(self) -> SolverView:
        """A view of the solver; from any thread. Raises InfrastructureError if its lock is not free."""
        with threads.looking_at(self._state, f"the solver {self.name}"):
            return SolverView(
                self.name,
                self.engine,
                tuple(one.view() for registered in self._running.values() for one in registered),
                None if self._holder is None else self._holder.attempt_id,
                None if self._active is None else self._active.attempt_id,
                None if self._generation is None else self._generation.view(),
                self._closed,
                self._leaving > 0,
            )

    def _await(self, holds: Callable[[], bool], deadline: float) -> bool:
        """Whether ``holds()`` comes true in time. Called under the state lock, which it gives up."""
        return threads.wait_until(self._changed, holds, deadline, clock=self._clock, wait=self._wait)

    def _retire(self, generation: Generation, reason: str) -> None:
        with action("Retire", solver=self.name, generation=generation.number):
            generation.retire(reason)

    def _is_over(self, me: Registration) -> bool:
        """Whether it is cancelled; a passed deadline cancels it too. Called under the state lock."""
        if me.reason is None and self._clock() >= me.deadline:
            me.reason = CancelReason.DEADLINE
        return me.reason is not None

    def _is_fit(self, reply: Reply) -> bool:
        """Whether the generation may go on: no error, and neither too large nor too many requests."""
        return (
            reply.status is not Status.ERROR
            and self._served < self._recycle.requests
            and reply.rss_bytes < self._recycle.rss_bytes
        )

    def _answer(self, me: Registration, elapsed_ms: float) -> EngineAnswer:
        reply, failure, why = me.reply, me.failure, me.ended
        attempt = partial(
            Attempt,
            me.attempt_id,
            self.engine,
            generation=me.generation,
            prefix_hit=0 if reply is None else reply.kept_levels,
            elapsed_ms=elapsed_ms,
        )
        if why is not None:
            return EngineAnswer(
                attempt(Status.UNKNOWN, reason=why.sentence, cancelled=True, cancel_reason=why.value)
            )
        if reply is not None:
            refused = Failure.REFUSED if reply.status is Status.ERROR else None
            return EngineAnswer(attempt(reply.status, reason=reply.reason, failure=refused), reply.model)
        if failure is not None and failure.kind not in (FailureKind.SYSTEM, FailureKind.RETIRED):
            crashed = failure.kind is FailureKind.CRASHED
            what = Failure.CRASHED if crashed else Failure.NO_REPLY
            return EngineAnswer(attempt(Status.ERROR, reason=failure.sentence, failure=what))
        trouble = failure or me.trouble  # of the machine, not of the engine
        assert trouble is not None, "a request ends with a reply, a failure, trouble or a reason"
        raise trouble

    def _who(self, me: Registration) -> dict[str, object]:
        return {"solver": self.name, "attempt": me.attempt_id, "query": me.query_id}
