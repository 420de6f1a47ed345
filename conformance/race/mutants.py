"""Named faults in the code of races: each restores a historical or plausible bug (F381, F467)."""

from __future__ import annotations

from conformance.engine.mutants import Mutant

__all__ = ["MUTANTS", "SHOWS_IN"]

_RACE = "smtspool.solve.race"
_RUNNER = "smtspool.solve.runner"
_PORTFOLIO = "smtspool.solve.portfolio"


def _mutant(name: str, fault: str, *changes: tuple[str, str], module: str = _RACE) -> Mutant:
    return Mutant.of(name, fault, *((module, old, new) for old, new in changes))


_TELL_SOLVER = "                runner.solver.cancel(self.query.id, reason)\n"
_AFTER = "        until = self.clock() + self.rules.report_s\n"
_AWAIT = "        while self._running:\n            letter = self.inbox.get(until)\n"

MUTANTS = (
    _mutant(
        "verification-skipped",
        "the first sat is believed, nobody checks its model",
        (
            "return Finding(said, model, self._verify(said.attempt, model, self.over))",
            "return Finding(said, model, Verdict(True, None))",
        ),
    ),
    _mutant(
        "any-sat-ends-it",
        "a sat is checked, and ends the race whatever came of it",
        ("or self.verdict.confirmed is True", "or self.said.status is Status.SAT"),
        module=_RUNNER,
    ),
    _mutant(
        "loser-leaked",
        "a loser that has begun is neither told nor awaited: its helper works on",
        (_TELL_SOLVER, "                pass\n"),
        (_AWAIT, _AWAIT.replace("self._running", "False")),
    ),
    _mutant(
        "loser-not-awaited",
        "losers are told, and the race returns before it hears what became of them",
        (_AWAIT, _AWAIT.replace("self._running", "False")),
    ),
    _mutant(
        "attempt-id-reused",
        "every engine of a race has the same attempt id",
        ('f"{self.name}.{len(self._runners) + 1}"', 'f"{self.name}.1"'),
    ),
    _mutant(
        "loser-not-told",
        "futures are cancelled, solvers are not (before F381)",
        (_TELL_SOLVER, "                pass\n"),
    ),
    _mutant(
        "switch-forgotten",
        "a loser that has begun and not registered is missed (F381 section 1)",
        ("            self.over.cancel(reason)\n", "            pass\n"),
    ),
    _mutant(
        "switch-set-late",
        "the switch is set once the losers were told",
        ("            self.over.cancel(reason)\n", "            pass\n"),
        (_AFTER, f"        self.over.cancel(reason)\n{_AFTER}"),
    ),
    _mutant(
        "future-not-cancelled",
        "a loser that is queued is left to the pool",
        ("unstarted = future.cancel()", "unstarted = False"),
    ),
    _mutant(
        "checks-not-told",
        "the engine that checks a loser's model works on",
        ("        self.verifier.cancel(self.query.id, reason)\n        until", "        until"),
    ),
    _mutant(
        "recorded-as-told",
        "a loser that had answered unheard is recorded as cancelled",
        ("if self.settled and self.ended is None:", "if False:"),
        module=_RUNNER,
    ),
    _mutant(
        "settling-unnoticed",
        "the race is not told what its parts settle on",
        ("            decided=runner.settle,\n", ""),
    ),
    _mutant(
        "disagreement-ignored",
        "an unsat beats another engine's model, or the other way round",
        ("if unsats and any(self._stands(sat, unsats) for sat in sats):", "if False:"),
    ),
    _mutant(
        "budget-ignored",
        "all engines start at once, whatever the CPUs",
        ("bool(self._to_come) and len(self._running) < self.rules.cpus", "bool(self._to_come)"),
    ),
    _mutant(
        "delay-ignored",
        "the next engine does not wait for its turn",
        ("self._start() + self.plan.delay_s", "self._start()"),
    ),
    _mutant(
        "stale-clock",
        "the race waits as if it had just begun",
        (
            "if self._can_start() else self.cutoff)\n",
            "if self._can_start() else self.cutoff + self.clock() - self._runners[0].started)\n",
        ),
    ),
    _mutant(
        "letter-lost",
        "the part of an engine that the machine gave no helper never reports",
        (
            "        if not future.cancelled():\n",
            "        if not future.cancelled() and not future.exception():\n",
        ),
    ),
    _mutant(
        "check-told-by-nobody",
        "a cancellation that comes when the race is over does not reach a check",
        ("        if over:  # nobody", "        if False:  # nobody"),
    ),
    _mutant(
        "close-forgets-races",
        "close waits for races that nobody told",
        ("        for race in races:\n", "        for race in races[:0]:\n"),
        module=_PORTFOLIO,
    ),
    _mutant(
        "close-lets-in",
        "a race may enter after close",
        ("            if self._closing is not Closing.OPEN:\n", "            if False:\n"),
        module=_PORTFOLIO,
    ),
    _mutant(
        "cancelled-before-unseen",
        "a race does not see that it was cancelled before it entered",
        ("        if reason is not None:\n            tell(reason)\n        try:", "        try:"),
        module="smtspool.solve.cancellation",
    ),
    _mutant(
        "deadline-forgotten",
        "a race that runs out of time waits on",
        ("                if self.clock() >= self.cutoff:\n", "                if False:\n"),
    ),
    Mutant.of(
        "control",
        "nothing is changed but the spelling",
        (
            _RACE,
            "if unsats and not self.rules.confirm_unsat:",
            "if unsats and (not self.rules.confirm_unsat):",
        ),
        control=True,
    ),
)

# The graphs that a fault shows in, where that is not the first; the rest is tried too.
SHOWS_IN = {
    "future-not-cancelled": "RaceQueue",
    "budget-ignored": "RaceCancel",
    "delay-ignored": "RaceHedged",
    "stale-clock": "RaceCancel",
    "letter-lost": "RaceHedged",
    "check-told-by-nobody": "RaceCancel",
    "close-forgets-races": "RaceClose",
    "close-lets-in": "RaceClose",
    "cancelled-before-unseen": "RaceCancel",
    "deadline-forgotten": "RaceQueue",
}
