"""Threads that ask, cancel and kill as they come, over a real engine; every step recorded in its order."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from conformance.engine.trace import Recorded
from conformance.seam import Recorder
from smtspool.actions import observed_by
from smtspool.errors import ClosedError, InfrastructureError
from smtspool.query import Failure, Query, Status, parse_smt2
from smtspool.solve import CancelReason, EngineAnswer, ForkServer, Generation, PersistentSolver, parse_engine

__all__ = ["Stress", "Watched", "started", "stress"]

_EASY = "(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= x #x{:02x}))(check-sat)"
# No engine factors this within the time limits used here.
_HARD = (
    "(set-logic QF_BV)(declare-const p (_ BitVec 128))(declare-const q (_ BitVec 128))"
    "(assert (= (bvmul p q) #xb5b5f2a9a4f4c7d93a1d9f6e5c0b7a31))"
    "(assert (bvugt p #x00000000000000000000000000000001))"
    "(assert (bvugt q #x00000000000000000000000000000001))"
    "(assert (bvult p #x00000000000000010000000000000000))"
    "(assert (bvult q #x00000000000000010000000000000000))(check-sat)"
)


@dataclass(frozen=True, slots=True)
class Stress:
    """A run and its results."""

    lines: list[Recorded]
    answers: list[EngineAnswer]
    asked: int
    refused: int
    kills: int
    closed: bool

    @property
    def sound(self) -> bool:
        """Every request ended: answered, cancelled, late, refused, or with the helper that was killed."""
        return (
            self.closed
            and len(self.answers) + self.refused == self.asked
            and not any(
                answer.status is Status.ERROR and answer.attempt.failure is not Failure.CRASHED
                for answer in self.answers
            )
        )


class Watched(ForkServer):
    """The fork server, and which helper it gave last."""

    last: Generation | None = None

    def spawn(self, deadline: float) -> Generation:
        self.last = super().spawn(deadline)
        return self.last


def stress(seed: int, *, asking: int, requests: int, kills: int) -> Stress:
    """``asking`` threads with ``requests`` each, one that cancels, one that kills helpers, and a close that
    comes while some still ask."""
    queries = [query for text in (_EASY.format(1), _EASY.format(2), _HARD) for query in parse_smt2(text)]
    answers: list[EngineAnswer] = []
    done = threading.Event()
    refused = killed = 0
    counting = threading.Lock()
    recorder = Recorder()
    server = Watched(parse_engine("bitwuzla"))
    with server:
        solver = PersistentSolver(server)

        def ask(number: int) -> None:
            nonlocal refused
            choice = random.Random(f"{seed} asks {number}")
            for count in range(requests):
                query = choice.choice(queries)
                deadline = time.monotonic() + choice.choice([0.03, 20.0, 20.0])
                try:
                    answer = solver.solve(query, attempt_id=f"a{number}-{count}", deadline=deadline)
                except ClosedError:
                    with counting:
                        refused += 1
                    continue
                with counting:
                    answers.append(answer)

        def cancel() -> None:
            choice = random.Random(f"{seed} cancels")
            while not done.wait(choice.choice([0.001, 0.004, 0.012])):
                query: Query = choice.choice([queries[0], queries[2], queries[2]])
                solver.cancel(query.id, CancelReason.USER)

        def kill() -> None:
            nonlocal killed
            choice = random.Random(f"{seed} kills")
            while killed < kills and not done.wait(choice.choice([0.02, 0.05])):
                generation = server.last
                if generation is not None and generation.alive:
                    with suppress(ProcessLookupError):
                        os.kill(generation.pid, signal.SIGKILL)
                        killed += 1

        with observed_by(recorder):
            askers = [started(f"asks{number}", ask, number) for number in range(asking)]
            others = [started("cancels", cancel), started("kills", kill)]
            for thread in askers[1:]:
                thread.join(120.0)
            closed = solver.close(20.0)  # the first one may still be at it
            askers[0].join(120.0)
            done.set()
            for thread in others:
                thread.join(120.0)
            if any(thread.is_alive() for thread in (*askers, *others)):
                raise InfrastructureError("a thread of the stress run does not end")
    return Stress(recorder.lines, answers, asking * requests, refused, killed, closed)


def started(name: str, run: Callable[..., None], *arguments: object) -> threading.Thread:
    """A thread that runs."""
    thread = threading.Thread(target=run, args=arguments, name=name)
    thread.start()
    return thread
