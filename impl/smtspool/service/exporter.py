"""The metrics that Prometheus reads: of each service, and of the campaign from one service at a time.

Every service reports about its own process: build, loops that fail, what it solves, histograms. The figures
of the campaign are in the store, the same for all. One service reports them, which holds a lock that the
kernel releases when it dies; so a sum over services counts nothing twice.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from smtspool import __version__
from smtspool.errors import InfrastructureError
from smtspool.files import Directory, FileLock
from smtspool.store import Store

from .campaign import Campaign
from .catalogue import Entry, entry_of
from .config import Settings
from .desk import Desk
from .histogram import Histogram
from .increments import Increments
from .logs import dropped_lines
from .loops import Health
from .status import Snapshot, snapshot

__all__ = ["Exporter"]

log = logging.getLogger("smtspool")

LOCK = ".metrics.lock"


class Exporter(Collector):
    """The metrics of a service. Simultaneous scrapes, each on its own thread, take turns."""

    def __init__(
        self,
        campaign: Campaign,
        settings: Settings,
        desk: Desk,
        health: Health,
        increments: Increments,
        *,
        open_store: Callable[[], Store],
    ) -> None:
        self._campaign = campaign
        self._settings = settings
        self._desk = desk
        self._health = health
        self._increments = increments
        self._open_store = open_store
        self._turn = threading.Lock()
        self._directory: Directory | None = None
        self._lock: FileLock | None = None
        self._leads = False

    def close(self) -> None:
        """Let another service report about the campaign."""
        with self._turn:
            if self._lock is not None:
                self._lock.release()
            if self._directory is not None:
                self._directory.close()
            self._directory = self._lock = None
            self._leads = False

    def collect(self) -> Iterator[Metric]:
        with self._turn:
            yield from self._of_process()
            try:
                if self._lead():
                    with self._open_store() as store:
                        now = snapshot(self._campaign, store)
                    yield from self._of_campaign(now)
            except (InfrastructureError, OSError) as error:
                log.warning("metrics of the campaign: %s", error)

    def _lead(self) -> bool:
        if self._lock is None:
            self._directory = Directory.open(self._campaign.store)
            self._lock = FileLock(self._directory, LOCK)
        self._leads = self._leads or self._lock.try_acquire()
        return self._leads

    # -- of this process --------------------------------------------------------------------------------

    def _of_process(self) -> Iterator[Metric]:
        yield self._single(InfoMetricFamily, "build", "What serves", {"version": __version__})
        yield self._gauge("jobs", "Queries that this service solves at a time", self._settings.jobs)
        solving = self._desk.solving_now()
        yield self._gauge("busy_jobs", "Queries that it is solving", len(solving))
        longest = max((one.seconds for one in solving), default=0.0)
        yield self._gauge("longest_solving_seconds", "For how long it has been at one of them", longest)
        failing = self._family(GaugeMetricFamily, "failing", "Failures in a row of a loop", ["loop"])
        for loop, ailment in self._health.ailing().items():
            failing.add_metric([str(self._campaign.root), loop], ailment.failures)
        yield failing
        lost = "Log lines that nobody read in time"
        yield self._single(CounterMetricFamily, "log_lines_lost", lost, dropped_lines())
        yield self._histogram("race_duration_seconds", "How long races took", self._increments.raced)
        yield self._histogram(
            "admission_latency_seconds",
            "How long accepted files waited, while this service served",
            self._increments.waited,
        )

    # -- of the campaign --------------------------------------------------------------------------------

    def _of_campaign(self, now: Snapshot) -> Iterator[Metric]:
        yield from self._counters(now.counters)
        yield self._gauge("spool_files", "Files waiting in incoming/", now.backlog)
        yield self._gauge("services", "Services that live", len(now.living))
        free = self._family(GaugeMetricFamily, "disk_free_bytes", "Room on a disk", ["folder"])
        for folder, count in now.disk_free.items():
            free.add_metric([now.campaign, folder], count)
        yield free
        for name, rate in (("query", now.pace.admitted), ("answer", now.pace.answered)):
            if rate.last is not None:
                yield self._gauge(f"last_{name}_timestamp_seconds", f"When the last {name} came", rate.last)
        if now.journal is not None:
            since = now.journal.stuck_since
            stuck = 0.0 if since is None else max(0.0, time.time() - since)
            yield self._gauge("journal_bytes", "Length of the store's journal", now.journal.bytes)
            yield self._gauge("journal_stuck_seconds", "How long a reader has kept it", stuck)
        profile = self._family(GaugeMetricFamily, "profile", "Value profiles, as last told", ["figure"])
        for figure, value in sorted((now.profile or {}).items()):
            if isinstance(value, int):  # also true and false
                profile.add_metric([now.campaign, figure], value)
        yield profile

    def _counters(self, counters: Mapping[str, float]) -> Iterator[Metric]:
        families: dict[Entry, Any] = {}
        for name, value in sorted(counters.items()):
            entry, label = entry_of(name)
            if entry not in families:
                kind = GaugeMetricFamily if entry.gauge else CounterMetricFamily
                labels = [] if entry.label is None else [entry.label]
                families[entry] = self._family(kind, entry.metric, entry.help, labels)
            labelled = [str(self._campaign.root), *([] if label is None else [label])]
            families[entry].add_metric(labelled, value * entry.scale)
        yield from families.values()

    # -- families, each labelled with the campaign ------------------------------------------------------

    def _family(self, kind: Any, name: str, text: str, labels: list[str] | None = None) -> Any:
        return kind(f"smtspool_{name}", text, labels=["campaign", *(labels or [])])

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        return self._single(GaugeMetricFamily, name, text, value)

    def _histogram(self, name: str, text: str, histogram: Histogram) -> Metric:
        return self._single(HistogramMetricFamily, name, text, *histogram.read())

    def _single(self, kind: Any, name: str, text: str, *value: object) -> Metric:
        """The family of a metric that has no further label."""
        family: Any = self._family(kind, name, text)
        family.add_metric([str(self._campaign.root)], *value)
        metric: Metric = family
        return metric
