"""SIGINT, SIGTERM and SIGHUP while a service runs: the first one drains, a second SIGINT or SIGTERM stops."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from .service import Service
from .supervisor import Supervisor

__all__ = ["LOOK_SECONDS", "collected_signals", "leave_if_unwinding", "obey", "run_until_signalled"]

log = logging.getLogger("smtspool")

# How often the main thread checks for signals; it does nothing else.
LOOK_SECONDS = 0.1


@contextmanager
def collected_signals() -> Iterator[list[int]]:
    """Collect the signals that end a service in a list. The handler may interrupt any code: it takes no lock.

    SIGHUP never counts as a second signal, since a terminal that closes may send it twice, by its shell and
    by the kernel. A process that was started with SIGHUP ignored, as by ``nohup``, keeps ignoring it.
    """
    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        if number != signal.SIGHUP or not received:
            received.append(number)

    ending = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        ending.append(signal.SIGHUP)
    before = {number: signal.signal(number, receive) for number in ending}
    try:
        yield received
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def run_until_signalled(service: Service, received: list[int]) -> None:
    """Wait for the end of the service: by itself with ``once``, or after a signal."""
    supervisor = Supervisor(service)
    while not service.join(LOOK_SECONDS):
        obey(service, received)
        supervisor.tell()


def obey(service: Service, received: list[int]) -> None:
    """Drain at the first signal and stop at the second; repeated calls are harmless."""
    if len(received) > 1:
        service.stop()
    elif received and not service.desk.draining.is_set():
        log.info("draining; send the signal again to stop at once")
        service.drain()


def leave_if_unwinding(error: BaseException) -> None:
    """Exit as the signal demands, if ``error`` was raised while the process unwound because of a signal."""
    cause = error.__context__
    while cause is not None:
        if isinstance(cause, SystemExit):
            raise SystemExit(cause.code)
        cause = cause.__context__
