"""What a service manager hears, over a real socket as systemd's."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from smtspool.service import Campaign, Service, Settings
from smtspool.service.supervisor import Supervisor
from tests.e2e.campaign import Place, placed
from tests.service.support import until

SETTINGS = Settings(jobs=1, engines=("bitwuzla", "z3"))


class Manager:
    """The receiving end; ``name`` is what NOTIFY_SOCKET says."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind("\0" + name[1:] if name.startswith("@") else name)
        self.heard: list[str] = []

    def listen(self) -> list[str]:
        while True:
            try:
                self.heard += self._socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self.heard

    def hears(self, line: str) -> bool:
        return line in self.listen()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with placed(tmp_path) as made:
        yield made


@pytest.fixture(params=["a path", "an abstract name"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    name = str(tmp_path / "notify") if request.param == "a path" else f"@smtspool-{uuid4().hex}"
    with closing(Manager(name)) as listening:
        yield listening


def test_a_served_campaign_is_ready_lives_and_stops(place: Place, manager: Manager) -> None:
    place.create()
    child = place.start("serve", place.root, NOTIFY_SOCKET=manager.name, WATCHDOG_USEC="200000")
    until(lambda: manager.hears("READY=1"), "readiness")
    until(lambda: manager.listen().count("WATCHDOG=1") > 2, "signs of life")
    assert "STATUS=serving" in manager.heard
    child.send_signal(signal.SIGTERM)
    until(lambda: manager.hears("STOPPING=1"), "the drain")
    child.communicate()
    assert child.returncode == 128 + signal.SIGTERM
    assert manager.listen().count("READY=1") == 1


def test_trouble_is_the_status_until_it_is_over(tmp_path: Path) -> None:
    with closing(Manager(str(tmp_path / "notify"))) as manager:
        service = Service(Campaign.create(tmp_path / "campaign"), SETTINGS)
        supervisor = Supervisor(service, environment={"NOTIFY_SOCKET": manager.name})
        supervisor.tell()
        service.health.failed("admission", OSError("no space\nleft"))
        supervisor.tell()
        supervisor.tell()
        service.health.recovered("admission")
        supervisor.tell()
        assert manager.listen() == [
            "STATUS=starting",
            "STATUS=admission fails: no space\\nleft",
            "STATUS=starting",
        ]


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"WATCHDOG_USEC": "1000000"},
        {"NOTIFY_SOCKET": "/no/such/socket", "WATCHDOG_USEC": "1"},
        {"NOTIFY_SOCKET": "x" * 200},
    ],
)
def test_a_manager_that_is_not_there_does_no_harm(tmp_path: Path, environment: dict[str, str]) -> None:
    service = Service(Campaign.create(tmp_path / "campaign"), SETTINGS)
    supervisor = Supervisor(service, environment=environment)
    supervisor.tell()
    supervisor.tell()


def test_a_watchdog_of_another_process_is_not_fed(tmp_path: Path) -> None:
    with closing(Manager(str(tmp_path / "notify"))) as manager:
        service = Service(Campaign.create(tmp_path / "campaign"), SETTINGS)
        watched = {"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "1", "WATCHDOG_PID": str(os.getppid())}
        Supervisor(service, environment=watched).tell()
        assert manager.listen() == ["STATUS=starting"]
