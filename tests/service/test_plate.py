"""What a service says of itself, read beside the database and without it."""

from __future__ import annotations

import os

from smtspool.service import Campaign, Service, Settings
from smtspool.service.desk import Desk
from smtspool.service.loops import Health
from smtspool.service.plate import MESSAGE_CHARACTERS, Plate
from smtspool.store import Presence, Store, present
from tests.service.support import ODD_ENGINE, equation, query, submit, until

SLOW = Settings(jobs=1, engines=(ODD_ENGINE,), timeout_ms=1_000_000)


def plates(campaign: Campaign) -> list[dict[str, object]]:
    return [dict(one.plate) for one in present(campaign.store) if one.alive and one.plate]


def test_a_service_says_who_it_is_and_what_it_solves(campaign: Campaign) -> None:
    submit(campaign, a=equation(1, name="slow", against=2))
    with Service(campaign, SLOW):
        until(lambda: any(plate["solving"] for plate in plates(campaign)), "a query that is solved")
        [plate] = plates(campaign)
    assert plate["pid"] == os.getpid()
    assert (plate["state"], plate["jobs"], plate["engines"]) == ("serving", 1, ["odd"])
    [solving] = plate["solving"]  # type: ignore[misc]
    assert solving["worker"] == "worker-1"
    assert solving["query"] == query(1, name="slow", against=2).id
    assert plates(campaign) == [] and present(campaign.store) == []


def test_whatever_is_said_fits_on_a_plate(campaign: Campaign) -> None:
    health, desk = Health(), Desk()
    for number in range(256):
        health.failed(f"worker-{number}", OSError("\N{PILE OF POO}\x1b\n" * MESSAGE_CHARACTERS))
    plate = Plate(SLOW, desk, health, make=lambda: Presence(campaign.store))
    with Store.open(campaign.store) as store:
        store.ingest([query(number) for number in range(256)])
        leases = store.claim("w", 60.0, 256)
        desk._solving = {f"worker-{number}": (lease.query.id, 0.0) for number, lease in enumerate(leases)}
    plate.presence()
    plate.step()
    assert len(plates(campaign)[0]["failing"]) > 1  # type: ignore[arg-type]
    plate.close()
    assert present(campaign.store) == []
