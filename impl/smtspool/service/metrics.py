"""Prometheus metrics: the store's counters under their own names, read at scrape time.

``smtspool_events_total{name="wins.z3"}`` and friends, ``smtspool_now{name="queries.pending"}`` for what
can fall again, ``smtspool_profile{name="current_profiles"}`` for what the coordinator of value profiles last
said of itself, and ``smtspool_failing{loop="admission"}``.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from smtspool import threads
from smtspool.errors import InfrastructureError
from smtspool.store import Store

from .journal import journal
from .loops import Health
from .profiling import KNOWLEDGE

__all__ = ["exposed"]

log = logging.getLogger("smtspool")

# Counters that can fall are gauges to Prometheus.
PORTS = 100
LAST_PORT = 65_535
GAUGES = ("queries.", "results.", "publications.")


class _StoreCollector(Collector):
    """Reads a store at every scrape, through a connection of its own thread."""

    def __init__(self, open_store: Callable[[], Store], health: Health) -> None:
        self._open_store = open_store
        self._health = health

    def collect(self) -> Iterator[Metric]:
        failing = GaugeMetricFamily("smtspool_failing", "Failures in a row of a loop", labels=["loop"])
        for loop, ailment in self._health.ailing().items():
            failing.add_metric([loop], ailment.failures)
        yield failing
        try:
            with self._open_store() as store:
                counters = store.counters()
                profile = store.get(KNOWLEDGE)
                kept = journal(store)
        except InfrastructureError as error:
            log.warning("metrics: %s", error)
            return
        gauge = GaugeMetricFamily("smtspool_now", "How many there are now", labels=["name"])
        counter = CounterMetricFamily("smtspool_events", "How often, or how much", labels=["name"])
        for name, value in sorted(counters.items()):
            family = gauge if name.startswith(GAUGES) else counter
            family.add_metric([name], value)
        yield gauge
        yield counter
        yield GaugeMetricFamily("smtspool_journal_bytes", "Length of the store's journal", value=kept.bytes)
        stuck = 0.0 if kept.stuck_since is None else max(0.0, time.time() - kept.stuck_since)
        yield GaugeMetricFamily(
            "smtspool_journal_stuck_seconds", "How long a reader has kept it", value=stuck
        )
        told = GaugeMetricFamily("smtspool_profile", "Value profiles, as last told", labels=["name"])
        for name, value in sorted(profile.items() if isinstance(profile, dict) else ()):
            if isinstance(value, int):  # also true and false
                told.add_metric([name], value)
        yield told


@contextmanager
def exposed(port: int, open_store: Callable[[], Store], health: Health) -> Iterator[int | None]:
    """Serve ``/metrics`` on ``127.0.0.1:port``, or on the next free port, until the block ends.

    Yields the port; port 0 serves nothing. Raises OSError if none of PORTS ports is free.
    """
    if port == 0:
        yield None
        return
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_StoreCollector(open_store, health))
    server, thread = _listening(port, registry)
    log.info("metrics on http://127.0.0.1:%d/metrics", server.server_port)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _listening(first: int, registry: CollectorRegistry) -> tuple[WSGIServer, threading.Thread]:
    """A server on the first free port. Any number of services may be told the same one."""
    last = min(first + PORTS - 1, LAST_PORT)
    for port in range(first, last + 1):
        try:
            with threads.wanted():
                return start_http_server(port, addr="127.0.0.1", registry=registry)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise OSError(f"metrics on port {port} of localhost: {error.strerror}") from error
    raise OSError(f"metrics: every port of localhost from {first} to {last} is taken; choose another")
