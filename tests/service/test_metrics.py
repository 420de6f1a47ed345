"""Metrics over real HTTP, in the words Prometheus reads."""

from __future__ import annotations

import json
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from smtspool.query import Answer, Status
from smtspool.service import Campaign, Service, Settings, exposed, metrics
from smtspool.service.catalogue import CATALOGUE, entry_of
from smtspool.service.desk import Desk
from smtspool.service.exporter import Exporter
from smtspool.service.histogram import Histogram
from smtspool.service.increments import Increments
from smtspool.service.loops import Health
from smtspool.solve import RaceSummary
from smtspool.spool import Outcome, ScanReport
from smtspool.store import Store
from tests.service.support import equation, query, submit, until, witnessed

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def text_of(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as reply:
        return str(reply.read().decode())


def scraped(port: int) -> dict[tuple[str, ...], float]:
    """Values by name and labels, but that of the campaign."""
    return {
        (sample.name, *(value for label, value in sample.labels.items() if label != "campaign")): sample.value
        for family in text_string_to_metric_families(text_of(port))
        for sample in family.samples
    }


def exporter(campaign: Campaign, health: Health, increments: Increments) -> Exporter:
    return Exporter(
        campaign,
        Settings(jobs=3),
        Desk(),
        health,
        increments,
        open_store=lambda: Store.open(campaign.store),
    )


@pytest.fixture
def health() -> Health:
    return Health()


@pytest.fixture
def increments() -> Increments:
    return Increments()


@pytest.fixture
def port(campaign: Campaign, health: Health, increments: Increments) -> Iterator[int]:
    with exposed(free_port(), exporter(campaign, health, increments)) as taken:
        assert taken is not None
        yield taken


def test_the_campaign_is_told_with_labels_and_right_types(
    campaign: Campaign, store: Store, port: int
) -> None:
    store.ingest([query(1)])
    submit(campaign, a=equation(2))
    store.bump({"wins.z3": 3, "wins.my.own": 1, "attempt_ms.z3": 1500.0, "stale": 2, "probes.unsat": 4})
    store.put("profiles", {"dirty": True, "current_profiles": 3, "current_version": "c", "doubts": []})
    found = scraped(port)
    assert found["smtspool_queries", "pending"] == 1
    assert found["smtspool_engine_wins_total", "z3"] == 3
    assert found["smtspool_engine_wins_total", "my.own"] == 1
    assert found["smtspool_engine_seconds_total", "z3"] == 1.5
    assert found["smtspool_events_total", "stale"] == 2
    assert found["smtspool_ended_probes_total", "unsat"] == 4
    assert found[("smtspool_spool_files",)] == 1
    assert found["smtspool_disk_free_bytes", "store"] > 0
    assert found["smtspool_profile", "current_profiles"] == 3
    assert found["smtspool_profile", "dirty"] == 1
    assert ("smtspool_profile", "doubts") not in found
    for family in text_string_to_metric_families(text_of(port)):
        for sample in family.samples:
            if sample.name.startswith("smtspool_"):
                assert sample.labels["campaign"] == str(campaign.root)
            assert (family.type == "counter") is sample.name.endswith("_total")


def test_the_process_is_told(port: int, health: Health, increments: Increments) -> None:
    health.failed("admission", OSError("disk full"))
    health.failed("admission", OSError("disk full"))
    increments.race(RaceSummary("z3", ("z3",), 0.1, 1, False, 250.0))
    increments.scan(ScanReport(Outcome.SCANNED, accepted=2, latency=(0.02, 70.0)))
    found = scraped(port)
    assert found["smtspool_failing", "admission"] == 2
    assert found[("smtspool_jobs",)] == 3
    assert found["smtspool_race_duration_seconds_bucket", "0.1"] == 0
    assert found["smtspool_race_duration_seconds_bucket", "0.25"] == 1
    assert found[("smtspool_race_duration_seconds_sum",)] == 0.25
    assert found["smtspool_admission_latency_seconds_bucket", "60"] == 1
    assert found[("smtspool_admission_latency_seconds_count",)] == 2
    assert found[("process_start_time_seconds",)] > 0
    assert any(name == "smtspool_build_info" for name, *_ in found)


def test_a_store_that_cannot_be_read_leaves_what_is_known_of_the_process(
    campaign: Campaign, port: int
) -> None:
    (campaign.store / "index.sqlite3").write_bytes(b"no database " * 1000)
    found = scraped(port)
    assert ("smtspool_jobs",) in found and ("smtspool_queries", "pending") not in found


def test_a_sum_over_services_counts_nothing_twice(campaign: Campaign, store: Store, port: int) -> None:
    store.bump({"wins.z3": 3})
    with exposed(free_port(), exporter(campaign, Health(), Increments())) as other:
        assert other is not None
        first, second = scraped(port), scraped(other)
        assert first["smtspool_engine_wins_total", "z3"] == 3
        assert ("smtspool_engine_wins_total", "z3") not in second
        assert ("smtspool_jobs",) in first.keys() & second.keys()


def test_when_the_one_that_tells_ends_another_one_does(campaign: Campaign, store: Store) -> None:
    def one() -> AbstractContextManager[int | None]:
        return exposed(free_port(), exporter(campaign, Health(), Increments()))

    with one() as second:
        with one() as first:
            assert first is not None and second is not None
            assert ("smtspool_services",) in scraped(first)
            assert ("smtspool_services",) not in scraped(second)
        assert ("smtspool_services",) in scraped(second)


def test_every_metric_is_documented_and_every_documented_one_is_exposed(
    campaign: Campaign, store: Store, port: int, health: Health
) -> None:
    for entry in CATALOGUE:
        if not entry.counters.startswith(("queries", "results", "publications")):  # those count rows
            of_label = "accepted" if "accepted" in entry.counters else "x"
            store.bump({re.sub(r"\(.*\)", of_label, entry.counters).replace("\\", ""): 1})
    store.bump({"stale": 1})
    store.ingest([query(1)])
    with store.register() as owner:
        [lease] = store.claim(owner.name, 60, 1)
        store.complete([(lease, Answer(Status.UNSAT, engine="z3"))])
    health.failed("admission", OSError())
    store.put("profiles", {"current_profiles": 3})
    found = {
        sample.name.removesuffix("_bucket").removesuffix("_created")
        for family in text_string_to_metric_families(text_of(port))
        for sample in family.samples
        if not re.search(r"_duration_seconds_(sum|count)$|_latency_seconds_(sum|count)$", sample.name)
    }
    tables = PAGE.read_text().split("## Alert rules")[0].split("## Of each service")[1]
    documented = set(re.findall(r"`((?:smtspool|process)_\w+)`", tables))
    assert found == documented
    rules = PAGE.read_text().split("## Alert rules")[1]
    assert set(re.findall(r"\bsmtspool_\w+", rules)) <= documented


@pytest.mark.parametrize(
    ("counter", "metric", "label"),
    [
        ("wins.a.b", "engine_wins", "a.b"),
        ("races", "races", None),
        ("races.seconds", "race_seconds", None),
        ("probes.seconds", "probe_seconds", None),
        ("probes.refused", "ended_probes", "refused"),
        ("owners.reaped", "events", "owners.reaped"),
        ("admission.new_thing", "events", "admission.new_thing"),
    ],
)
def test_a_counter_has_one_place(counter: str, metric: str, label: str | None) -> None:
    entry, value = entry_of(counter)
    assert (entry.metric, value) == (metric, label)


def test_a_histogram_counts_up_to_its_bounds() -> None:
    histogram = Histogram((1.0, 2.0))
    histogram.observe([0.5, 1.0, 1.5, 9.0])
    assert histogram.read() == ([("1", 2), ("2", 3), ("+Inf", 4)], 12.0)


def test_a_service_exposes_what_it_does(campaign: Campaign) -> None:
    submit(campaign, a=json.dumps(witnessed(42)))
    (campaign.spool / "incoming" / "a.smt2").rename(campaign.spool / "incoming" / "a.json")
    settings = Settings(jobs=1, engines=("bitwuzla", "z3"), metrics_port=free_port())
    with Service(campaign, settings):
        until(lambda: scraped(settings.metrics_port).get(("smtspool_inputs_found_total",)) == 1, "the input")
        found = scraped(settings.metrics_port)
    assert found["smtspool_results", "sat"] == 1
    assert found["smtspool_files_total", "accepted"] == 1
    assert found[("smtspool_race_duration_seconds_count",)] == 1
    assert found[("smtspool_services",)] == 1


def test_afterwards_nobody_listens(campaign: Campaign, health: Health, increments: Increments) -> None:
    port = free_port()
    with exposed(port, exporter(campaign, health, increments)):
        scraped(port)
    with pytest.raises(urllib.error.URLError):
        scraped(port)


def test_port_0_serves_nothing(campaign: Campaign, health: Health, increments: Increments) -> None:
    with exposed(0, exporter(campaign, health, increments)) as port:
        assert port is None


def test_of_a_taken_port_the_next_free_one_is_taken(campaign: Campaign, port: int) -> None:
    with exposed(port, exporter(campaign, Health(), Increments())) as second:
        assert second is not None and second > port
        assert scraped(port) and scraped(second)


def test_when_no_port_is_free_it_is_said_so(
    campaign: Campaign, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "PORTS", 1)
    with (
        pytest.raises(OSError, match=f"every port of localhost from {port} to {port} is taken"),
        exposed(port, exporter(campaign, Health(), Increments())),
    ):
        pass
