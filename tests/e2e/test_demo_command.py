"""The demonstration: every answer verified, every new input executed, everything printed."""

from __future__ import annotations

import re
import signal

from tests.e2e.campaign import Place, identities, sampled
from tests.service.support import PATIENCE_S, until

ALL_ENGINES = "bitwuzla,z3,cvc5"


def test_the_demo_holds_and_says_so(place: Place) -> None:
    # Enough time for the hardest of them on a loaded machine.
    settings = {"SMTSPOOL_ENGINES": ALL_ENGINES, "SMTSPOOL_TIMEOUT_MS": "60000"}
    shown = place.run("demo", place.root, COLUMNS="200", **settings)
    [total] = [line.split() for line in shown.stdout.splitlines() if line.split()[:1] == ["all"]]
    _, queries, sat, verified, unsat, left_open, reused, executed, flipped = total
    asked = sampled()
    assert int(queries) == len(asked) == int(sat) + int(unsat)
    assert sat == verified == executed == flipped
    assert left_open == "0"
    assert int(reused) > len(asked) // 3
    assert "shared prefixes" in shown.stdout
    [probes] = re.findall(r"probes: (\d+) answered .*, (\d+) fell back", shown.stdout)
    assert all(int(count) > 10 for count in probes)
    assert "  answered: " in shown.stdout and "  fell back: " in shown.stdout
    assert place.answers().keys() == identities(asked)
    assert place.run("fsck", place.root).stdout == "clean\n"
    place.assert_no_process_left()


def test_interrupted_it_leaves_nothing(place: Place) -> None:
    scratch = place.folder / "tmp"
    scratch.mkdir()
    child = place.start("demo", TMPDIR=str(scratch))
    until(lambda: len(place.processes()) >= 4, "the start of the engines")
    child.send_signal(signal.SIGINT)
    _, complaints = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 130, complaints
    assert "Traceback" not in complaints
    assert list(scratch.iterdir()) == []
    place.assert_no_process_left()
