"""An engine that does not work is left out with its cause, and taken in again when it does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smtspool.query import Status
from smtspool.service import Campaign, Service, Settings
from smtspool.service.engines import Engines, NoEngineWorks
from smtspool.service.loops import Health
from tests.service.support import PATIENCE_S, answers, equation, query, submit, until

CAUSE = "cannot be started: ImportError: libz3.so.4: cannot open shared object file"


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a fork server imports for z3: a wheel whose library is not there. Remove it, and z3 works."""
    wheel = tmp_path / "wheels" / "z3"
    wheel.mkdir(parents=True)
    (wheel / "__init__.py").write_text('raise ImportError("libz3.so.4: cannot open shared object file")')
    monkeypatch.setenv("PYTHONPATH", str(wheel.parent))
    return wheel


class Ahead:
    """The clock of the machine, moved on as the test wants."""

    def __init__(self) -> None:
        self.by = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.by


def test_solve_says_it_in_one_line_and_answers(broken: Path, tmp_path: Path) -> None:
    broken.rename(broken.with_name("bitwuzla"))  # who would lead
    script = tmp_path / "q.smt2"
    script.write_text(equation(42))
    command = [sys.executable, "-m", "smtspool", "solve", str(script)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=os.environ.copy())
    assert (run.returncode, run.stdout) == (0, "sat\n")
    assert run.stderr.splitlines() == [f"engine bitwuzla does not work and is left out: {CAUSE}"]


def test_it_is_tried_again_later_and_later_and_taken_in_when_it_works(
    broken: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, health = Ahead(), Health()
    with Engines(Settings(jobs=1, engines=("bitwuzla", "z3")), clock=clock) as engines:
        assert engines.names == ["bitwuzla"]
        for pause in (2, 4, 8):
            assert engines.look(health)
            assert f"engine z3: {CAUSE} (try again in {pause} s)" in caplog.text
            engines.look(health)
            assert len(health.ailing()) == 1 and CAUSE in health.ailing()["engine z3"].message
            for _ in range(pause):  # a leap would be a machine that stood still
                clock.by += 1.0
                engines.clock()
        shutil.rmtree(broken)
        engines.look(health)
        assert health.ailing() == {}
        assert engines.names == ["bitwuzla", "z3"]
        with engines.portfolio() as portfolio:
            assert portfolio.solve(query(42), timeout_s=PATIENCE_S).status is Status.SAT


def test_a_query_that_only_a_broken_engine_could_take_is_no_error_of_its_own(broken: Path) -> None:
    """An engine of one logic is left; what it does not take waits for the other."""
    with Engines(Settings(jobs=1, engines=("bitwuzla", "z3"))) as engines:
        assert engines._takes("bitwuzla", "QF_BV") and not engines._takes("z3", "QF_BV")
        assert engines._takes("z3", "QF_UNHEARD_OF") and not engines._takes("bitwuzla", "QF_UNHEARD_OF")


def test_without_any_engine_the_start_fails_at_once(broken: Path) -> None:
    with pytest.raises(NoEngineWorks, match="no engine works"), Engines(Settings(engines=("z3",))):
        pass


def test_a_service_goes_on_with_the_others_and_ends_in_order(broken: Path, campaign: Campaign) -> None:
    submit(campaign, a=equation(42))
    with Service(campaign, Settings(jobs=1, engines=("z3", "bitwuzla", "cvc5"))) as service:
        until(lambda: "engine z3" in service.health.ailing(), "the report")
        until(lambda: answers(campaign), "the answer")
    assert list(answers(campaign).values()) == ["sat"]
