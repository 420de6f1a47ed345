"""A thread that the machine refuses is a failure of the machine: said, and tried again."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from smtspool import threads
from smtspool.errors import InfrastructureError
from smtspool.query import Answer, Failure, Status, parse_smt2
from smtspool.solve import Hedge, HedgePolicy, Portfolio
from tests.solve.refusals import no_more_threads
from tests.solve.scripted import ScriptedServer
from tests.solve.tracks import no_trace

(QUERY,) = parse_smt2("(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= x #x2a))(check-sat)")


def test_a_thread_is_really_refused() -> None:
    with no_more_threads(), pytest.raises(RuntimeError, match="can't start new thread"):
        threading.Thread(target=print).start()


def test_work_that_got_no_thread_is_done_by_nobody_later() -> None:
    done: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        with no_more_threads(), pytest.raises(InfrastructureError, match="refuses one more thread"):
            threads.submit(pool, lambda: done.append("refused"))
        threads.submit(pool, lambda: done.append("asked for")).result()
    assert done == ["asked for"]


def test_what_the_work_raises_is_in_the_future() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(ZeroDivisionError):
        threads.submit(pool, lambda: 1 // 0).result()


def test_a_race_without_a_thread_fails_and_the_next_is_as_ever() -> None:
    with (
        no_trace(),
        ScriptedServer("bitwuzla", "unsat") as one,
        ScriptedServer("z3", "unsat") as other,
        Portfolio([one, other], policy=HedgePolicy(Hedge.FIXED)) as portfolio,
    ):
        with no_more_threads(), pytest.raises(InfrastructureError, match="refuses one more thread"):
            portfolio.solve(QUERY, timeout_s=10)
        assert portfolio.solve(QUERY, timeout_s=10).status is Status.UNSAT


def test_a_race_goes_on_without_whom_it_has_no_thread_for() -> None:
    with (
        no_trace(),
        ScriptedServer("bitwuzla", "unsat") as one,
        ScriptedServer("z3", "unsat") as other,
        # However slow the machine is, z3 does not join by itself.
        Portfolio([one, other], policy=HedgePolicy(Hedge.FIXED, floor_s=60, hard_s=60)) as portfolio,
    ):
        answer = solved_with_one_thread(portfolio)
    assert (answer.status, answer.engine) == (Status.UNSAT, "bitwuzla")
    assert [attempt.engine for attempt in answer.attempts] == ["bitwuzla", "z3"]
    assert "refuses one more thread" in (answer.attempts[1].reason or "")
    assert answer.attempts[1].failure is Failure.UNASKED


def solved_with_one_thread(portfolio: Portfolio) -> Answer:
    """Race all engines with the thread and the helper that a race of the first engine alone leaves behind.

    The thread is idle a moment after that race has ended, and nothing tells when. Until then the kernel
    refuses the first engine a thread, or the second one a helper, or a signal to the helper of the first.
    """
    deadline = time.monotonic() + 30
    while True:
        portfolio.policy.mode = Hedge.FIXED
        assert portfolio.solve(QUERY, timeout_s=10).engine == "bitwuzla"
        portfolio.policy.mode = Hedge.TOGETHER
        try:
            with no_more_threads():
                return portfolio.solve(QUERY, timeout_s=10)
        except (InfrastructureError, OSError):
            assert time.monotonic() < deadline, "the thread of the first race never becomes idle"
