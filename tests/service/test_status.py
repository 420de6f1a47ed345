"""The status of a campaign: all from counters, one document, one screen."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from rich.console import Console

from smtspool.files import Directory
from smtspool.profile import Coordinator
from smtspool.query import Answer, Status
from smtspool.service import Campaign, Snapshot, screen, snapshot
from smtspool.service.profiling import KNOWLEDGE
from smtspool.store import Store
from tests.service.support import equation, query, submit


def shown(now: Snapshot, before: Snapshot | None = None) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(screen(now, before))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def line(text: str, label: str) -> str:
    [found] = [part for part in text.splitlines() if label in part]
    return " ".join(found.split())


def test_a_snapshot_counts_files_and_queries(campaign: Campaign, store: Store) -> None:
    submit(campaign, a=equation(1), b=equation(2))
    store.ingest([query(1), query(2, against=3)])
    with store.register() as owner:
        [lease] = store.claim(owner.name, 60, 1)
        store.complete([(lease, Answer(Status.UNSAT, engine="z3"))])
        now = snapshot(campaign, store)
    assert now.backlog == 2
    assert (now.counts.pending, now.counts.done, now.counts.unsat) == (1, 1, 1)
    document = json.loads(json.dumps(now.to_json()))
    assert document["schema"] == "smtspool-status-v1"
    assert document["counts"]["unsat"] == 1
    assert document["backlog"] == 2


def test_the_screen_of_an_empty_campaign_shows_zeros(campaign: Campaign, store: Store) -> None:
    text = shown(snapshot(campaign, store))
    for label in ("files in incoming", "queries answered", "sat, verified"):
        assert "0" in line(text, label)
    assert "none" in text and "disagreements" not in text


def test_the_screen_names_the_trouble_there_is(campaign: Campaign, store: Store) -> None:
    before = snapshot(campaign, store)
    text = shown(replace(before, counters=before.counters | {"disagreements": 2}))
    assert "2" in line(text, "disagreements") and "stale" not in text


def test_the_screen_shows_what_was_learnt_once_something_was(campaign: Campaign, store: Store) -> None:
    assert "domains" not in shown(snapshot(campaign, store))
    with Directory.open(campaign.profile, create=True) as directory:
        told = Coordinator(directory).snapshot().to_json()
    store.put(KNOWLEDGE, told | {"current_profiles": 3, "recovery_replay_mismatches": 1})
    store.bump({"probes": 4, "probes.validated": 1, "probes.seconds": 0.01})
    now = snapshot(campaign, store)
    text = shown(now)
    assert "3, not served" in line(text, "domains  ")
    assert "1 of 4" in line(text, "probes that answered")
    assert "2.5 ms" in line(text, "mean time per probe")
    assert "1" in line(text, "replays that did not match")
    assert json.loads(json.dumps(now.to_json()))["profile"]["current_profiles"] == 3


def test_the_screen_shows_rates_between_two_looks(campaign: Campaign, store: Store) -> None:
    before = snapshot(campaign, store)
    later = replace(
        before,
        taken=before.taken + 2.0,
        counts=replace(before.counts, sat=30),
        counters=before.counters
        | {"queries.done": 30, "attempts.z3": 4, "wins.z3": 3, "attempt_ms.z3": 10.0},
    )
    text = shown(later, before)
    assert "30 (15.0/s)" in line(text, "queries answered")
    assert "z3 4 3 0 2.5" in line(text, "z3")


def test_a_name_is_shown_and_not_obeyed(campaign: Campaign, store: Store) -> None:
    odd = replace(snapshot(campaign, store), campaign="/a[/red]b\x1b[2J\n\udcff")
    assert r"/a[/red]b\x1b[2J\n\udcff" in shown(odd)
