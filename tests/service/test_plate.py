"""What a service says of itself, read beside the database and without it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from smtspool import threads
from smtspool.service import Campaign, Service, Settings
from smtspool.service.desk import Desk
from smtspool.service.loops import Health
from smtspool.service.plate import MESSAGE_CHARACTERS, Plate
from smtspool.solve import (
    Closing,
    Hedge,
    HedgePolicy,
    Portfolio,
    PortfolioView,
    RequestView,
    SolverView,
    Waiting,
)
from smtspool.store import Presence, Store, present
from tests.service.support import ODD_ENGINE, PATIENCE_S, equation, query, submit, until
from tests.solve.gates import Thread
from tests.solve.scripted import ScriptedServer

SLOW = Settings(jobs=1, engines=(ODD_ENGINE,), timeout_ms=1_000_000)


def plates(campaign: Campaign) -> list[dict[str, object]]:
    return [dict(one.plate) for one in present(campaign.store) if one.alive and one.plate]


def waits(plate: dict[str, Any]) -> list[str | None]:
    """What the requests of all queries wait for."""
    return [one["waits_for"] for solving in plate["solving"] for one in solving.get("requests", ())]


@contextmanager
def two_hanging_engines(campaign: Campaign) -> Iterator[tuple[Plate, Portfolio]]:
    """The plate of a service whose only worker waits for the replies of both."""
    desk = Desk()
    plate = Plate(SLOW, desk, Health(), make=lambda: Presence(campaign.store))
    with Store.open(campaign.store) as store:
        store.ingest([query(1)])
        [lease] = store.claim("w", 60.0, 1)
    with (
        ScriptedServer("bitwuzla", "hang") as one,
        ScriptedServer("z3", "hang") as other,
        Portfolio([one, other], policy=HedgePolicy(Hedge.TOGETHER)) as portfolio,  # type: ignore[list-item]
        desk.solving(lease, portfolio),
    ):
        solving = Thread(portfolio.solve, lease.query, timeout_s=PATIENCE_S)
        until(lambda: waits(plate._members("serving")) == ["reply"] * 2, "both are asked")
        plate.presence()
        yield plate, portfolio
        plate.close()
        portfolio.close()
        solving.result()


def test_a_plate_says_which_engines_are_asked(campaign: Campaign) -> None:
    with two_hanging_engines(campaign) as (plate, _):
        plate.step()
        [shown] = plates(campaign)
    [solving] = shown["solving"]  # type: ignore[misc]
    assert [(one["engine"], one["waits_for"]) for one in solving["requests"]] == [
        ("bitwuzla", "reply"), ("z3", "reply"),
    ]  # fmt: skip
    assert all(one["seconds"] >= 0 for one in solving["requests"])


def test_a_plate_is_written_without_what_cannot_be_looked_at(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_LOOK_S", 0.01)
    with two_hanging_engines(campaign) as (plate, portfolio):
        with portfolio._lanes["z3"]._state:
            plate.step()
        [shown] = plates(campaign)
    [solving] = shown["solving"]  # type: ignore[misc]
    assert solving["query"] == query(1).id and "requests" not in solving


def test_a_service_says_who_it_is_and_what_it_solves(campaign: Campaign) -> None:
    submit(campaign, a=equation(1, name="slow", against=2))
    with Service(campaign, SLOW):
        until(lambda: any(waits(plate) == ["reply"] for plate in plates(campaign)), "a query that is solved")
        [plate] = plates(campaign)
    assert plate["pid"] == os.getpid()
    assert (plate["state"], plate["jobs"], plate["engines"]) == ("serving", 1, ["odd"])
    [solving] = plate["solving"]  # type: ignore[misc]
    assert solving["worker"] == "worker-1"
    assert solving["query"] == query(1, name="slow", against=2).id
    [request] = solving["requests"]
    assert (request["engine"], request["checks"], request["waits_for"]) == ("odd", False, "reply")
    assert 0 <= request["seconds"] <= solving["seconds"]
    assert plates(campaign) == [] and present(campaign.store) == []


class Busy:
    """Shows four engines with long names, each with a request."""

    def __init__(self, query_id: str) -> None:
        asked = RequestView("", query_id, 0.0, Waiting.HELPER, None, None, 0, None, None, "")
        solvers = tuple(
            SolverView(f"{number}", "e" * 1000, (asked,), None, None, None, False, False)
            for number in range(4)
        )
        self.seen = PortfolioView(0.0, Closing.OPEN, (), solvers, ())

    def view(self) -> PortfolioView:
        return self.seen


def test_whatever_is_said_fits_on_a_plate(campaign: Campaign) -> None:
    health, desk = Health(), Desk()
    for number in range(256):
        health.failed(f"worker-{number}", OSError("\N{PILE OF POO}\x1b\n" * MESSAGE_CHARACTERS))
    plate = Plate(SLOW, desk, health, make=lambda: Presence(campaign.store))
    with Store.open(campaign.store) as store:
        store.ingest([query(number) for number in range(256)])
        leases = store.claim("w", 60.0, 256)
        desk._solving = {
            f"worker-{number}": (lease.query.id, 0.0, Busy(lease.query.id))  # type: ignore[dict-item]
            for number, lease in enumerate(leases)
        }
    plate.presence()
    plate.step()
    [shown] = plates(campaign)
    assert len(shown["failing"]) > 1  # type: ignore[arg-type]
    assert len(waits(shown)) > 1
    plate.close()
    assert present(campaign.store) == []
