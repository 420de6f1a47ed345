"""External commands behind the helper: strict about what they print, whole in how they are ended."""

import os
import sys
import time
from pathlib import Path

import pytest

from smtspool.errors import ConfigError
from smtspool.query import Query, Status, parse_smt2
from smtspool.solve import EngineSpec, FailureKind, ForkServer, GenerationFailed, Op, Request, parse_engine
from smtspool.solve.engines import EngineError
from smtspool.solve.engines.external import External
from tests.solve.tracks import descendants, eventually, gone, no_trace, soon
from tests.spool.support import in_child

FAKE = Path(__file__).with_name("fake_solver.py")
(QUERY,) = parse_smt2("(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= (bvnot x) #xd5))(check-sat)")


def path(length: int) -> Query:
    taken = "".join(f"(assert (bvugt x (_ bv{number} 8)))" for number in range(length))
    (query,) = parse_smt2(f"(set-logic QF_BV)(declare-const x (_ BitVec 8)){taken}(check-sat)")
    return query


def command(behaviour: str, *, file: bool) -> EngineSpec:
    words = (sys.executable, "-S", "-E", str(FAKE), behaviour)
    return EngineSpec("fake", (*words, "{query}") if file else words)


def request(timeout_ms: int = 20_000, *, query: Query = QUERY, fresh: bool = False) -> Request:
    asked = (query.logic, query.levels, query.symbols)
    return Request("a1", Op.SOLVE, *asked, timeout_ms=timeout_ms, fresh=fresh)


def ask(behaviour: str, *, file: bool, timeout_ms: int = 20_000):
    """Its reply, from a helper that stays valid."""
    with no_trace(), ForkServer(command(behaviour, file=file)) as server:
        generation = server.spawn(soon())
        reply = generation.exchange(request(timeout_ms), soon())
        assert generation.valid
        generation.retire("end of test")
        assert generation.wait_reaped(soon()) == "signal 9"
        assert eventually(lambda: len(descendants(server.pid)) <= 1)  # the spare
    return reply


both_ways = pytest.mark.parametrize("file", [False, True], ids=["interactive", "file"])


@both_ways
def test_its_answers_are_taken(file):
    assert ask("sat", file=file).model == {"x": "#x2a"}
    assert ask("unsat", file=file).status is Status.UNSAT
    assert ask("unknown", file=file).status is Status.UNKNOWN


@both_ways
@pytest.mark.parametrize(
    "behaviour", ["silent", "maybe", "twice", "latin", "unsat (TIMEOUT)", "half and die", "torrent"]
)
def test_anything_else_is_an_error_and_never_an_answer(behaviour, file):
    reply = ask(behaviour, file=file)
    assert (reply.status, reply.model) == (Status.ERROR, None)
    assert reply.reason


@both_ways
@pytest.mark.parametrize("behaviour", ["crash", "killed", "crash in a shell"])
def test_a_command_that_a_signal_ends_takes_its_helper_along(behaviour, file):
    """It is no answer of the engine's: whoever asked may ask again, and counts a death."""
    with no_trace(), ForkServer(command(behaviour, file=file)) as server:
        generation = server.spawn(soon())
        with pytest.raises(GenerationFailed, match=r"was ended by signal (9|11)") as failed:
            generation.exchange(request(), soon())
        assert failed.value.kind is FailureKind.CRASHED
        generation.retire("end of test")
        assert generation.wait_reaped(soon()) == "exit 1"


def test_a_command_killed_while_nobody_uses_it_costs_no_query():
    with no_trace(), ForkServer(command("unsat", file=False)) as server:
        generation = server.spawn(soon())
        assert generation.exchange(request(fresh=True), soon()).status is Status.UNSAT
        (ready,) = descendants(generation.pid)
        os.kill(ready, 9)
        assert eventually(
            lambda: Path(f"/proc/{ready}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        )
        assert generation.exchange(request(fresh=True), soon()).status is Status.UNSAT
        generation.retire("end of test")


@both_ways
@pytest.mark.parametrize("behaviour", ["hang", "stubborn", "stop", "half"])
def test_a_command_that_hangs_is_replaced_at_its_limit(behaviour, file):
    reply = ask(behaviour, file=file, timeout_ms=300)
    assert (reply.status, reply.reason) == (Status.UNKNOWN, "timeout")


@both_ways
def test_a_flood_on_stderr_blocks_nobody(file):
    assert ask("flood", file=file).status is Status.UNSAT


@both_ways
@pytest.mark.parametrize("behaviour", ["offspring", "daemon"])
def test_what_it_leaves_running_is_killed(behaviour, file):
    """Though it holds the pipes, and though it has a session of its own."""
    assert ask(behaviour, file=file).status is Status.UNSAT


@both_ways
def test_a_helper_has_no_more_open_after_many_commands_than_after_one(file):
    with no_trace(), ForkServer(command("unsat", file=file)) as server:
        generation = server.spawn(soon())
        counts = set()
        for _ in range(4):
            assert generation.exchange(request(fresh=True), soon()).status is Status.UNSAT
            counts.add(len(os.listdir(f"/proc/{generation.pid}/fd")))
        generation.retire("end of test")
    assert len(counts) == 1


@both_ways
def test_a_command_that_hangs_on_the_stack_is_replaced_too(file):
    with no_trace(), ForkServer(command("hang", file=file)) as server:
        generation = server.spawn(soon())
        for length in (3, 4, 5, 6):
            reply = generation.exchange(request(50, query=path(length)), soon())
            assert (reply.status, reply.reason) == (Status.UNKNOWN, "timeout")
            assert reply.held_levels == (length if file and length > 3 else 0), "what ended holds nothing"
        generation.retire("end of test")


def test_a_session_whose_command_was_ended_refuses_in_an_orderly_way():
    def work() -> None:  # in a process of its own, since what ends a command ends all children
        session = External(command("hang", file=False)).open(incremental=True)
        assert session.check(50) == (Status.UNKNOWN, "timeout")
        assert session.ended
        with pytest.raises(EngineError, match="ended early: signal 9"):
            session.push()

    in_child(work)


def test_a_file_has_what_is_on_the_stack_and_nothing_else():
    """The fake counts assertions, pushes and pops of each file."""
    with no_trace(), ForkServer(command("count", file=True)) as server:
        generation = server.spawn(soon())
        for length in (5, 6, 5, 7, 6, 5):
            reply = generation.exchange(request(query=path(length)), soon())
            assert (reply.status, reply.model) == (Status.SAT, {"x": f"#x{length:02x}"})
        assert reply.held_levels == 5
        generation.retire("end of test")


def test_text_that_nobody_asked_for_is_an_error():
    assert ask("afterthought", file=False).status is Status.ERROR


@both_ways
@pytest.mark.parametrize("behaviour", ["hang", "stubborn", "stop"])
def test_a_kill_takes_the_command_along(behaviour, file):
    with no_trace(), ForkServer(command(behaviour, file=file)) as server:
        generation = server.spawn(soon())
        with pytest.raises(GenerationFailed) as failed:
            generation.exchange(request(), time.monotonic() + 0.5)
        assert failed.value.kind is FailureKind.TIMEOUT
        below = descendants(generation.pid)
        assert len(below) == 1
        generation.retire("deadline")
        assert generation.wait_reaped(soon()) == "signal 9"
        assert all(gone(pid) for pid in below)


def test_a_command_dies_with_its_helper():
    with no_trace(), ForkServer(command("hang", file=False)) as server:
        generation = server.spawn(soon())
        with pytest.raises(GenerationFailed):
            generation.exchange(request(), time.monotonic() + 0.5)
        (child,) = descendants(generation.pid)
        os.kill(server.pid, 9)
        assert eventually(lambda: gone(child))
        generation.retire("end of test")


def test_a_command_that_does_not_exist_is_an_error():
    with no_trace(), ForkServer(parse_engine("none=/nonexistent/solver --flag")) as server:
        generation = server.spawn(soon())
        reply = generation.exchange(request(), soon())
        assert reply.status is Status.ERROR
        assert "cannot be started" in reply.reason
        generation.retire("end of test")


@pytest.mark.parametrize("text", ["yices", "=yices-smt2", "a b=c", "stp=", "stp='unclosed"])
def test_an_engine_that_cannot_be_meant_is_refused(text):
    with pytest.raises(ConfigError):
        parse_engine(text)


def test_engines_are_named_or_given_as_commands():
    assert parse_engine("z3") == EngineSpec("z3")
    yices = parse_engine("yices=yices-smt2 --incremental")
    assert yices == EngineSpec("yices", ("yices-smt2", "--incremental")) and yices.interactive
    assert not parse_engine("stp=stp --SMTLIB2 {query}").interactive
