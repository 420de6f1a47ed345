"""Helpers and generations: valid or retired, dead when they should be, and nothing left behind."""

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from smtspool.errors import ClosedError, InfrastructureError
from smtspool.query import Status, parse_smt2
from smtspool.solve import (
    EngineSpec,
    FailureKind,
    ForkServer,
    GenerationFailed,
    HelperLimits,
    Op,
    Reply,
    Request,
    RequestRefused,
    control,
)
from smtspool.solve.generation import _reply
from tests.solve.scripted import ScriptedServer
from tests.solve.tracks import descendants, descriptors, eventually, gone, no_trace, soon

# The factors of a 128-bit number: no engine answers this within any test's patience.
HARD = """(set-logic QF_BV)(declare-const a (_ BitVec 64))(declare-const b (_ BitVec 64))
(assert (= (bvmul ((_ zero_extend 64) a) ((_ zero_extend 64) b)) #x90c6aee84c87f5893d4978fd7b9a18c5))
(assert (bvult #x0000000000000001 a))(assert (bvult #x0000000000000001 b))(check-sat)"""
EASY = "(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= (bvadd x #x01) #x2b))(check-sat)"


def solve(text: str, attempt: str = "a1", **more: object) -> Request:
    (query,) = parse_smt2(text)
    return Request(attempt, Op.SOLVE, query.logic, query.levels, query.symbols, **more)


@pytest.fixture(scope="module")
def server():
    """Without a spare: its process comes when it comes, and another test would take it for its own."""
    with no_trace(), ForkServer(EngineSpec("bitwuzla"), HelperLimits(spare=False)) as server:
        yield server


@pytest.fixture
def generation(server):
    generation = server.spawn(soon())
    yield generation
    generation.retire("end of test")
    generation.wait_reaped(soon())


def test_a_helper_that_yields_leaves_the_cpu_to_others(generation):
    before = os.getpriority(os.PRIO_PROCESS, generation.pid)
    generation.exchange(solve(EASY), soon())
    assert os.getpriority(os.PRIO_PROCESS, generation.pid) == before
    generation.exchange(solve(EASY, "a2", yielding=True), soon())
    assert os.getpriority(os.PRIO_PROCESS, generation.pid) == before + 5


def test_a_helper_answers_request_after_request(generation):
    for number in range(3):
        reply = generation.exchange(solve(EASY, f"a{number}"), soon())
        assert (reply.attempt_id, reply.status, reply.model) == (f"a{number}", Status.SAT, {"x": "#x2a"})
        assert reply.rss_bytes > 0
    assert generation.valid and generation.alive


def test_the_deadline_ends_an_exchange_and_the_generation(generation):
    with pytest.raises(GenerationFailed) as failed:
        generation.exchange(solve(HARD), time.monotonic() + 0.1)
    assert failed.value.kind is FailureKind.TIMEOUT
    assert not generation.valid
    with pytest.raises(GenerationFailed) as failed:
        generation.exchange(solve(EASY), soon())
    assert failed.value.kind is FailureKind.RETIRED


def test_a_kill_from_another_thread_ends_the_exchange(generation):
    kinds = []

    def exchange():
        try:
            generation.exchange(solve(HARD), soon())
        except GenerationFailed as failure:
            kinds.append(failure.kind)

    thread = threading.Thread(target=exchange)
    thread.start()
    assert eventually(lambda: _is_solving(generation.pid))
    generation.signal_kill()
    thread.join()
    assert kinds == [FailureKind.KILLED]


def test_a_wake_descriptor_ends_the_exchange(generation):
    wake = os.eventfd(1)
    try:
        with pytest.raises(GenerationFailed) as failed:
            generation.exchange(solve(HARD), soon(), wake=wake)
    finally:
        os.close(wake)
    assert failed.value.kind is FailureKind.KILLED


def test_retiring_during_an_exchange_closes_nothing_under_it():
    with no_trace(), ForkServer(EngineSpec("bitwuzla"), HelperLimits(spare=False)) as server:
        before = descriptors()
        generation = server.spawn(soon())
        failures = []

        def exchange():
            try:
                generation.exchange(solve(HARD), soon())
            except GenerationFailed as failure:
                failures.append(failure)

        thread = threading.Thread(target=exchange)
        thread.start()
        assert eventually(lambda: _is_solving(generation.pid))
        generation.retire("lost-race")
        generation.retire("closed")
        thread.join()
        assert generation.wait_reaped(soon()) == "signal 9"
        assert len(failures) == 1
        assert generation.retired_for == "lost-race"
        assert descriptors() == before


def test_a_request_that_cannot_be_framed_leaves_the_generation_valid(server):
    with no_trace(), ForkServer(EngineSpec("bitwuzla"), HelperLimits(frame=2000)) as small:
        generation = small.spawn(soon())
        with pytest.raises(RequestRefused):
            generation.exchange(Request("a1", Op.CHECK, script="x" * 2000), soon())
        with pytest.raises(RequestRefused):
            generation.exchange(Request("a2", Op.CHECK, script="\ud800"), soon())
        assert generation.exchange(Request("a3", Op.PING), soon()).attempt_id == "a3"
        generation.retire("end of test")


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ("hang", FailureKind.TIMEOUT),
        ("stop", FailureKind.TIMEOUT),
        ("half", FailureKind.TIMEOUT),
        ("twice", FailureKind.EXTRA),
        ("other", FailureKind.ECHO),
        ("garbage", FailureKind.ENCODING),
        ("oversize", FailureKind.OVERSIZE),
        ("die", FailureKind.CRASHED),
    ],
)
def test_a_misbehaving_helper_ends_its_generation(behaviour, kind):
    with no_trace(), ScriptedServer("liar", behaviour) as scripted:
        generation = scripted.spawn(soon())
        patience = 0.3 if kind is FailureKind.TIMEOUT else 30.0
        with pytest.raises(GenerationFailed) as failed:
            generation.exchange(solve(EASY), time.monotonic() + patience)
        assert failed.value.kind is kind
        assert not generation.valid
        generation.retire("misbehaved")
        assert generation.wait_reaped(soon()) is not None


@pytest.mark.parametrize(
    "damage",
    [
        {"elapsed_ms": 10**400},  # is no float
        {"elapsed_ms": "1"},
        {"status": "perhaps"},
        {"model": {"x": 1}},
        {"rss_bytes": None},
        {"attempt_id": 7},
    ],
)
def test_a_reply_with_one_wrong_member_is_garbage(damage):
    members = Reply("a1", Status.UNSAT).to_wire()
    assert _reply(json.dumps(members).encode()) == Reply("a1", Status.UNSAT)
    with pytest.raises(GenerationFailed) as failed:
        _reply(json.dumps(members | damage).encode())
    assert failed.value.kind is FailureKind.GARBAGE


def test_the_last_words_of_a_crashed_helper_are_told():
    with ScriptedServer("liar", "die") as scripted:
        generation = scripted.spawn(soon())
        with pytest.raises(GenerationFailed, match=r"exit 3.*assertion failed in the engine") as failed:
            generation.exchange(solve(EASY), soon())
        assert "assertion failed" in failed.value.stderr


def test_a_flood_on_stderr_is_drained_and_its_tail_kept():
    with ScriptedServer("liar", "flood") as scripted:
        generation = scripted.spawn(soon())
        assert generation.exchange(solve(EASY), soon()).status is Status.UNSAT
        assert len(generation.stderr_tail) <= HelperLimits().stderr


def test_a_helper_out_of_memory_ends_as_a_crash():
    products = """(set-logic QF_BV)(declare-const a (_ BitVec 512))(declare-const b (_ BitVec 512))
    (assert (= (bvxor a (bvudiv a (bvmul a b))) (bvudiv b (bvmul b (bvadd b (bvmul a a))))))(check-sat)"""
    with no_trace(), ForkServer(EngineSpec("bitwuzla"), HelperLimits(memory=96 << 20)) as small:
        generation = small.spawn(soon())
        with pytest.raises(GenerationFailed) as failed:
            generation.exchange(solve(products, timeout_ms=60_000), soon())
        assert failed.value.kind is FailureKind.CRASHED
        generation.retire("out of memory")


def test_killed_helpers_leave_nothing_behind():
    with no_trace(), ForkServer(EngineSpec("bitwuzla"), HelperLimits(spare=False)) as server:
        before = descriptors()
        for _ in range(100):
            generation = server.spawn(soon())
            generation.retire("lost-race")
            assert generation.wait_reaped(soon()) == "signal 9"
        assert descriptors() == before
        assert not descendants(server.pid)


@pytest.mark.slow
def test_five_thousand_kills_under_256_descriptors():
    program = """
        import time
        from smtspool.solve import EngineSpec, ForkServer, Op, Request
        from tests.solve.tracks import descriptors
        with ForkServer(EngineSpec("bitwuzla")) as server:
            server.spawn(time.monotonic() + 30).retire("warm-up")
            before = descriptors()
            for number in range(5000):
                generation = server.spawn(time.monotonic() + 30)
                if number % 10 == 0:
                    generation.exchange(Request(str(number), Op.PING), time.monotonic() + 30)
                generation.retire("lost-race")
            print(descriptors() - before <= 1)  # the pidfd of the spare, come or not
    """
    shell = f'ulimit -n 256; exec "{sys.executable}" -W error -c "$0"'
    done = subprocess.run(
        ["bash", "-c", shell, textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_a_dead_fork_server_takes_its_helpers_and_is_replaced():
    with no_trace(), ForkServer(EngineSpec("bitwuzla")) as server:
        first = server.spawn(soon())
        os.kill(server.pid, signal.SIGKILL)
        assert eventually(lambda: gone(first.pid))
        with pytest.raises(GenerationFailed) as failed:
            first.exchange(solve(EASY), soon())
        assert failed.value.kind is FailureKind.CRASHED
        first.retire("crashed")
        second = server.spawn(soon())
        assert second.exchange(solve(EASY), soon()).status is Status.SAT
        second.retire("end of test")


def test_a_dead_spare_is_not_handed_out():
    with no_trace(), ForkServer(EngineSpec("bitwuzla")) as server:
        first = server.spawn(soon())
        first.retire("")
        assert eventually(lambda: descendants(server.pid) - {first.pid})
        (spare,) = descendants(server.pid) - {first.pid}
        os.kill(spare, signal.SIGKILL)
        assert eventually(lambda: gone(spare))
        generation = server.spawn(soon())
        assert generation.exchange(solve(EASY), soon()).status is Status.SAT
        generation.retire("end of test")


def test_a_fork_server_without_descriptors_fails_to_spawn_and_recovers():
    with no_trace(), ForkServer(EngineSpec("bitwuzla"), HelperLimits(spare=False)) as server:
        server.spawn(soon()).retire("")
        limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        with pytest.raises(InfrastructureError, match="no helper process"):
            server.spawn(soon())
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
        generation = server.spawn(soon())
        assert generation.exchange(solve(EASY), soon()).status is Status.SAT
        generation.retire("end of test")


def test_a_stopped_fork_server_delays_a_spawn_no_longer_than_its_deadline():
    with no_trace(), ForkServer(EngineSpec("bitwuzla"), HelperLimits(spare=False)) as server:
        server.spawn(soon()).retire("")
        os.kill(server.pid, signal.SIGSTOP)
        with pytest.raises(InfrastructureError, match="deadline"):
            server.spawn(time.monotonic() + 0.1)
        os.kill(server.pid, signal.SIGCONT)
        server.spawn(soon()).retire("end of test")


def test_a_fork_server_that_stays_stopped_is_replaced():
    with no_trace(), ForkServer(EngineSpec("bitwuzla"), HelperLimits(spare=False)) as server:
        server.spawn(soon()).retire("")
        os.kill(server.pid, signal.SIGSTOP)
        deadline = soon()
        while True:
            try:
                generation = server.spawn(time.monotonic() + 0.5)
                break
            except InfrastructureError:
                assert time.monotonic() < deadline
        assert generation.exchange(solve(EASY), soon()).status is Status.SAT
        generation.retire("end of test")


def test_a_signal_that_unwinds_a_launch_does_not_hinder_the_close(monkeypatch):
    """The request is out when SystemExit strikes; its answer comes to the close."""
    send = control.send

    def interrupted(socket, word, **what):
        send(socket, word, **what)
        raise SystemExit(130)

    with no_trace(), ForkServer(EngineSpec("bitwuzla")) as server:
        monkeypatch.setattr(control, "send", interrupted)
        with pytest.raises(SystemExit):
            server.spawn(soon())


def test_a_closed_fork_server_spawns_nothing():
    with no_trace():
        server = ForkServer(EngineSpec("bitwuzla"))
        generation = server.spawn(soon())
        server.close()
        server.close()
        assert gone(generation.pid)
        with pytest.raises(ClosedError):
            server.spawn(soon())
        generation.retire("closed")


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped fork server"])
def test_no_helper_survives_a_killed_service(stopped):
    program = """
        import os, signal, sys, time
        from smtspool.solve import ForkServer, EngineSpec
        from tests.solve.test_generation import HARD, solve
        server = ForkServer(EngineSpec("bitwuzla"))
        idle, busy = server.spawn(time.monotonic() + 30), server.spawn(time.monotonic() + 30)
        print(server.pid, idle.pid, busy.pid, flush=True)
        busy.exchange(solve(HARD), time.monotonic() + 1000)
    """
    service = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    )
    try:
        server, idle, busy = map(int, service.stdout.readline().split())
        assert eventually(lambda: _is_solving(busy))
        below = descendants(service.pid)
        if stopped:
            os.kill(server, signal.SIGSTOP)
    finally:
        service.kill()
        service.communicate()
    assert {idle, busy} < below
    assert eventually(lambda: all(gone(pid) for pid in below - {server}))
    if stopped:
        os.kill(server, signal.SIGCONT)
    assert eventually(lambda: gone(server))


def test_a_helper_is_bare(generation):
    """Own session, no handler, no core file, no descriptor of others."""
    generation.exchange(Request("ping", Op.PING), soon())
    pid = generation.pid
    assert os.getsid(pid) == os.getpgid(pid) == pid
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    assert int(status["SigCgt"], 16) == 0
    assert int(status["Threads"]) == 1
    assert resource.prlimit(pid, resource.RLIMIT_CORE) == (0, 0)
    assert resource.prlimit(pid, resource.RLIMIT_AS) == (HelperLimits().memory,) * 2
    assert len(os.listdir(f"/proc/{pid}/fd")) == 6  # three standard ones, the channel, the lifeline, its size


def _is_solving(pid: int) -> bool:
    """More than a hundredth of a second of its own CPU time."""
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[11]) > 1
