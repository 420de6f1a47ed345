"""A whole tree of processes that is stopped and goes on later: no limit has passed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.service.support import PATIENCE_S, Z3, equation, until
from tests.solve.tracks import descendants

LIMIT_S = 4.0
# A real solver that works for a second, in steps, on a query with a symbol `slow`.
STEADY = (
    'steady=sh -c \'if grep -q slow "$0"; then for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; fi; '
    f'exec {Z3} "$0"\' {{query}}'
)


def engine_works(tree: set[int]) -> bool:
    """Some process of the tree is the command of an engine, at work on the query."""
    for pid in tree:
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\0"):
                return True
        except OSError:
            continue
    return False


def send(number: signal.Signals, tree: list[int]) -> None:
    """Signal each that is still there: one that has ended is reaped when its parent goes on."""
    for pid in tree:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@pytest.mark.slow
def test_a_stop_longer_than_the_limit_costs_no_answer(tmp_path: Path) -> None:
    script = tmp_path / "q.smt2"
    script.write_text(equation(1, name="slow", against=2))
    command = [sys.executable, "-m", "smtspool", "solve", "-e", STEADY, "-t", str(LIMIT_S), str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as solving:
        until(lambda: engine_works(descendants(solving.pid)), "the engine at work")
        tree = [solving.pid, *descendants(solving.pid)]
        send(signal.SIGSTOP, tree)
        resumed_at = time.monotonic() + LIMIT_S + 2.0
        until(lambda: time.monotonic() > resumed_at, "the stop to last longer than the limit")
        send(signal.SIGCONT, tree)
        out, complaints = solving.communicate(timeout=PATIENCE_S)
    assert (out, solving.returncode) == ("unsat\n", 0), complaints
