"""Reports to the service manager, if there is one, by the protocol of ``sd_notify(3)``.

systemd names a datagram socket in ``NOTIFY_SOCKET`` and reads lines from it: ``READY=1`` once queries are
admitted and solved, ``STATUS=`` with what fails, ``STOPPING=1`` when the drain begins, and ``WATCHDOG=1``
twice in every ``WATCHDOG_USEC``. The last means that the process runs and its main thread is not stuck. A
full disk or a broken engine does not stop it, since a restart would repair neither; these are in the status.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Mapping

from .logs import plain
from .service import Service

__all__ = ["Supervisor"]

log = logging.getLogger("smtspool")


class Supervisor:
    """Reports the state of ``service`` to the manager; does nothing without one. For one thread."""

    def __init__(
        self,
        service: Service,
        *,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._service = service
        self._clock = clock
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._beat_s = _beat_seconds(environment)
        self._beaten = -float("inf")
        self._said: list[str] = []

    def tell(self) -> None:
        """Report changes since the last call, and a sign of life when one is due. Never waits."""
        if not self._address:
            return
        said = self._state()
        lines = [line for line in said if line not in self._said]
        now = self._clock()
        if self._beat_s is not None and now - self._beaten >= self._beat_s:
            lines.append("WATCHDOG=1")
        if lines and self._send(lines):
            self._said = said
            self._beaten = now if "WATCHDOG=1" in lines else self._beaten

    def _state(self) -> list[str]:
        if self._service.desk.draining.is_set():
            return ["STOPPING=1", "STATUS=draining"]
        ailing = self._service.health.ailing()
        failures = [f"{loop} fails: {plain(ailment.message)}" for loop, ailment in ailing.items()]
        status = "; ".join(failures) or ("serving" if self._service.serving else "starting")
        return [*(["READY=1"] if self._service.serving else []), f"STATUS={status}"]

    def _send(self, lines: list[str]) -> bool:
        """Send lines; False if the manager does not take them now, so that they are sent again."""
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as channel:
                channel.sendto("\n".join(lines).encode(errors="replace"), address)
        except BlockingIOError:
            return False
        except OSError as error:
            log.warning(
                "the service manager at %s cannot be told, and nothing more is sent to it: %s",
                self._address,
                error,
            )
            self._address = ""
        return True


def _beat_seconds(environment: Mapping[str, str]) -> float | None:
    """Half of the time after which the manager takes this process for hung; None if it does not watch it."""
    period = environment.get("WATCHDOG_USEC", "")
    watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(period) / 2e6 if watched and period.isascii() and period.isdecimal() else None
