"""Without a descriptor to be had no helper is given, none is leaked, and the next one comes as ever."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from smtspool.errors import InfrastructureError
from smtspool.query import Status, parse_smt2
from smtspool.solve import EngineSpec, ForkServer, Hedge, HedgePolicy, Op, Portfolio, Request
from tests.solve.scripted import ScriptedServer
from tests.solve.tracks import descriptors, eventually, gone, no_trace, soon

(QUERY,) = parse_smt2("(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= x #x2a))(check-sat)")
BITWUZLA = EngineSpec("bitwuzla")


@contextmanager
def only(number: int) -> Iterator[None]:
    """This process may open so many more descriptors, and others as before."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        try:
            while True:
                taken.append(os.dup(0))
        except OSError:
            for _ in range(number):
                os.close(taken.pop())
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_helper_that_cannot_be_held_is_let_go() -> None:
    """There is a descriptor for the spare's pid, which comes with its launch, and none for what wakes us."""
    with no_trace(), ForkServer(BITWUZLA) as server:
        first = server.spawn(soon())
        launch = server._process._ahead[0]
        before = descriptors()
        with only(1), pytest.raises(InfrastructureError, match="Too many open files"):
            server.spawn(soon())
        assert eventually(lambda: gone(launch.pid)), "it hears that its channel is closed"
        assert descriptors() == before - 2, "the spare had a channel and an error pipe"
        second = server.spawn(soon())
        assert second.exchange(Request("a1", Op.PING), soon()).attempt_id == "a1"
        first.retire("end of test")
        second.retire("end of test")


def test_a_race_goes_on_without_an_engine_that_cannot_be_held() -> None:
    with (
        no_trace(),
        ForkServer(BITWUZLA) as server,
        ScriptedServer("z3", "unsat") as other,
        Portfolio([server, other], policy=HedgePolicy(Hedge.FIXED)) as portfolio,
    ):
        server.spawn(soon()).retire("its spare stays")
        portfolio._lanes["z3"].solve(QUERY, attempt_id="warm", deadline=soon())
        with only(1):
            answer = portfolio.solve(QUERY, timeout_s=20)
    assert answer.status is Status.UNSAT
    assert [attempt.status for attempt in answer.attempts] == [Status.ERROR, Status.UNSAT]


@pytest.mark.parametrize("number", range(0, 7, 2))
def test_a_fork_server_that_cannot_be_started_leaves_nothing(number: int) -> None:
    with no_trace(), only(number), pytest.raises(InfrastructureError, match="Too many open files"):
        ForkServer(BITWUZLA)
