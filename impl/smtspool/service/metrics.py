"""The port at which Prometheus finds a service: ``/metrics`` on this host."""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

from smtspool import threads

from .exporter import Exporter

__all__ = ["exposed"]

log = logging.getLogger("smtspool")

# How many ports are tried, beginning with the configured one.
PORTS = 100
LAST_PORT = 65_535


@contextmanager
def exposed(port: int, exporter: Exporter) -> Iterator[int | None]:
    """Serve ``/metrics`` on ``127.0.0.1:port``, or on the next free port, until the block ends.

    Yields the port; port 0 serves nothing. Raises OSError if none of PORTS ports is free.
    """
    if port == 0:
        yield None
        return
    registry = CollectorRegistry(auto_describe=False)
    registry.register(exporter)
    ProcessCollector(registry=registry)
    server, thread = _listening(port, registry)
    with closing(exporter):
        log.info("metrics on http://127.0.0.1:%d/metrics", server.server_port)
        try:
            yield server.server_port
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _listening(first: int, registry: CollectorRegistry) -> tuple[WSGIServer, threading.Thread]:
    """A server on the first free port. Any number of services may be configured with the same one."""
    last = min(first + PORTS - 1, LAST_PORT)
    for port in range(first, last + 1):
        try:
            with threads.wanted():
                return start_http_server(port, addr="127.0.0.1", registry=registry)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise OSError(f"metrics on port {port} of localhost: {error.strerror}") from error
    raise OSError(f"metrics: every port of localhost from {first} to {last} is taken; choose another")
