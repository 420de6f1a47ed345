"""Races of the three real engines on threads that run freely, delayed, cancelled and killed at random.

Races come in rounds. A round has a portfolio over fork servers, which outlive it, two threads that race, one
that cancels, one that kills helpers, and a close at the end. It is recorded like a service and checked as
``trace check`` does. No request or helper lives when a round begins or ends, so that each is a recording of
its own.
"""

from __future__ import annotations

import heapq
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.cancellation.stress import Watched, started
from conformance.cancellation.windows import SOLVING, Steps, check
from conformance.engine.replay import Divergence
from conformance.engine.trace import Recorded
from conformance.recording import lines_of
from smtspool.query import Answer, Query, Status, parse_smt2
from smtspool.service import traced
from smtspool.solve import (
    BUNDLED,
    Cancellation,
    CancelReason,
    Confirm,
    Hedge,
    HedgePolicy,
    Portfolio,
    RaceRules,
    parse_engine,
)

__all__ = ["Totals", "stress"]

ASKERS = 2
_EASY = "(set-logic QF_BV)(declare-const x (_ BitVec 16))(assert (= (bvmul x x) #x{:04x}))(check-sat)"
_UNSAT = (
    "(set-logic QF_BV)(declare-const x (_ BitVec 16))(assert (bvult x #x{0:04x}))"
    "(assert (bvugt x #x{0:04x}))(check-sat)"
)
# Asks for two factors of a prime, which no engine refutes within the time limits used here.
_HARD = (
    "(set-logic QF_BV)(declare-const p (_ BitVec 32))(declare-const q (_ BitVec 32))"
    "(assert (bvugt p (_ bv{} 32)))(assert (bvule p q))(assert (= (bvmul ((_ zero_extend 32) p)"
    " ((_ zero_extend 32) q)) (_ bv4611686018427387847 64)))(check-sat)"
)


@dataclass(slots=True)
class Totals:
    """What was raced and checked, over all rounds."""

    races: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    cancels: int = 0
    lines: int = 0
    windows: int = 0
    kinds: int = 0
    latencies: list[float] = field(default_factory=list)  # milliseconds from the cancel to the return
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """One sentence of each."""
        late = sorted(self.latencies) or [0.0]
        median, p99 = late[len(late) // 2], late[int(0.99 * (len(late) - 1))]
        return (
            f"{self.races} races in {self.seconds:.0f} s: {dict(sorted(self.statuses.items()))}; "
            f"attempts {dict(sorted(self.attempts.items()))}; {self.cancels} cancelled, "
            f"median {median:.1f} ms and P99 {p99:.1f} ms to the return; {self.kills} helpers killed; "
            f"{self.lines} lines in {self.windows} windows of {self.kinds} kinds, all explained"
        )


class _Canceller:
    """One thread that cancels when it is time."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Cancellation]] = []
        self._changed = threading.Condition()
        self._over = False
        self.done: dict[int, float] = {}  # token -> when
        self._thread = threading.Thread(target=self._run, name="cancels")
        self._thread.start()

    def at(self, when: float, token: Cancellation) -> None:
        """Cancel then."""
        with self._changed:
            heapq.heappush(self._due, (when, id(token), token))
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._over:
                    return
                now = time.monotonic()
                if not self._due or self._due[0][0] > now:
                    self._changed.wait(self._due[0][0] - now if self._due else None)
                    continue
                _, _, token = heapq.heappop(self._due)
                self.done[id(token)] = now
            token.cancel(CancelReason.USER)

    def close(self) -> None:
        """No more of it."""
        with self._changed:
            self._over = True
            self._changed.notify()
        self._thread.join()


@dataclass(slots=True)
class _Round:
    """One portfolio and the threads that use it."""

    seed: int
    servers: Sequence[Watched]
    portfolio: Portfolio
    canceller: _Canceller
    totals: Totals
    answers: list[tuple[str, Answer]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)
    counting: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, number: int, races: int) -> None:
        """Race one query after the other."""
        choice = random.Random(f"{self.seed} asks {number}")
        # The two askers use queries with different ids, since a race ends all requests for its query.
        square = (2 * number + 3) ** 2
        queries = {
            "sat": parse_smt2(_EASY.format(square))[0],
            "unsat": parse_smt2(_UNSAT.format(5 + number))[0],
            "hard": parse_smt2(_HARD.format(1 + number))[0],
        }
        for _ in range(races):
            kind = choice.choices(("sat", "unsat", "hard"), (4, 4, 3))[0]
            self._race(kind, queries[kind], choice)

    def _race(self, kind: str, query: Query, choice: random.Random) -> None:
        token = Cancellation()
        limit = 20.0
        if kind == "hard":
            limit = choice.choice([0.01, 0.03, 20.0, 20.0, 20.0])
        if limit > 1 and (kind == "hard" or choice.random() < 0.3):
            most = 0.03 if kind == "hard" else 0.008
            self.canceller.at(time.monotonic() + choice.uniform(0.0, most), token)
        try:
            answer = self.portfolio.solve(query, timeout_s=limit, cancel=token, hard=choice.random() < 0.5)
        except Exception as error:  # noqa: BLE001  whatever a race raises is a finding
            self.faults.append(f"a race raised {error!r}")
            return
        now = time.monotonic()
        with self.counting:
            self.answers.append((kind, answer))
            if (when := self.canceller.done.pop(id(token), None)) is not None:
                self.totals.cancels += 1
                self.totals.latencies.append((now - when) * 1e3)

    def kill(self) -> None:
        """Kill a helper now and then."""
        choice = random.Random(f"{self.seed} kills")
        while not self.done.wait(choice.uniform(0.0, 0.2)):
            generation = choice.choice(self.servers).last
            if generation is not None and generation.alive:
                with suppress(ProcessLookupError):
                    os.kill(generation.pid, signal.SIGKILL)
                    self.totals.kills += 1

    def run(self, races: int) -> None:
        """All of it, to the end of every thread."""
        askers = [started(f"asks{number}", self.ask, number, races // ASKERS) for number in range(ASKERS)]
        killer = started("kills", self.kill)
        for thread in askers:
            thread.join()
        self.done.set()
        killer.join()
        self.canceller.close()
        if not self.portfolio.close(20.0):
            self.faults.append("close left somebody behind")


def stress(
    seed: int, *, races: int, a_round: int = 1000, say: Callable[[str], None] = lambda _: None
) -> Totals:
    """``races`` races. Raises :class:`Divergence` at the first fault: a lost cancellation, an answer or an
    attempt that is recorded wrongly, something left behind, a line that the model does not explain."""
    totals, known = Totals(), set[Steps]()
    started = time.monotonic()
    with _leaving_nothing(f"seed {seed}"), ExitStack() as stack:
        servers = [Watched(parse_engine(name)) for name in BUNDLED]
        for server in servers:
            stack.enter_context(server)
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="races-")))
        for number in range(-(-races // a_round)):
            count = min(a_round, races - number * a_round)
            recording = folder / f"{number}.ndjson"
            with traced(recording):
                answers = _race(seed + number, servers, count, totals)
            lines = lines_of(recording.read_text(), SOLVING)
            recording.unlink()
            _compare(answers, lines, totals)
            checked = check(lines, known=known)
            if checked.fault is not None:
                raise Divergence(f"seed {seed + number}: {checked.fault}", "trace")
            totals.races += len(answers)
            totals.lines += checked.lines
            totals.windows += checked.windows
            totals.kinds = len(known)
            totals.seconds = time.monotonic() - started
            say(totals.text)
    return totals


def _race(seed: int, servers: Sequence[Watched], races: int, totals: Totals) -> list[tuple[str, Answer]]:
    rules = RaceRules(cpus=3, report_s=0.005)
    policy = HedgePolicy(Hedge.FIXED, 0.001, 0.004)
    portfolio = Portfolio(servers, rules=rules, policy=policy, confirm=Confirm.ENGINE)
    whole = _Round(seed, servers, portfolio, _Canceller(), totals)
    whole.run(races)
    if whole.faults:
        raise Divergence(f"seed {seed}: {whole.faults[0]}", "stress")
    return whole.answers


def _compare(answers: Sequence[tuple[str, Answer]], lines: Sequence[Recorded], totals: Totals) -> None:
    """Compare the answers and their attempts with the outcomes of the solvers."""
    settled: dict[str, str] = {}
    for line in lines:
        if line.action == "Settle":
            settled[str(line.params["attempt"])] = str(line.outcome)
        elif line.action == "AcquireIO" and line.outcome == "left":
            settled[str(line.params["attempt"])] = "left"
        elif (line.action, line.outcome) == ("CancelFuture", "cancelled") or (
            line.action == "Register" and line.error is not None
        ):
            settled[str(line.params["attempt"])] = "unbegun"
    for kind, answer in answers:
        totals.statuses[f"{kind} {answer.status.value}"] += 1
        if answer.status.definite and answer.status.value != kind:
            raise Divergence(f"{kind} was answered {answer}", "stress")
        if answer.status is Status.SAT and answer.verified_by in (None, answer.engine):
            raise Divergence(f"nobody verified {answer}", "stress")
        for attempt in answer.attempts:
            what = settled.get(attempt.attempt_id, "never")
            wrong = attempt.cancelled == (what == "answered")
            if wrong or (attempt.cancelled and what not in (attempt.cancel_reason, "left", "unbegun")):
                raise Divergence(f"an attempt settled as {what} and is recorded as {attempt}", "stress")
            totals.attempts[str(attempt.cancel_reason or attempt.status.value)] += 1


@contextmanager
def _leaving_nothing(what: str) -> Iterator[None]:
    before = _belongings()
    yield
    deadline = time.monotonic() + 20
    while any(count > before[name] for name, count in _belongings().items()):
        if time.monotonic() > deadline:
            raise Divergence(f"{what} left {_belongings()}, and began with {before}", "leak")
        threading.Event().wait(0.01)


def _belongings() -> Mapping[str, int]:
    """Threads, descriptors and processes."""
    return {
        "threads": threading.active_count(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "processes": _descendants(os.getpid()),
    }


def _descendants(pid: int) -> int:
    found, todo = 0, [pid]
    while todo:
        one = todo.pop()
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in Path(f"/proc/{one}/task").iterdir():
                children = [int(child) for child in (task / "children").read_text().split()]
                found += len(children)
                todo += children
    return found
