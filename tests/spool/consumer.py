"""A consumer in a process of its own: one scan, which a signal or the test may interrupt at any step.

    python consumer.py SPOOL LEDGER                        one scan; its report on stdout
    python consumer.py SPOOL LEDGER --kill "Move b.json"   SIGKILLs itself right after that step
    python consumer.py SPOOL LEDGER --kill inside-commit   ... in the open transaction
    python consumer.py SPOOL LEDGER --kill behind-commit   ... committed, and not yet returned
    python consumer.py SPOOL LEDGER --pause List           waits before that step until stdin closes
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
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

    def before(self, step: Step) -> None:
        if label(step) == self._pause:
            print("paused", flush=True)
            sys.stdin.read()

    def after(self, step: Step) -> None:
        if label(step) == self._kill:
            die()


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
        with observed_by(Interrupter(options.kill, options.pause)):
            report = scan(spool, ledger, consumer="child")
    print(report.outcome, report.accepted, report.rejected, flush=True)


if __name__ == "__main__":
    main()
