"""Threads that ask and threads that cancel, as they come: the invariants of F381 §3 hold on every step."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from smtspool.actions import Step, observed_by
from smtspool.query import Query, Status
from smtspool.solve import CancelReason, EngineAnswer, ForkServer, PersistentSolver, parse_engine
from tests.solve.queries import EASY, EASY_UNSAT, HARD

REQUESTS = 60
ASKING = 4


class Chronicle:
    """Every step in its exact order: a mutex is held from its ``before`` to its ``after``."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._turn = threading.Lock()

    def before(self, step: Step) -> None:
        self._turn.acquire()

    def after(self, step: Step) -> None:
        self.steps.append(step)
        self._turn.release()


@contextmanager
def chronicle() -> Iterator[Chronicle]:
    observer = Chronicle()
    with observed_by(observer):
        yield observer


def run(solver: PersistentSolver) -> list[EngineAnswer]:
    """Four threads ask, one cancels whatever may be running until they are done."""
    answers: list[EngineAnswer] = []
    stop = threading.Event()

    def ask(seed: int) -> None:
        choice = random.Random(seed)
        for number in range(REQUESTS):
            query: Query = choice.choice([EASY, EASY_UNSAT, HARD])
            deadline = time.monotonic() + choice.choice([0.02, 20.0, 20.0])
            answers.append(solver.solve(query, attempt_id=f"{seed}-{number}", deadline=deadline))

    def cancel() -> None:
        choice = random.Random(0)
        while not stop.wait(choice.choice([0.0, 0.001, 0.004])):
            solver.cancel(choice.choice([HARD.id, HARD.id, HARD.id, EASY.id]), CancelReason.USER)

    threads = [threading.Thread(target=ask, args=[seed]) for seed in range(1, ASKING + 1)]
    canceller = threading.Thread(target=cancel)
    for thread in (*threads, canceller):
        thread.start()
    for thread in threads:
        thread.join(120)
    stop.set()
    canceller.join()
    assert not any(thread.is_alive() for thread in threads)
    return answers


def test_the_invariants_hold_under_random_cancellation() -> None:
    with ForkServer(parse_engine("bitwuzla")) as server:
        solver = PersistentSolver(server)
        with chronicle() as seen:
            answers = run(solver)
        assert solver.close()

    assert len(answers) == REQUESTS * ASKING
    attempts = {answer.attempt.attempt_id: answer for answer in answers}
    steps: dict[str, list[str]] = defaultdict(list)
    for step in seen.steps:
        assert step.error is None
        if "attempt" in step.params:
            steps[str(step.params["attempt"])].append(step.name)

    for attempt_id, answer in attempts.items():
        taken = steps[attempt_id]
        assert taken[0] == "Register", "registration before I/O"
        assert taken[-1] == "Unregister", "cleanup totality"
        assert ("Settle" in taken) == ("Admit" in taken), "who had the turn passes it on"
        assert answer.status is not Status.ERROR, "a cancellation is never an error"
        if not answer.attempt.cancelled:
            assert answer.status in (Status.SAT, Status.UNSAT)

    used: dict[int, list[EngineAnswer]] = defaultdict(list)
    for step in seen.steps:
        if step.name == "Settle":
            answer = attempts[str(step.params["attempt"])]
            if answer.attempt.generation:
                used[answer.attempt.generation].append(answer)
    for users in used.values():
        assert not any(user.attempt.cancelled for user in users[:-1]), "cold recovery"

    signals = [step for step in seen.steps if step.name == "Signal"]
    assert signals, "some helper was killed at work"
    for step in signals:
        last_user = used[int(str(step.params["generation"]))][-1:]
        assert all(user.attempt.cancelled for user in last_user), "exact active interrupt"
