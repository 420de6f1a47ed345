"""The status of a campaign: counters, plates and trouble; one document, one screen that fits."""

from __future__ import annotations

import io
import json
import os
import time
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from smtspool.files import Directory
from smtspool.profile import Coordinator
from smtspool.query import Answer, Status
from smtspool.service import Campaign, Service, Settings, Snapshot, look, snapshot, status_screen
from smtspool.service.journal import Journal
from smtspool.service.profiling import KNOWLEDGE
from smtspool.store import Counts, Pace, Presence, Rate, Store
from tests.service.support import ODD_ENGINE, equation, locked, query, submit, until
from tests.store.support import in_child

NOW = 1_000_000.0
REQUESTS = [
    {"engine": "bitwuzla", "checks": False, "waits_for": "reply", "seconds": 75.0},
    {"engine": "z3", "checks": False, "waits_for": "helper", "seconds": 5.0},
    {"engine": "cvc5", "checks": True, "waits_for": None, "seconds": None},
]


def shown(now: Snapshot, width: int = 120, height: int | None = None) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(status_screen(now, width=width, height=height))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def line(text: str, label: str) -> str:
    [found] = [part for part in text.splitlines() if label in part]
    return " ".join(found.split())


def said(now: Snapshot) -> list[str]:
    return [trouble.what for trouble in now.trouble()]


def plate(pid: int, **more: Any) -> dict[str, Any]:
    """A living service that began an hour ago."""
    return {
        "schema": "smtspool-service-v1", "token": f"{pid:032x}", "alive": True, "version": "0", "host": "db1",
        "pid": pid, "started": NOW - 3600, "written": NOW, "state": "serving", "jobs": 2,
        "engines": ["bitwuzla", "z3"], "metrics_port": None, "solving": [], "failing": [],
        "last_error": None, "log_lines_lost": 0,
    } | more  # fmt: skip


def busy(**more: Any) -> Snapshot:
    """A campaign in which there is something of everything."""
    counters = {
        "admission.accepted": 1_234_567, "admission.latency_seconds": 61.0, "admission.latency_count": 100,
        "races": 5_000, "races.seconds": 100.0, "inputs.found": 321, "inputs.latest": NOW - 65,
        "reused.sat": 77, "probes": 4, "probes.validated": 1, "probes.seconds": 0.01,
    }  # fmt: skip
    for number, engine in enumerate(("bitwuzla", "z3", "cvc5", "a-solver-with-a-name-that-is-quite-long")):
        counters |= {f"attempts.{engine}": 100, f"wins.{engine}": number, f"attempt_ms.{engine}": 250}
    profile = {
        "current_profiles": 3, "current_suppressed": 1, "window_records": 9, "served": True,
        "recovery_replay_mismatches": 1, "publication_failures": 0, "checkpoint_failures": 0,
    }  # fmt: skip
    services = tuple(
        plate(
            pid,
            metrics_port=9000 + pid,
            solving=[{"worker": "worker-1", "query": f"{pid:064x}", "seconds": 75.0, "requests": REQUESTS}]
            * 4,
        )
        for pid in range(5)
    )
    made: dict[str, Any] = {
        "backlog": 12,
        "counts": Counts(5_186, 7, 64, 9_000, 800, 70, 6, 5, 9_000, 0),
        "counters": counters,
        "profile": profile,
        "pace": Pace(Rate(60, 900, NOW - 9000, NOW - 1), Rate(120, 900, NOW - 9000, NOW - 3)),
        "services": services,
        "disk_free": {"store": 10 << 30},
    }
    return Snapshot("/srv/campaigns/" + "a" * 100, NOW, **(made | more))


def test_a_snapshot_counts_files_and_queries(campaign: Campaign, store: Store) -> None:
    submit(campaign, a=equation(1), b=equation(2))
    store.ingest([query(1), query(2, against=3)])
    with store.register() as owner:
        [lease] = store.claim(owner.name, 60, 1)
        store.complete([(lease, Answer(Status.UNSAT, engine="z3"))])
        now = snapshot(campaign, store)
    assert now.backlog == 2
    assert (now.counts.pending, now.counts.done, now.counts.unsat) == (1, 1, 1)
    assert (now.pace.admitted.minute, now.pace.answered.minute) == (2, 1)
    document = json.loads(json.dumps(now.to_json()))
    assert document["schema"] == "smtspool-status-v1"
    assert document["counts"]["unsat"] == 1
    assert document["backlog"] == 2


def test_an_empty_campaign_has_no_trouble_and_no_rows_for_what_it_does_not_use(campaign: Campaign) -> None:
    now = look(campaign)
    assert said(now) == ["no service is running"] and not now.trouble()[0].severe
    text = shown(now)
    for label in ("files waiting", "answered", "sat, verified", "new inputs found"):
        assert "0" in line(text, label)
    for label in ("unknown", "error", "reused", "last answer", "rate", "done in", "engine", "profiles"):
        assert label not in text


def test_work_that_waits_with_nobody_to_do_it_is_trouble(campaign: Campaign, store: Store) -> None:
    store.ingest([query(1), query(2)])
    submit(campaign, c=equation(3))
    [trouble] = look(campaign).trouble()
    assert trouble.severe
    assert trouble.what == (
        "no service is running, and there is work for one: 2 queries, 1 file; start it with smtspool serve"
    )


def test_a_service_is_seen_with_what_it_solves_and_what_fails(campaign: Campaign) -> None:
    submit(campaign, a=equation(1, name="slow", against=2))
    with Service(campaign, Settings(jobs=1, engines=(ODD_ENGINE,), timeout_ms=1_000_000)) as service:
        until(lambda: any(one["solving"] for one in look(campaign).living), "a query that is solved")
        text = shown(look(campaign))
        assert f"service pid {os.getpid()} on {os.uname().nodename} · serving · 1 jobs · up" in text
        assert f"solving {query(1, name='slow', against=2).id[:8]} " in text
        assert "trouble: none" in text
        service.health.failed("somebody", OSError(28, "No space left on device"))
        until(lambda: any(one["failing"] for one in look(campaign).living), "the word of it")
        [trouble] = look(campaign).trouble()
        assert trouble.severe and trouble.since is not None
        assert "somebody failing for " in trouble.what and "No space left on device" in trouble.what
    assert look(campaign).services == ()


def test_a_service_that_died_is_named(campaign: Campaign) -> None:
    def die() -> int:
        Presence(campaign.store).show(plate(os.getpid(), written=time.time() - 120))
        return 0

    assert in_child(die) == 0
    assert [what.split(" on ")[-1] for what in said(look(campaign))] == [
        "no service is running", "db1 died; its last sign was 2 min ago",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "odd",
    [
        {"started": "soon"}, {"written": float("nan")}, {"pid": 10**400}, {"engines": "z3"}, {"engines": [1]},
        {"failing": [{"loop": "x"}]}, {"failing": None}, {"solving": [7]}, {"last_error": "full"},
        {"solving": [{"query": "x", "seconds": 1.0, "requests": [{"engine": "z3"}]}]},
        {"log_lines_lost": [1]}, {"state": None}, {"metrics_port": "x"},
    ],
)  # fmt: skip
def test_a_plate_with_members_that_no_service_writes_is_not_read(campaign: Campaign, odd: Any) -> None:
    presence = Presence(campaign.store)
    presence.show(plate(os.getpid(), written=time.time()) | odd)
    now = look(campaign)
    presence.close()
    assert now.services == ({"token": presence.token, "alive": True},)
    assert "a service that has said nothing yet" in shown(now)


def test_a_store_that_cannot_be_read_is_trouble_and_hides_nothing_else(campaign: Campaign) -> None:
    (campaign.store / "index.sqlite3").write_bytes(b"no database " * 1000)
    now = look(campaign)
    assert now.unreadable is not None
    assert said(now)[0].startswith("the store cannot be read: ")
    assert "no service is running" in said(now)


def test_a_locked_store_can_be_looked_at(campaign: Campaign, store: Store) -> None:
    store.ingest([query(1)])
    with locked(campaign):
        assert look(campaign).counts.pending == 1


@pytest.mark.parametrize(
    ("more", "what", "severe"),
    [
        ({"disk_free": {"store": 0, "out": 1 << 30}}, "the disk is full below store", True),
        ({"disk_free": {"out": 30 << 20}}, "the disk is nearly full below out: 31.5 MB left", False),
        ({"journal": Journal(1 << 30, NOW - 200)},
         "a reader has kept the store's journal for 3 min: 1.07 GB and growing", False),
        ({"counters": {"disagreements": 2}}, "disagreements 2", False),
        ({"services": (plate(1, log_lines_lost=12_345),)},
         "log lines lost 12.3 k: nobody reads stderr in time", False),
        ({"services": (plate(7, written=NOW - 40),)},
         "pid 7 on db1 has given no sign for 40 s: stopped, or waiting for a disk", True),
        ({"services": ({"token": "x", "alive": None},)},
         "lock files that cannot be opened: 1; services of other users may live", False),
        ({"services": (plate(7, last_error={"at": NOW - 60, "loop": "admission", "message": "full"}),)},
         "admission failed 1 min ago and works again: full", False),
        ({"services": (plate(7, failing=[
            {"loop": f"worker-{number}", "since": NOW - 200 + number, "failures": 3, "message": "disk full"}
            for number in (1, 2)]),)},
         "pid 7: worker-1, worker-2 failing for 3 min (6 times): disk full", True),
    ],
)  # fmt: skip
def test_trouble(more: dict[str, Any], what: str, severe: bool) -> None:
    now = busy(**({"counters": {}, "profile": None, "services": (plate(1),)} | more))
    assert [(trouble.what, trouble.severe) for trouble in now.trouble()] == [(what, severe)]
    assert ("! " in shown(now)) is severe
    # Nobody can tell when a full disk will be emptied.
    assert (now.eta_seconds is None) is (severe or not now.living)
    assert ("done in about" in shown(now)) is (now.eta_seconds is not None)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
@pytest.mark.parametrize("services", [0, 1, 5])
@pytest.mark.parametrize("failing", [0, 9])
def test_it_fits(width: int, height: int, services: int, failing: int) -> None:
    now = busy()
    ailments = [
        {"loop": f"worker-{number}", "since": NOW - 60, "failures": 3, "message": f"{number} " + "long " * 40}
        for number in range(failing)
    ]
    now = replace(now, services=tuple(dict(one, failing=ailments) for one in now.services[:services]))
    lines = shown(now, width, height).splitlines()
    assert len(lines) <= height
    assert {len(line) for line in lines} == {width}
    for label in ("answered", "rate 1 · 15 min", "new inputs found"):
        assert any(label in line for line in lines)
    assert any("no service is running" in line for line in lines) is (services == 0)


def test_the_requests_of_each_query_are_shown_where_there_is_room() -> None:
    one = plate(
        1, solving=[{"worker": "worker-1", "query": "3fa2" * 16, "seconds": 2.1, "requests": REQUESTS}]
    )
    now = busy(services=(one,), counters={}, profile=None)
    asked = "solving 3fa23fa2 2.1 s · bitwuzla: reply, z3: helper, cvc5/check"
    assert asked in shown(now, 80, 24) and asked in shown(now)
    # A service of another version does not say it.
    del one["solving"][0]["requests"]
    assert "solving 3fa23fa2 2.1 s" in shown(now, 80, 24) and "bitwuzla: " not in shown(now, 80, 24)
    assert "solving 00000000 1 min, 00000000 1 min" in shown(busy(), 80, 24)


def test_figures_are_as_people_read_them() -> None:
    text = shown(busy())
    assert "1.23 M" in line(text, "files accepted")
    assert "2.0/s · 1.0/s" in line(text, "rate 1 · 15 min")
    assert "1 h 27 min" in line(text, "done in about")
    assert "3 s ago" in line(text, "last answer") and "1 min ago" in line(text, "last new input")
    assert "1 h 0 min" in line(text, "run time")
    assert "610 ms" in line(text, "admission takes")


def test_the_screen_shows_what_was_learnt_once_something_was(campaign: Campaign, store: Store) -> None:
    assert "domains" not in shown(snapshot(campaign, store))
    with Directory.open(campaign.profile, create=True) as directory:
        told = Coordinator(directory).snapshot().to_json()
    store.put(KNOWLEDGE, told | {"current_profiles": 3, "recovery_replay_mismatches": 1, "window_records": 9})
    store.bump({"probes": 4, "probes.validated": 1, "probes.seconds": 0.01})
    now = snapshot(campaign, store)
    text = shown(now)
    assert "3 domains, not served" in line(text, "profiles")
    assert "1 of 4, mean 2.50 ms" in line(text, "probes that answered")
    assert "replays that did not match 1" in text
    assert json.loads(json.dumps(now.to_json()))["profile"]["current_profiles"] == 3


def test_a_name_is_shown_and_not_obeyed(campaign: Campaign, store: Store) -> None:
    odd = replace(snapshot(campaign, store), campaign="/a[/red]b\x1b[2J\n\udcff")
    assert r"/a[/red]b\x1b[2J\n\udcff" in shown(odd)
