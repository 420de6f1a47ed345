"""Metrics over real HTTP, in the words Prometheus reads."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from contextlib import AbstractContextManager

import pytest
from prometheus_client.parser import text_string_to_metric_families

from smtspool.service import Campaign, exposed, metrics
from smtspool.service.loops import Health
from smtspool.store import Store
from tests.service.support import query


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def scraped(port: int) -> dict[tuple[str, str], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as reply:
        families = text_string_to_metric_families(reply.read().decode())
        return {
            (sample.name, next(iter(sample.labels.values()), "")): sample.value
            for family in families
            for sample in family.samples
        }


def test_counters_gauges_and_failing_loops_are_served(campaign: Campaign, store: Store) -> None:
    store.ingest([query(1)])
    store.bump({"wins.z3": 3})
    store.put("profiles", {"dirty": True, "current_profiles": 3, "current_version": "c", "doubts": []})
    health = Health()
    health.failed("admission", OSError("disk full"))
    health.failed("admission", OSError("disk full"))
    port = free_port()
    with exposed(port, lambda: Store.open(campaign.store), health):
        found = scraped(port)
    assert found["smtspool_now", "queries.pending"] == 1
    assert found["smtspool_events_total", "wins.z3"] == 3
    assert found["smtspool_failing", "admission"] == 2
    assert found["smtspool_profile", "current_profiles"] == 3
    assert found["smtspool_profile", "dirty"] == 1
    assert ("smtspool_profile", "doubts") not in found


def test_afterwards_nobody_listens(campaign: Campaign) -> None:
    port = free_port()
    with exposed(port, lambda: Store.open(campaign.store), Health()):
        scraped(port)
    with pytest.raises(urllib.error.URLError):
        scraped(port)


def test_port_0_serves_nothing(campaign: Campaign) -> None:
    with exposed(0, lambda: pytest.fail("nobody asked"), Health()):
        pass


def test_of_a_taken_port_the_next_free_one_is_taken(campaign: Campaign) -> None:
    port = free_port()

    def one() -> AbstractContextManager[int | None]:
        return exposed(port, lambda: Store.open(campaign.store), Health())

    with one() as first, one() as second:
        assert first == port and second is not None and second > port
        assert scraped(first) == scraped(second) != {}


def test_when_no_port_is_free_it_is_said_so(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "PORTS", 1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(OSError, match=f"every port of localhost from {port} to {port} is taken"),
            exposed(port, lambda: Store.open(campaign.store), Health()),
        ):
            pass
