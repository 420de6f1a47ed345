"""What a command costs before and beside its work, against the solver's own executable on the same file."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ..engines import versions
from ..measure import Bench, Row, at_most, interleaved

SCRIPT = """(set-logic QF_BV)
(declare-const x (_ BitVec 32))
(assert (= (bvmul x #x00000003) #x0000000f))
(check-sat)
"""
HELP_SECONDS = 0.15
SOLVE_SECONDS = 0.4


def run(bench: Bench) -> Iterator[Row]:
    with bench.directory() as folder:
        script, campaign = folder / "q.smt2", folder / "campaign"
        script.write_text(SCRIPT)
        ours = str(Path(sys.executable).with_name("smtspool"))
        commands = {
            "--help": [ours, "--help"],
            "solve": [ours, "solve", str(script)],
            "status": [ours, "status", str(campaign)],
        }
        theirs = {
            name: [path, str(script)]
            for name in ("z3", "bitwuzla")
            if (path := shutil.which(name, path=f"{Path(ours).parent}:{os.environ['PATH']}"))
        }
        cpu_seconds([ours, "init", str(campaign)])  # and Python has compiled most of our modules
        for command in commands.values():
            cpu_seconds(command)
        taken = interleaved(
            bench, {name: lambda c=command: cpu_seconds(c) for name, command in (commands | theirs).items()}
        )
    peers = ", ".join(f"{name} {versions()[name]}: {taken[name].median * 1e3:.0f} ms" for name in theirs)
    note = f"CPU time of all processes, warm disk; the same script by {peers or 'no solver of its own here'}"
    for name, bar in {"--help": HELP_SECONDS, "solve": SOLVE_SECONDS, "status": None}.items():
        limit = None if bar is None else at_most(bar)
        yield Row.value(f"smtspool {name}", "s", taken[name].median, taken[name], limit, note)


def cpu_seconds(command: list[str]) -> float:
    """User and system time of a command and of every process it has waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
