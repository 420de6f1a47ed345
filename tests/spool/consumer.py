"""A consumer in a process of its own: one scan, which a signal or the test may interrupt at any step.

python consumer.py SPOOL LEDGER                        one scan; its figures on stdout, as JSON
python consumer.py SPOOL LEDGER --kill "Move b.json"   SIGKILLs itself right after that step
python consumer.py SPOOL LEDGER --kill inside-commit   ... in the open transaction
python consumer.py SPOOL LEDGER --kill behind-commit   ... committed, and not yet returned
python consumer.py SPOOL LEDGER --pause List           waits before that step until stdin closes
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from smtspool.actions import Step, observed_by
from smtspool.spool import Spool
from tests.spool.support import Ledger, scan


def label(step: Step) -> str:
    return f"{step.name} {step.params['file']}" if "file" in step.params else step.name


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Interrupter:
    def __init__(self, kill: str, pause: str) -> None:
        self._kill = kill
        self._pause = pause
        self.taken: Counter[str] = Counter()

    def before(self, step: Step) -> None:
        if label(step) == self._pause:
            print("paused", flush=True)
            sys.stdin.read()

    def after(self, step: Step) -> None:
        self.taken[step.name] += 1
        if label(step) == self._kill:
            die()


def peak_bytes() -> int:
    """The most memory this program had; ``ru_maxrss`` would begin with that of its parent."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return int(line.split()[1]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("spool", type=Path)
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--kill", default="")
    parser.add_argument("--pause", default="")
    options = parser.parse_args()
    with Ledger(options.ledger) as ledger, Spool.open(options.spool) as spool:
        if options.kill == "inside-commit":
            ledger.inside = die
        if options.kill == "behind-commit":
            ledger.behind = die
        interrupter = Interrupter(options.kill, options.pause)
        with observed_by(interrupter):
            # By a clock that stands still no batch ends for want of time, however busy the machine is.
            report = scan(spool, ledger, consumer="child", clock=lambda: 0.0)
    figures = asdict(report) | {"latency": None, "steps": interrupter.taken, "calls": ledger.calls}
    print(json.dumps(figures | {"peak": peak_bytes()}), flush=True)


if __name__ == "__main__":
    main()
