"""Ending a service: drained by one signal, stopped by two, killed without leaving anything."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import time

import pytest

from tests.e2e.campaign import COMMAND, Place
from tests.service.support import ODD_ENGINE, PATIENCE_S, equation, query, until

SLOW = equation(1, name="slow", against=2)
SERVE = ("serve", "campaign", "-e", ODD_ENGINE, "-t", "1000", "--jobs", "1")


def serving(place: Place, **environment: str) -> subprocess.Popen[str]:
    """A service that is busy with an endless query; others wait for it."""
    place.create(("a.smt2", SLOW), *[(f"b{n}.smt2", equation(n, name="slow", against=0)) for n in (3, 4, 5)])
    child = place.start(*SERVE, **environment)
    until(lambda: place.counts().leased, "a lease")
    until(lambda: len(place.processes()) >= 4, "the engine")
    return child


def ended(child: subprocess.Popen[str]) -> str:
    """What it said on stderr until its end."""
    _, complaints = child.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in complaints
    return complaints


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_drains_and_what_was_not_answered_goes_back(place: Place, number: signal.Signals) -> None:
    child = serving(place, SMTSPOOL_DRAIN_SECONDS="0.5")
    child.send_signal(number)
    assert "draining" in ended(child)
    assert child.returncode == 128 + number
    assert place.counts().pending == place.counts().open == 4
    assert list((place.root / "store" / "owners").iterdir()) == []
    place.assert_no_process_left()


def test_draining_lets_a_running_query_finish_and_publishes_it(place: Place) -> None:
    # It ends by its own time limit while the service drains.
    place.create(("a.smt2", SLOW))
    child = place.start("serve", "campaign", "-e", ODD_ENGINE, "-t", "3", SMTSPOOL_DRAIN_SECONDS="1000")
    until(lambda: place.counts().leased, "a lease")
    child.terminate()
    ended(child)
    assert child.returncode == 143
    assert place.answers() == {query(1, name="slow", against=2).id: "unknown"}
    assert place.counts().publications_published == 1


def test_a_second_signal_stops_at_once(place: Place) -> None:
    child = serving(place, SMTSPOOL_DRAIN_SECONDS="1000")
    child.terminate()
    assert child.stderr is not None
    while "draining" not in child.stderr.readline():
        assert child.poll() is None
    asked = time.monotonic()
    child.terminate()
    ended(child)
    assert time.monotonic() - asked < 10
    assert child.returncode == 143
    assert place.counts().pending == place.counts().open
    place.assert_no_process_left()


def test_a_terminal_that_closes_hangs_up_twice_and_drains(place: Place) -> None:
    place.create(("a.smt2", SLOW))
    child = place.start("serve", "campaign", "-e", ODD_ENGINE, "-t", "3", SMTSPOOL_DRAIN_SECONDS="1000")
    until(lambda: place.counts().leased, "a lease")
    child.send_signal(signal.SIGHUP)
    assert child.stderr is not None
    while "draining" not in child.stderr.readline():
        assert child.poll() is None
    child.send_signal(signal.SIGHUP)
    ended(child)
    assert child.returncode == 129
    assert place.counts().unknown == 1


def test_under_nohup_a_service_outlives_its_terminal(place: Place) -> None:
    place.create()
    child = place.launch(["nohup", COMMAND, "serve", "campaign"])
    assert child.stderr is not None
    while "serving" not in child.stderr.readline():
        assert child.poll() is None
    child.send_signal(signal.SIGHUP)
    place.run("submit", place.root, place.file("a.smt2", equation(1)))
    until(lambda: place.counts().done, "an answer")
    child.terminate()
    ended(child)
    assert child.returncode == 143


def test_a_log_that_nobody_reads_stops_neither_the_work_nor_a_signal(place: Place) -> None:
    place.create(*[(f"{n}.smt2", equation(n)) for n in range(256)])
    child = place.start("serve", "campaign", "-v", "--log-format", "json")
    assert child.stderr is not None
    fcntl.fcntl(child.stderr, fcntl.F_SETPIPE_SZ, 4096)
    until(lambda: place.counts().sat == 256, "every answer")
    child.terminate()
    child.wait(PATIENCE_S)
    assert child.returncode == 143
    place.assert_no_process_left()


def test_a_killed_service_leaves_no_process_and_its_leases_go_to_the_next_at_once(place: Place) -> None:
    child = serving(place)
    child.kill()
    ended(child)
    place.assert_no_process_left()
    assert place.counts().leased > 0
    place.run("serve", "campaign", "--once")  # with a real engine, and leases of a minute
    assert set(place.answers().values()) == {"unsat"}
    assert len(place.answers()) == 4
    assert place.run("fsck", "campaign").stdout == "clean\n"
    assert place.counters()["owners.reaped"] == 1
    assert list((place.root / "store" / "owners").iterdir()) == []


def test_leftovers_of_a_kill_do_not_block_the_next_start(place: Place) -> None:
    campaign = place.create(("a.smt2", equation(1)))
    (campaign.spool / ".ingest.lock").touch()
    (campaign.spool / "incoming" / ".0123456789abcdef.tmp").write_bytes(b"half a que")
    (campaign.out / "results" / ".0123456789abcdef.tmp").write_bytes(b"half a res")
    (campaign.store / "owners" / "0123456789abcdef0123456789abcdef.lock").touch()
    place.run("serve", "campaign", "--once")
    assert place.answers() == {query(1).id: "sat"}
    assert list((campaign.store / "owners").iterdir()) == []
