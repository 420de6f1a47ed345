"""An engine that cannot be started says why once, at once, and is left alone for a while."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from smtspool.errors import InfrastructureError
from smtspool.solve import EngineSpec, EngineUnusable, ForkServer, trial
from tests.clock import Clock
from tests.solve.tracks import eventually, no_trace, soon

BROKEN = 'raise ImportError("libz3.so.4: cannot open shared object file")\n'
CAUSE = "cannot be started: ImportError: libz3.so.4: cannot open shared object file"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the fork server of z3 imports: a wheel whose library is not there."""
    (tmp_path / "z3").mkdir()
    module = tmp_path / "z3" / "__init__.py"
    module.write_text(BROKEN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return module


def test_the_cause_is_one_line_and_nothing_goes_to_the_terminal(
    wheel: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with no_trace(), ForkServer(EngineSpec("z3")) as server:
        found = trial(server, soon())
    assert (found.logics, found.trouble) == (frozenset(), (CAUSE,))
    assert capfd.readouterr().err == ""


def test_it_is_started_again_when_its_time_has_come(wheel: Path) -> None:
    clock = Clock()
    with no_trace(), ForkServer(EngineSpec("z3"), clock=clock) as server:
        for _ in range(3):
            with pytest.raises(EngineUnusable, match="libz3"):
                server.spawn(clock() + 60.0)
        first = server.pid
        shutil.rmtree(wheel.parent)  # with what was compiled of it
        with pytest.raises(EngineUnusable, match="libz3"):
            server.spawn(clock() + 60.0)
        assert server.pid == first, "a race does not wait for a start that has just failed"
        clock.advance(1.0)
        generation = server.spawn(clock() + 60.0)
        assert server.unusable is None
        generation.retire("end of test")
        assert generation.wait_reaped(clock() + 60.0)


def test_an_engine_that_has_worked_is_started_again_at_once(wheel: Path) -> None:
    broken = wheel.read_text()
    shutil.rmtree(wheel.parent)
    with no_trace(), ForkServer(EngineSpec("z3")) as server:
        server.spawn(soon()).retire("it works")
        wheel.parent.mkdir()
        wheel.write_text(broken)
        server._process._popen.kill()
        assert eventually(lambda: not server._process.alive)
        with pytest.raises(EngineUnusable, match="libz3"):
            server.spawn(soon())
        assert str(server.unusable) == f"engine z3 {CAUSE}"


def test_a_fork_server_killed_while_it_imports_says_how_it_ended(wheel: Path) -> None:
    wheel.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    with (
        no_trace(),
        ForkServer(EngineSpec("z3")) as server,
        pytest.raises(InfrastructureError, match="signal 9"),
    ):
        server.spawn(soon())


def test_a_flood_of_complaints_holds_up_nobody(wheel: Path) -> None:
    wheel.write_text('import sys\nsys.stderr.write("x" * 200_000)\n' + BROKEN)
    with no_trace(), ForkServer(EngineSpec("z3")) as server, pytest.raises(EngineUnusable):
        server.spawn(soon())
