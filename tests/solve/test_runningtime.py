"""A limit is solving time: what the machine spends standing still does not count."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from smtspool.query import Status, parse_smt2
from smtspool.solve import Hedge, HedgePolicy, Portfolio, RunningTime
from tests.clock import Clock
from tests.solve.scripted import ScriptedServer
from tests.solve.tracks import no_trace

(QUERY,) = parse_smt2("(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= x #x2a))(check-sat)")


@pytest.fixture
def machine() -> Clock:
    return Clock()


@pytest.fixture
def running(machine: Clock) -> Iterator[RunningTime]:
    with no_trace(), RunningTime(machine) as clock:
        yield clock


def test_it_goes_with_the_clock_of_the_machine(machine: Clock, running: RunningTime) -> None:
    for _ in range(10):
        machine.advance(1.5)
        running()
    assert (running(), running.stood_still()) == (1015.0, 0.0)


def test_a_gap_between_two_readings_is_left_out(machine: Clock, running: RunningTime) -> None:
    machine.advance(13.0)
    assert (running(), running.stood_still()) == (1000.0, 13.0)
    machine.advance(1.0)
    assert (running(), running.stood_still()) == (1001.0, 13.0)


def test_nothing_is_left_out_while_nobody_ticks(machine: Clock) -> None:
    clock = RunningTime(machine)
    machine.advance(13.0)
    with clock:
        pass
    machine.advance(13.0)
    assert (clock(), clock.stood_still()) == (1026.0, 0.0)


def test_who_gave_up_while_the_machine_stood_still_is_asked_again() -> None:
    left_out = iter([0.0, 13.0, 13.0, 13.0])
    with (
        no_trace(),
        ScriptedServer("bitwuzla", "unknown unsat") as engine,
        Portfolio([engine], policy=HedgePolicy(Hedge.FIXED), stood_still=lambda: next(left_out)) as portfolio,
    ):
        answer = portfolio.solve(QUERY, timeout_s=20)
    assert (answer.status, answer.at_limit) == (Status.UNSAT, False)
    assert [attempt.status for attempt in answer.attempts] == [Status.UNSAT]


def test_who_gives_up_by_itself_is_not() -> None:
    with (
        no_trace(),
        ScriptedServer("bitwuzla", "unknown unsat") as engine,
        Portfolio([engine], policy=HedgePolicy(Hedge.FIXED), stood_still=lambda: 13.0) as portfolio,
    ):
        assert portfolio.solve(QUERY, timeout_s=20).status is Status.UNKNOWN
