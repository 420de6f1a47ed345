"""The real state of a race as values of the variables of ``models/cancellation/Race.tla``.

Calls are named as in the model: ``s1`` is what its part asks the engine s1, ``k1`` the check of its model by
another engine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance.cancellation.environment import Clock, Server, looked
from conformance.engine.gates import At, Idle
from conformance.engine.module import variables
from conformance.engine.replay import gate_of
from conformance.engine.stage import Moving, Stage
from conformance.engine.values import Function, Value, function
from smtspool.errors import ClosedError, InfrastructureError
from smtspool.query import Attempt, Failure, Status
from smtspool.solve import (
    Cancellation,
    Closing,
    FailureKind,
    Part,
    Portfolio,
    PortfolioView,
    Race,
    RequestView,
    SolverView,
)

__all__ = ["CHECK", "MODULE", "Projection"]

MODULE = Path(__file__).parents[2] / "models" / "cancellation" / "Race.tla"
VARIABLES = variables(MODULE)

NONE, NOBODY = "none", "nobody"
CHECK = "/check"
_PARTS = {
    Part.QUEUED: "queued",
    Part.RUNNING: "running",
    Part.ENDED: "done",
    Part.CANCELLED: "cancelled",
}
_CLOSER = {Closing.RACES: "await", Closing.SOLVERS: "left", Closing.THREADS: "pool"}
_RACE = {
    "Enter": "enter",
    "Tell": "tell",
    "Submit": "go",
    "CallOff": "call off",
    "CancelFuture": "future",
    "CancelSolver": "solver",
    "Leave": "leave",
}


class Projection:
    """Reads a race. The harness notes what the code does not keep: on what a call settled, and its id."""

    def __init__(
        self, portfolio: Portfolio, servers: Mapping[str, Server], clock: Clock, limit: float
    ) -> None:
        self.portfolio = portfolio
        self.servers = servers
        self.clock = clock
        self.limit = limit
        self.engines = tuple(servers)
        self.checks: Mapping[str, str] = {}  # the check of a model -> whose model
        self.token = Cancellation()
        self.busy = 0
        self.seen: Race | None = None  # the race, once it has entered
        self.patience = True
        self.reported: set[str] = set()
        self.jobs: list[threading.Event] = []  # each holds a thread of the pool until it is set
        self.stage: Stage
        self._portfolio: PortfolioView | None = None  # while all of it is looked at
        self._ids: dict[str, int] = {}
        self._heard: dict[str, str] = {}
        self._ends: dict[str, str] = {}
        self._record: Mapping[str, str] = {}

    @property
    def lanes(self) -> list[SolverView]:
        """Every solver, in the order in which close closes them."""
        portfolio = self._portfolio or looked(self.portfolio.view)
        return [*portfolio.solvers, *portfolio.checkers]

    # notes

    def note_id(self, call: str, attempt: str) -> None:
        """The number in an attempt id."""
        self._ids[call] = int(attempt.rpartition("-" if "/" in attempt else ".")[2])

    def note_heard(self, call: str) -> None:
        """Note the outcome of its exchange, just before ``Settle``."""
        self._heard[call] = self.heard_of(call)

    def note_end(self, call: str, outcome: str | None) -> None:
        """Note on what it settled. A check without a helper is followed by another, which may fail too."""
        end = self._heard[call] if outcome == "answered" else str(outcome)
        if self._ends.get(call) != "no helper" or end not in ("unknown", "failed", "deadline"):
            self._ends[call] = end

    # names

    @property
    def calls(self) -> tuple[str, ...]:
        """Every call of the model."""
        return (*self.engines, *self.checks)

    def part_of(self, call: str) -> str:
        """On whose thread a call runs."""
        return self.checks.get(call, call)

    def call_at(self, params: Mapping[str, Any]) -> str:
        """The call that a solver's step is about."""
        solver = str(params["solver"])
        if not solver.endswith(CHECK):
            return solver
        number = int(str(params["attempt"]).partition("/")[0].rpartition(".")[2])
        return f"k{self.engines[number - 1][1:]}"

    def registration(self, call: str) -> tuple[RequestView, SolverView] | None:
        """What a call shows, and its solver, while it is registered; else None."""
        return next(self._registrations(call), None)

    def request(self, call: str) -> RequestView:
        """What a call shows that is registered."""
        return next(self._registrations(call))[0]

    def opinion(self) -> tuple[RequestView, SolverView] | None:
        """The second check of a model that the race itself waits for; ``Race.tla`` does not have it."""
        if not isinstance(self.stage.players["race"].position, Moving):
            return None
        asked = (self.registration(check) for check, part in self.checks.items() if part in self.reported)
        return next((mine for mine in asked if mine is not None), None)

    def server_of(self, call: str) -> Server:
        """Where the helper of a call that is registered comes from."""
        return next(self.servers[lane.engine] for _, lane in self._registrations(call))

    def _registrations(self, call: str) -> Iterator[tuple[RequestView, SolverView]]:
        """A model may be checked by any other engine, and by another one if that could not tell."""
        for lane in self.lanes:
            for one in lane.requests:
                if self.call_at({"solver": lane.name, "attempt": one.attempt_id}) == call:
                    yield one, lane

    # gates

    def player_of(self, name: str, of: str) -> str:
        """The player that takes a step of the model."""
        if name in ("Register", "Settle", "Report"):
            return self.part_of(of)
        return "closer" if name in ("Shut", "Close") or of == "closer" else "race"

    def gate(self, who: str, at: At) -> dict[Value, Value]:
        """The step of the model at whose gate a player stands, without its outcome."""
        gate: dict[Value, Value] = {"name": at.name}
        if at.name in ("Register", "Settle"):
            gate["of"] = self.call_at(at.params)
        elif at.name in ("Submit", "CancelFuture", "CancelSolver", "Report"):
            gate["of"] = str(at.params["solver"])
        elif at.name == "Hear":
            gate["of"] = self._sender(str(at.params["letter"]))
        elif at.name == "Tell":
            gate["of"] = who
        elif at.name == "Close":
            names = [lane.name for lane in self.lanes]
            gate["lane"] = names.index(str(at.params["solver"])) + 1
        return gate

    def standing(self) -> frozenset[str]:
        """The gates where threads stand."""
        return frozenset(
            gate_of(Function(self.gate(player.name, player.position)))
            for player in self.stage.players.values()
            if isinstance(player.position, At)
        )

    def _sender(self, letter: str) -> str:
        """The solver whose attempt it is, or the reason."""
        return self.engines[int(letter.rpartition(".")[2]) - 1] if "." in letter else letter

    # the variables

    def project(self) -> dict[str, Value]:
        """The real state, with all variables of the module."""
        self._remember()
        self._portfolio = looked(self.portfolio.view)
        try:
            return {name: getattr(self, f"_project_{name}")() for name in VARIABLES}
        finally:
            self._portfolio = None

    def _each(self, names: tuple[str, ...], of: Callable[[str], Value]) -> Value:
        return function({name: of(name) for name in names})

    def race_at(self) -> str:
        """Where the race stands."""
        position = self.stage.players["race"].position
        if isinstance(position, Idle):
            return "done"
        if isinstance(position, At) and position.name in _RACE:
            return _RACE[position.name]
        return "settle" if self.over() else "go"

    def over(self) -> bool:
        """Whether the switch of the race is set."""
        return self.seen is not None and self.seen.over.reason is not None

    def ripe(self) -> bool:
        """Whether the next engine of the plan may join."""
        position = self.stage.players["race"].position
        if isinstance(position, At) and position.name == "Submit":
            return True
        if self.seen is None or self.over() or self.race_at() in ("call off", "leave", "done"):
            return True
        race = looked(self.seen.view)
        return not race.to_come or self.clock() >= race.next_start

    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return self.clock() >= self.limit

    def is_all_over(self) -> bool:
        """Whether the race has returned and all its parts have ended."""
        return self.race_at() == "done" and all(
            self.stage_of(call) in ("idle", "done") for call in self.calls
        )

    def future_of(self, solver: str) -> str:
        """The state of a solver's part."""
        parts = () if self.seen is None else looked(self.seen.view).parts
        return next((_PARTS[one.part] for one in parts if one.solver == solver), NONE)

    def stage_of(self, call: str) -> str:
        """The step that a call takes next."""
        part = self.part_of(call)
        position = self.stage.players[part].position
        if isinstance(position, Idle) or (part == call and self.future_of(part) in ("queued", "cancelled")):
            return "idle"
        if part in self.reported:
            return "done" if call in self._ids else "idle"
        now = self.call_of(part)
        if now == call:
            if isinstance(position, At):
                return position.name.lower()
            held = {(lane.holder, one.attempt_id) for one, lane in self._registrations(call)}
            alone = len(held) == 1 and all(holder == attempt for holder, attempt in held)
            return "asked" if alone else "queued"  # behind another check
        if call in self._ends:
            if isinstance(position, At) and position.name == "Report" and part == call:
                return "report"
            return "checking" if now is not None else "done"
        return "idle"

    def call_of(self, part: str) -> str | None:
        """The call that a part is at, None when it only has to report."""
        position = self.stage.players[part].position
        if isinstance(position, At):
            return None if position.name == "Report" else self.call_at(position.params)
        checks = [check for check, of in self.checks.items() if of == part and self.registration(check)]
        return checks[0] if checks else part

    def heard_of(self, call: str) -> str:
        """The outcome of its exchange."""
        found = self.registration(call)
        if found is None:
            return NONE
        mine, _ = found
        if mine.reply is not None:
            return "failed" if mine.reply is Status.ERROR else mine.reply.value
        if mine.failure is not None:
            return "timeout" if mine.failure is FailureKind.TIMEOUT else "failed"
        return "no helper" if mine.trouble else NONE

    def idle(self) -> int:
        """How many threads of the pool wait for work, or are not there yet."""
        taken = [name for name in self.engines if self.future_of(name) in ("running", "done")]
        return 2 * len(self.engines) - len(self.jobs) - sum(name not in self.reported for name in taken)

    def closer(self) -> str:
        """The step that the closer takes next."""
        position = self.stage.players["closer"].position
        if isinstance(position, At):
            return "tell" if position.name == "Tell" else "lane"
        if isinstance(position, Moving):
            return _CLOSER[looked(self.portfolio.view).closing]
        return "open" if position.result is None else "done"

    def _project_race(self) -> Value:
        return self.race_at()

    def _project_why(self) -> Value:
        position = self.stage.players["race"].position
        if isinstance(position, At) and position.name == "CallOff":
            return str(position.params["reason"])
        reason = None if self.seen is None else self.seen.over.reason
        return NONE if reason is None else reason.value

    def _project_over(self) -> Value:
        return self.over()

    def _project_ripe(self) -> Value:
        return self.ripe()

    def _project_patience(self) -> Value:
        return self.patience

    def _project_inbox(self) -> Value:
        return tuple(self._letters())

    def _letters(self) -> Iterator[Value]:
        """The one that is being read, then those in the box."""
        if self.seen is None or self.race_at() in ("leave", "done"):
            return
        position = self.stage.players["race"].position
        if isinstance(position, At) and position.name == "Hear":
            yield self._sender(str(position.params["letter"]))
        for letter in looked(self.seen.view).letters:
            yield self._sender(letter)

    def _project_known(self) -> Value:
        parts = () if self.seen is None else looked(self.seen.view).parts
        return frozenset(part.solver for part in parts if part.known)

    def _project_told(self) -> Value:
        if self.race_at() not in ("future", "solver"):
            return frozenset()
        position = self.stage.players["race"].position
        assert isinstance(position, At) and self.seen is not None
        later = {one.solver for one in looked(self.seen.view).parts if not one.known and one.told is None}
        return frozenset({*later, str(position.params["solver"])})

    def _project_future(self) -> Value:
        return self._each(self.engines, self.future_of)

    def _project_stage(self) -> Value:
        return self._each(self.calls, self.stage_of)

    def _project_reason(self) -> Value:
        def reason(call: str) -> Value:
            found = self.registration(call)
            return NONE if found is None or found[0].reason is None else found[0].reason.value

        return self._each(self.calls, reason)

    def _project_heard(self) -> Value:
        return self._each(self.calls, self.heard_of)

    def _project_end(self) -> Value:
        return self._each(self.calls, lambda call: self._ends.get(call, NONE))

    def _project_id(self) -> Value:
        return self._each(self.calls, lambda call: self._ids.get(call, 0))

    def _project_idle(self) -> Value:
        return self.idle()

    def _project_busy(self) -> Value:
        return self.busy

    def _project_late(self) -> Value:
        return self.is_late()

    def _project_token(self) -> Value:
        return self.token.reason is not None

    def _project_closer(self) -> Value:
        return self.closer()

    def _project_closing(self) -> Value:
        return sum(lane.closed for lane in self.lanes)

    # what it returned

    def _remember(self) -> None:
        """The record of the attempts, as the race gave it when it returned."""
        if self.race_at() == "done" and not self._record and self.seen is not None:
            answer = self._answer()
            attempts = self.seen.attempts if answer is None else answer.attempts
            self._record = {attempt.engine: _recorded(attempt) for attempt in attempts}

    def _answer(self) -> Any:
        position = self.stage.players["race"].position
        return position.result if isinstance(position, Idle) else None

    def _project_answer(self) -> Value:
        if self.race_at() != "done":
            return NONE
        answer, raised = self._answer(), self.stage.players["race"].raised
        if answer is not None:
            return str(answer.status.value)
        if isinstance(raised, ClosedError):
            return "refused"
        return "raised" if isinstance(raised, InfrastructureError) else repr(raised)

    def _project_winner(self) -> Value:
        answer = self._answer() if self.race_at() == "done" else None
        return str(answer.engine) if answer is not None and answer.status.definite else NOBODY

    def _project_record(self) -> Value:
        return self._each(self.engines, lambda name: self._record.get(name, NONE))


def _recorded(attempt: Attempt) -> str:
    if attempt.cancelled:
        return str(attempt.cancel_reason)
    if attempt.failure is Failure.UNHEARD:
        return "unheard"
    return str(attempt.status.value)
