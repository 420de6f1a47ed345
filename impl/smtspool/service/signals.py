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

# How often the main thread looks for signals; it does nothing else.
LOOK_SECONDS = 0.1


@contextmanager
def collected_signals() -> Iterator[list[int]]:
    """Collect the signals that end a service in a list. The handler takes no lock: it may interrupt anything.

    A terminal that closes may send SIGHUP twice, by its shell and by the kernel: it is never a second signal.
    A process that was started with SIGHUP ignored, as by ``nohup``, keeps ignoring it.
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
    """Wait for the end of a ``once`` service, or for a signal and the end of what it asked for."""
    supervisor = Supervisor(service)
    while not service.join(LOOK_SECONDS):
        obey(service, received)
        supervisor.tell()


def obey(service: Service, received: list[int]) -> None:
    """Do what the signals ask: drain at the first, stop at the second; more often is harmless."""
    if len(received) > 1:
        service.stop()
    elif received and not service.desk.draining.is_set():
        log.info("draining; send the signal again to stop at once")
        service.drain()


def leave_if_unwinding(error: BaseException) -> None:
    """Exit as a signal asked, if ``error`` came up while the unwinding for it was under way."""
    cause = error.__context__
    while cause is not None:
        if isinstance(cause, SystemExit):
            raise SystemExit(cause.code)
        cause = cause.__context__
