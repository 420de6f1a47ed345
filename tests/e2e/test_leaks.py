"""A service leaves the process as it found it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from smtspool.errors import ConfigError, InfrastructureError
from smtspool.service import Campaign, Service, Settings
from tests.e2e.campaign import GONE_WITHIN_S
from tests.service.support import ODD_ENGINE, answers, equation, submit, until

SETTINGS = Settings(jobs=2, engines=("bitwuzla", "z3"), drain_seconds=0.2)


def held() -> tuple[set[str], set[int], set[str]]:
    """Descriptors, children and threads of this process."""
    descriptors = {f"{fd}:{target}" for fd in os.listdir("/proc/self/fd") if (target := _target(fd))}
    children = {int(pid) for pid in Path("/proc/thread-self/children").read_text().split()}
    return descriptors, children, {thread.name for thread in threading.enumerate()}


def _target(fd: str) -> str:
    try:
        return str(Path(f"/proc/self/fd/{fd}").readlink())
    except FileNotFoundError:
        return ""  # the descriptor that listed the folder


def once(campaign: Campaign) -> None:
    with Service(campaign, SETTINGS, once=True) as service:
        while not service.join(0.1):
            pass


def drained(campaign: Campaign) -> None:
    with Service(campaign, SETTINGS) as service:
        until(lambda: len(answers(campaign)) == 3)
        service.drain()
        until(lambda: service.join(0.1))


def stopped(campaign: Campaign) -> None:
    submit(campaign, slow=equation(1, name="slow", against=2))
    with Service(campaign, Settings(jobs=1, engines=(ODD_ENGINE,))) as service:
        until(service.desk.held)


def refused(campaign: Campaign) -> None:
    for engines, error in ((("z3", "z4"), ConfigError), (("absent=/no/such",), InfrastructureError)):
        with pytest.raises(error):
            Service(campaign, Settings(engines=engines)).__enter__()


def failed(campaign: Campaign) -> None:
    with pytest.raises(ZeroDivisionError), Service(campaign, SETTINGS):
        raise ZeroDivisionError


@pytest.mark.parametrize("life", [once, drained, stopped, refused, failed])
def test_nothing_is_left(tmp_path: Path, life: Callable[[Campaign], None]) -> None:
    campaign = Campaign.create(tmp_path)
    submit(campaign, a=equation(1), b=equation(2), c=equation(3, against=4))
    before = held()
    life(campaign)
    # The watch on incoming/ closes its descriptors from a thread of its own.
    until(lambda: held() == before, f"the end of all but {before}", GONE_WITHIN_S)
    assert list((campaign.store / "owners").iterdir()) == []
