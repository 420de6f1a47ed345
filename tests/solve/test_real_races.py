"""Races of the bundled engines: real helpers, real hard queries, cancelled at all sorts of moments."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from smtspool.query import Query, Status, parse_file
from smtspool.solve import (
    BUNDLED,
    Cancellation,
    CancelReason,
    Confirm,
    EngineSpec,
    ForkServer,
    Hedge,
    HedgePolicy,
    HelperLimits,
    PersistentSolver,
    Portfolio,
    RaceRules,
    parse_engine,
)
from tests.solve.queries import EASY, EASY_UNSAT, HARD

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def servers() -> Iterator[list[ForkServer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(ForkServer(parse_engine(name))) for name in BUNDLED]


@pytest.fixture
def portfolio(servers: list[ForkServer]) -> Iterator[Portfolio]:
    policy, rules = HedgePolicy(Hedge.TOGETHER), RaceRules(cpus=3)
    with Portfolio(servers, policy=policy, rules=rules, confirm=Confirm.ENGINE) as opened:
        yield opened


def cancelled_after(delay_s: float, reason: CancelReason = CancelReason.USER) -> Cancellation:
    token = Cancellation()
    threading.Timer(delay_s, token.cancel, [reason]).start()
    return token


def test_easy_queries_are_answered_and_verified(portfolio: Portfolio) -> None:
    answer = portfolio.solve(EASY, timeout_s=30)
    assert (answer.status, answer.model) == (Status.SAT, {"x": "#x05"})
    assert answer.verified_by not in (None, answer.engine)
    assert portfolio.solve(EASY_UNSAT, timeout_s=30).status is Status.UNSAT


@pytest.mark.parametrize("delay_ms", [0, 5, 10, 20, 50, 100])
@pytest.mark.parametrize("engine", BUNDLED)
def test_the_ladder_of_cancellations(servers: list[ForkServer], engine: str, delay_ms: int) -> None:
    """JavaSMT's ladder: whatever phase an engine is in, cancellation ends it and the next query is right."""
    (server,) = (server for server in servers if server.spec.name == engine)
    with Portfolio([server]) as portfolio:
        portfolio.solve(EASY_UNSAT, timeout_s=30)
        answer = portfolio.solve(HARD, timeout_s=30, cancel=cancelled_after(delay_ms / 1e3))
        assert answer.reason == "cancelled: user"
        assert answer.elapsed_ms < 5_000
        again = portfolio.solve(EASY_UNSAT, timeout_s=30)
        assert (again.status, again.attempts[0].prefix_hit) == (Status.UNSAT, 0)


@pytest.mark.parametrize("engine", BUNDLED)
def test_the_slot_of_an_engine_that_does_not_stop_is_free_by_limit_and_grace(
    servers: list[ForkServer], engine: str
) -> None:
    (server,) = (server for server in servers if server.spec.name == engine)
    solver = PersistentSolver(server)
    started = time.monotonic()
    answer = solver.solve(HARD, attempt_id="hard", deadline=started + 0.3, timeout_ms=60_000)
    assert answer.attempt.reason == "timeout"
    assert time.monotonic() - started < 2.0
    assert solver.solve(EASY, attempt_id="easy", deadline=time.monotonic() + 30).status is Status.SAT
    assert solver.close()


def test_a_heavy_race_returns_at_its_limit(portfolio: Portfolio) -> None:
    answer = portfolio.solve(HARD, timeout_s=0.3)
    assert (answer.status, answer.reason, answer.at_limit) == (Status.UNKNOWN, "timeout", True)
    assert answer.elapsed_ms < 2_000


@pytest.mark.parametrize("engine", BUNDLED)
def test_every_engine_can_verify(portfolio: Portfolio, engine: str) -> None:
    others = set(BUNDLED) - {engine}
    assert tuple(portfolio.verify(EASY, {"x": "#x05"}, exclude=others)) == (True, engine)
    assert tuple(portfolio.verify(EASY, {"x": "#x06"}, exclude=others)) == (False, engine)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("bytearray(1 << 30)", id="over its memory"),
        pytest.param("raise SystemExit(0)", id="leaves in silence"),
        pytest.param("import os; os.kill(os.getpid(), 11)", id="segmentation fault"),
    ],
)
def test_an_external_engine_that_fails_is_an_error_and_the_race_goes_on(
    servers: list[ForkServer], program: str
) -> None:
    loop = f"import sys\nfor _ in sys.stdin: {program}"
    spec = EngineSpec("mine", (sys.executable, "-S", "-E", "-c", loop))
    with (
        ForkServer(spec, HelperLimits(memory=512 << 20)) as mine,
        Portfolio(
            [mine, *servers], rules=RaceRules(cpus=1), policy=HedgePolicy(Hedge.FIXED, 60, 60)
        ) as portfolio,
    ):
        answer = portfolio.solve(EASY, timeout_s=30)
        assert answer.attempts[0].status is Status.ERROR, answer
        assert (answer.status, answer.engine) == (Status.SAT, "bitwuzla")


def test_cancelled_races_leave_no_zombie_thread_or_descriptor_under_a_limit_of_256() -> None:
    run_apart(60)


@pytest.mark.slow
def test_a_thousand_cancelled_races_leave_nothing() -> None:
    run_apart(1000)


def run_apart(races: int) -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.solve.cancelled_races", str(races)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# -- the corpus -----------------------------------------------------------------------------------------


def corpus_query(name: str) -> Query:
    path = Path(os.environ["SMTSPOOL_CORPUS"]) / name
    return parse_file(path.name, path.read_bytes())[0]


@pytest.mark.corpus
@pytest.mark.skipif("SMTSPOOL_CORPUS" not in os.environ, reason="SMTSPOOL_CORPUS is not set")
def test_a_query_that_stalls_one_engine_for_minutes_does_not_stall_the_race(portfolio: Portfolio) -> None:
    stalls_z3 = corpus_query("skewed/sage__app2__bench_376.smt2")
    answer = portfolio.solve(stalls_z3, timeout_s=30)
    assert answer.status is Status.UNSAT
    assert answer.elapsed_ms < 5_000
    assert portfolio.solve(EASY, timeout_s=30).status is Status.SAT
