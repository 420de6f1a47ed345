"""Several masters over one spool, under the real mpiexec: rights, renewals, ordered ends, nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from smtspool.store import INDEX_NAME, Store
from tests.cluster.launch import Rank, run, start
from tests.e2e.campaign import Place, identities, sampled
from tests.service.support import PATIENCE_S, until

pytestmark = pytest.mark.slow

# Each query once: one that comes in two files may reach two masters.
ASKED = list({min(identities([file])): file for file in sampled("utf8", "leb128")}.values())
SERVE = ("serve", "campaign", "-j", "1", "-e", "bitwuzla", "-e", "z3")


def masters(place: Place, hosts: str, *words: str, **environment: str) -> list[Rank]:
    """One per letter, each with a store of its own."""
    return [
        Rank(*SERVE, *words, host=f"host{name}", SMTSPOOL_STORE=str(store(place, name)), **environment)
        for name in hosts
    ]


def store(place: Place, host: str) -> Path:
    return place.folder / f"disk-{host}" / "store"


def disks(place: Place, hosts: str) -> None:
    for host in hosts:
        store(place, host).parent.mkdir()


def answered(place: Place, host: str) -> set[str]:
    if not store(place, host).exists():
        return set()
    with Store.open(store(place, host)) as opened:
        return {result.query_id for result in opened.results()}


def stored(place: Place, host: str) -> int:
    with Store.open(store(place, host)) as opened:
        counts = opened.counts()
        return counts.open + counts.done


def assert_sound(place: Place, hosts: str) -> None:
    for host in hosts:
        checked = place.run("fsck", "campaign", SMTSPOOL_STORE=str(store(place, host)))
        assert checked.stdout == "clean\n"


def assert_nothing_lost(place: Place, hosts: Sequence[str], spool: Path) -> None:
    """Every file is still in the spool, or accepted and its query in exactly one store."""
    waiting = len(list((spool / "incoming").iterdir()))
    accepted = len(list((spool / "accepted").iterdir()))
    assert waiting + accepted == len(ASKED)
    # A file of which the move was still due is in a store already: admitting it again changes nothing there.
    assert sum(stored(place, host) for host in hosts) >= accepted


def renewing(ranks: list[Rank], place: Place, hosts: str, **environment: str) -> subprocess.Popen[str]:
    """A fleet that has renewed at least once, by what it records."""
    fleet = start(place, *ranks, SMTSPOOL_RENEW_SECONDS="0.3", SMTSPOOL_RENEW_JITTER="0", **environment)
    trace = place.folder / "trace-a"
    until(
        lambda: (trace.exists() and '"Success"' in trace.read_text()) or fleet.poll() is not None,
        "a renewal",
        2 * PATIENCE_S,
    )
    assert fleet.poll() is None
    return fleet


def traced(place: Place, hosts: str) -> list[Rank]:
    return [
        Rank(
            *SERVE,
            "--trace",
            place.folder / f"trace-{name}",
            host=f"host{name}",
            SMTSPOOL_STORE=str(store(place, name)),
        )
        for name in hosts
    ]


def test_masters_on_two_hosts_share_a_spool_and_keep_a_store_each(place: Place) -> None:
    place.create(*ASKED)
    disks(place, "ab")
    done = run(place, *masters(place, "ab", "--once"), SMTSPOOL_RENEW_SECONDS="0.2")
    assert done.stderr.count("EveryMaster; this one admits") == 2
    first, second = answered(place, "a"), answered(place, "b")
    assert first | second == identities(ASKED)
    assert not first & second
    assert place.in_spool("accepted") == {name for name, _ in ASKED}
    assert place.in_spool("incoming") == set()
    published = {path.stem for path in (place.root / "out" / "results").glob("*.json")}
    assert published == identities(ASKED)
    assert_sound(place, "ab")


def test_masters_on_one_host_share_its_store_and_one_admits(place: Place) -> None:
    place.create(*ASKED)
    done = run(place, *[Rank(*SERVE, "--once")] * 3)
    assert done.stderr.count("OneOwner; this one admits") == 1
    assert done.stderr.count("OneOwner; this one does not admit") == 2
    assert set(place.answers()) == identities(ASKED)
    assert place.run("fsck", "campaign").stdout == "clean\n"


def test_masters_that_cannot_trust_the_spool_admit_nothing(place: Place) -> None:
    place.create(*ASKED)
    disks(place, "ab")
    copy = place.folder / "copy"
    subprocess.run(["cp", "-r", str(place.root), str(copy)], check=True)
    ranks = masters(place, "ab", "--once")
    there = Rank("serve", copy, "--once", host="hostb", SMTSPOOL_STORE=str(store(place, "b")))
    done = run(place, ranks[0], there, code=65)
    assert "not the one that rank 0 wrote" in done.stderr or "No such file" in done.stderr
    assert place.in_spool("incoming") == {name for name, _ in ASKED}
    assert not any((store(place, name) / INDEX_NAME).exists() for name in "ab")


def test_two_hosts_with_one_store_are_refused_before_anything_is_admitted(place: Place) -> None:
    place.create(*ASKED)
    done = run(place, *[Rank(*SERVE, "--once", host=f"host{name}") for name in "ab"], code=70)
    assert "have the same store; give each host its own disk" in done.stderr
    assert place.in_spool("incoming") == {name for name, _ in ASKED}


def test_a_renewal_that_fails_shuts_all_down_in_order_and_loses_nothing(place: Place) -> None:
    place.create(*ASKED)
    disks(place, "ab")
    fleet = renewing(traced(place, "ab"), place, "ab")
    moved = place.folder / "moved"
    (place.root / "spool").rename(moved)
    _, complaints = fleet.communicate(timeout=2 * PATIENCE_S)
    assert fleet.returncode == 70, complaints
    assert "no such directory" in complaints
    assert "Traceback" not in complaints
    place.assert_no_process_left()
    for name in "ab":
        # Ended in order: no owner has anything any more.
        assert list((store(place, name) / "owners").iterdir()) == []
        trace = (place.folder / f"trace-{name}").read_text()
        assert trace.count('"Failure"') == trace.count('"Shutdown"') == 1
    moved.rename(place.root / "spool")
    assert_sound(place, "ab")
    assert_nothing_lost(place, "ab", place.root / "spool")
    run(place, *masters(place, "ab", "--once"))
    assert answered(place, "a") | answered(place, "b") == identities(ASKED)


def test_a_signal_to_one_rank_drains_the_fleet(place: Place) -> None:
    place.create(*ASKED)
    disks(place, "ab")
    fleet = renewing(traced(place, "ab"), place, "ab")
    os.kill(serving(place)[-1], signal.SIGTERM)
    _, complaints = fleet.communicate(timeout=2 * PATIENCE_S)
    assert "draining with the others" in complaints
    assert fleet.returncode == 143, complaints
    place.assert_no_process_left()
    assert_sound(place, "ab")
    assert_nothing_lost(place, "ab", place.root / "spool")


def serving(place: Place) -> list[int]:
    """The processes of the ranks themselves."""
    found = []
    for pid in place.processes():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except FileNotFoundError:
            continue
        if b"serve" in words and b"python" in words[0]:
            found.append(pid)
    return sorted(found)


def test_a_rank_that_hangs_is_not_waited_for_longer_than_a_renewal(place: Place) -> None:
    place.create(*ASKED)
    disks(place, "ab")
    fleet = renewing(traced(place, "ab"), place, "ab", SMTSPOOL_QUALIFY_SECONDS="2")
    began = time.monotonic()
    os.kill(serving(place)[-1], signal.SIGSTOP)
    _, complaints = fleet.communicate(timeout=2 * PATIENCE_S)
    assert fleet.returncode == 70, complaints
    assert "within the time allowed" in complaints
    assert time.monotonic() - began < PATIENCE_S
    place.assert_no_process_left()
    assert_sound(place, "ab")
    assert_nothing_lost(place, "ab", place.root / "spool")


def test_a_killed_rank_takes_the_fleet_along_and_nothing_is_lost(place: Place) -> None:
    place.create(*ASKED)
    disks(place, "ab")
    fleet = renewing(traced(place, "ab"), place, "ab")
    os.kill(serving(place)[0], signal.SIGKILL)
    fleet.communicate(timeout=2 * PATIENCE_S)
    assert fleet.returncode != 0
    place.assert_no_process_left()
    assert_sound(place, "ab")
    assert_nothing_lost(place, "ab", place.root / "spool")
    run(place, *masters(place, "ab", "--once"))
    assert answered(place, "a") | answered(place, "b") == identities(ASKED)
