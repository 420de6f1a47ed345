"""A master: one rank of a fleet, from its qualification to its end. It acts on every result (F355 §5).

::

    master.start()                      qualify: the rights of this rank, or Abort(65)
    while not master.ended:
        master.turn()                   hear the others, renew when it is time
        if master.fatal:
            master.shutdown(stop)       in order, then Abort(70)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from smtspool.errors import MisuseError

from .communicator import Communicator
from .comparison import compare_plans
from .diagnostics import Code, Diagnostic, Position, Stage, contained
from .exchange import FIRST_PAUSE, LONGEST_PAUSE, Exchange, ExchangeFailed, ExchangeView
from .inputs import REAL_TIME, STARTUP, Host, QualificationAttempt, Time
from .notices import Note, Notice, Notices
from .observation import Observation, heartbeat_error, observe_inputs
from .proof import exact_generation
from .qualification import qualify
from .renewal import RenewalController, RenewalPlan, complete_renewal
from .result import QualificationResult, contained_failure
from .steps import action

__all__ = ["ABORT_FAILED", "ABORT_UNQUALIFIED", "Master", "MasterView", "Rights"]

ABORT_UNQUALIFIED = 65
ABORT_FAILED = 70
DEFAULT_GRACE = 5.0


class Rights(StrEnum):
    """The right to admit from the shared spool."""

    EVERY_MASTER = "EveryMaster"  # the locks were proved between hosts, so every rank may admit
    ONE_OWNER = "OneOwner"  # all ranks are on one host, and only rank 0 admits
    REFUSED = "Refused"  # no rank may admit


@dataclass(frozen=True, slots=True)
class MasterView:
    """One rank as it is now. ``admits``: it has begun to run, may admit, and nothing has failed."""

    rank: int | None
    admits: bool
    observed: Observation | None  # for the latest attempt to prove the locks
    exchange: ExchangeView  # of that attempt, or of the plans
    latest: QualificationResult | None  # of the attempts, acted upon or not
    waits_for_others: bool  # to end, because the fleet has failed
    fatal: Diagnostic | None


class Master:
    """One rank. Belongs to the thread that made it; the only one that may call MPI.

    ``fatal`` is the first failure and stays: from then on the rank must shut down.

    :param startup: the first attempt; ``plan`` says when the next ones are, and how long they may take
    :param heartbeat: renews all leases of this rank, once, and returns how many were lost
    :param say: prints a diagnostic for people
    :param grace: seconds to wait for the others when the fleet fails
    """

    def __init__(
        self,
        comm: Communicator,
        host: Host,
        *,
        startup: QualificationAttempt = STARTUP,
        plan: RenewalPlan | None = None,
        heartbeat: Callable[[], int] = lambda: 0,
        say: Callable[[str], None] = lambda text: None,
        grace: float = DEFAULT_GRACE,
        time: Time = REAL_TIME,
    ) -> None:
        self._comm = comm
        self._host = host
        self._startup = startup
        self._plan = plan or RenewalPlan()
        self._heartbeat = heartbeat
        self._say = say
        self._grace = grace
        self._time = time
        self._at = Position(Stage.OBSERVE, exact_generation(startup.generation) or 0)
        self.rank: int | None = None
        self.size = 0
        self.rights = Rights.REFUSED
        self.result: QualificationResult | None = None
        self.controller: RenewalController | None = None
        self.fatal: Diagnostic | None = None
        self.draining = False
        self.ended = False
        self._starting = False
        self._observed: Observation | None = None
        self._exchange: Exchange | None = None
        self._latest: QualificationResult | None = None
        self._waits_for_others = False
        self._notices: Notices | None = None
        self._done: set[int] = set()
        self._down: set[int] = set()

    # -- startup ----------------------------------------------------------------------------------------

    def start(self) -> Rights:
        """Qualify and, unless that fails, prepare for turns; ``fatal`` may be set afterwards."""
        self._starting = True
        rights = self.qualify()
        if rights is not Rights.REFUSED:
            self._go_on()
        self._starting = False
        return rights

    def view(self) -> MasterView:
        """A view of this rank. For other threads its parts are not of one moment."""
        may = self.rights is Rights.EVERY_MASTER or (self.rank == 0 and self.rights is Rights.ONE_OWNER)
        return MasterView(
            self.rank,
            may and not self._starting and self.fatal is None,
            self._observed,
            ExchangeView() if self._exchange is None else self._exchange.view(),
            self._latest,
            self._waits_for_others,
            self.fatal,
        )

    def qualify(self) -> Rights:
        """Qualify, and act on the result: Abort(65) unless it is clean."""
        result = contained(
            "cluster lock qualification raised",
            self._at,
            self._qualified,
            lambda diagnostic: contained_failure(diagnostic, None, self._startup.generation),
        )
        self._latest = result
        with action("Consume", rank=self.rank, at="startup") as step:
            self.result = result
            if result.verified:
                self.rights = Rights.EVERY_MASTER
            elif result.clean:
                self.rights = Rights.ONE_OWNER
            step.outcome = self.rights.value
        if self.rights is Rights.REFUSED:
            # A refusal is known to all ranks, and rank 0 prints it; other failures may be known to this rank
            # alone.
            if self.rank == 0 or (result.diagnostic and result.diagnostic.code is not Code.REFUSED):
                self._tell_people(result.error)
            self._abort(ABORT_UNQUALIFIED)
        return self.rights

    def _qualified(self) -> QualificationResult:
        self.rank = self._at.rank = self._comm.Get_rank()
        with action("Observe", rank=self.rank, at="startup") as step:
            seen = observe_inputs(
                self._host.probe, self._host.processor_name, rank=self.rank, generation=self._at.generation
            )
            step.outcome = "Failed" if seen.error else "Observed"
        return self._attempted(seen, self._startup)

    def _attempted(self, seen: Observation, attempt: QualificationAttempt) -> QualificationResult:
        host = self._host
        self._observed = seen
        return qualify(
            self._comm, host.root, seen, attempt, time=self._time, files=host.files, began=self._look_at
        )

    def _look_at(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def _go_on(self) -> None:
        """Prepare a clean fleet to run: notices and, if the locks were proved, renewals."""
        self._at.stage = Stage.CONFIGURATION
        result = self.result
        assert result is not None
        contained("the fleet cannot be set up", self._at, lambda: self._set_up(result), self.fail)

    def _set_up(self, result: QualificationResult) -> None:
        assert self.rank is not None
        members = result.proof.members
        self.size = len(members)
        self._notices = Notices(self._comm, rank=self.rank, size=self.size, epoch=result.epoch)
        if not result.verified:
            return
        assert result.capability is not None
        try:
            exchange = Exchange(
                self._comm,
                self._at,
                epoch=result.epoch,
                attempt=self._startup.number + 1,
                timeout=self._startup.timeout,
                time=self._time,
            )
            self._look_at(exchange)
            agreed = compare_plans(exchange, self._plan, members, self._host.keeps)
        except ExchangeFailed as error:
            self.fail(error.diagnostic)
            return
        self.controller = RenewalController(
            agreed,
            capability=result.capability,
            completed_at=self._time.clock(),
            generation=result.generation,
        )

    # -- running ----------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Read the notices of the other ranks, and renew if that is due. Only a renewal waits.

        Total over ``Exception``: a failure becomes ``fatal``. Does nothing after a failure or the end.
        """
        if self.fatal is None and not self.ended:
            self._at.stage = Stage.REQUEST
            contained("the fleet cannot go on", self._at, self._turn, self.fail)

    def _turn(self) -> None:
        requested = [note for note in self._hear() if note.notice is Notice.RENEW]
        controller = self.controller
        if self.fatal is not None or controller is None:
            return
        for note in requested:
            self._renew(controller, note)
        if self.rank == 0 and controller.due(self._time.clock(), safe=not self.ended):
            self._renew(controller, None)

    def _hear(self) -> list[Note]:
        assert self._notices is not None
        heard = self._notices.arrived()
        for note in heard:
            if note.notice is Notice.STOP:
                self.fail(self._at.diagnose(Code.REFUSED, f"rank {note.source} has failed and shuts down"))
            elif note.notice is Notice.DOWN:
                self._down.add(note.source)
            elif note.notice is Notice.DRAIN:
                self.draining = True
            elif note.notice is Notice.DONE:
                self._done.add(note.source)
                self._end_if_all_done()
            elif note.notice is Notice.END:
                self.ended = True
        return heard

    def _renew(self, controller: RenewalController, request: Note | None) -> None:
        """Renew once: rank 0 requests it from the others, other ranks pass the ``request`` of rank 0."""
        with action("Observe", rank=self.rank, at="renewal") as step:
            self._at.stage = Stage.REQUEST
            troubles = []
            if request is None:
                generation = self._at.generation = controller.begin()
                troubles.append(self._request(controller, generation))
            else:
                if request.plan != controller.agreed.fingerprint:
                    raise MisuseError(f"rank {request.source} requests a renewal by another plan")
                generation = self._at.generation = controller.begin(request.generation)
            troubles.append(heartbeat_error(self._heartbeat, rank=self.rank, generation=generation))
            seen = observe_inputs(
                lambda: controller.capability,
                self._host.processor_name,
                rank=self.rank,
                generation=generation,
                local_error="; ".join(filter(None, troubles)),
            )
            step.outcome = "Failed" if seen.error else "Observed"
        agreed = controller.agreed
        attempt = replace(
            self._startup, epoch=agreed.epoch, generation=generation, timeout=agreed.plan.timeout
        )
        result = self._attempted(seen, attempt)
        self._latest = result
        with action("Consume", rank=self.rank, at="renewal") as step:
            self.result = result
            completion = complete_renewal(
                controller, generation, result, clock=self._time.clock, rank=self.rank
            )
            if completion.success:
                step.outcome = "Success"
            elif completion.diagnostic is None:
                step.outcome = "Failure"
                self._at.stage = Stage.COMPLETION
                unproved = self._at.diagnose(Code.UNVERIFIED, "the locks were not proved again")
                self.fail(result.diagnostic or unproved)
            else:
                step.outcome = "Accounting"
                self.fail(completion.diagnostic)

    def _request(self, controller: RenewalController, generation: int) -> str:
        """Ask the others to renew; the reason if that fails, else "". This rank's record then has it."""
        assert self._notices is not None
        tell = self._notices.tell

        def request() -> str:
            tell(Notice.RENEW, generation=generation, plan=controller.agreed.fingerprint)
            return ""

        return contained("renewal request failed", self._at, request, lambda diagnostic: diagnostic.text)

    def fail(self, diagnostic: Diagnostic) -> None:
        """Keep the first failure, after which the fleet must end."""
        if self.fatal is None:
            self.fatal = diagnostic

    # -- the end ----------------------------------------------------------------------------------------

    def drain(self) -> None:
        """This rank got a signal to end: ask all others to drain too."""
        if not self.draining:
            self.draining = True
            self._tell(Notice.DRAIN)

    def done(self) -> None:
        """Report that this rank has nothing more to do.

        ``ended`` becomes true once no rank has; until then go on taking turns, since renewals need all ranks.
        """
        if self.rank == 0:
            self._done.add(0)
            self._end_if_all_done()
        else:
            self._tell(Notice.DONE, 0)

    def _end_if_all_done(self) -> None:
        if self.rank == 0 and len(self._done) == self.size:
            self._tell(Notice.END)
            self.ended = True

    def _tell(self, notice: Notice, *to: int) -> None:
        """Send a notice to each rank. If sending to one fails, that is kept and the others still get it."""
        notices = self._notices
        if notices is None:
            return
        what = f"the notice {notice.value!r} cannot be sent"
        for dest in to or notices.others:
            contained(what, self._at, partial(notices.tell, notice, dest), self.fail)

    def shutdown(self, stop: Callable[[], None]) -> None:
        """End this rank in order, then the fleet: Abort(70).

        All ranks are told to stop; ``stop()`` ends the service of this one within its own limits; then the
        others have ``grace`` seconds to end theirs.
        """
        assert self.fatal is not None
        with action("Shutdown", rank=self.rank):
            self._tell(Notice.STOP)
            contained("the service did not stop in order", self._at, stop, self.fail)
        self._tell_people(self.fatal.text)
        self._tell(Notice.DOWN)
        contained("the others' end is not known", self._at, self._wait_for_others, self.fail)
        self._abort(ABORT_FAILED)

    def _wait_for_others(self) -> None:
        self._waits_for_others = True
        deadline = self._time.clock() + self._grace
        delay = FIRST_PAUSE
        while len(self._down) < self.size - 1:
            self._hear()
            left = deadline - self._time.clock()
            if left <= 0:
                return
            self._time.pause(min(delay, left))
            delay = min(2 * delay, LONGEST_PAUSE)

    def _tell_people(self, text: str) -> None:
        """Print a message. If that fails, the rank still goes on to its end."""
        contained("nobody hears it", self._at, lambda: self._say(text), lambda diagnostic: None)

    def _abort(self, code: int) -> None:
        with action("Abort", rank=self.rank, code=code):
            self._comm.Abort(code)
