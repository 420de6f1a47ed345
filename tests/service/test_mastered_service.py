"""Services with masters, as threads on a bus: rights, stores of their own, failures, the common end."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from smtspool.cluster import Communicator, LockFiles
from smtspool.errors import MisuseError
from smtspool.service import Campaign, MasteredService, Service, Settings
from smtspool.store import INDEX_NAME, Store
from tests.cluster.bus import Aborted, Bus, together
from tests.service.support import PATIENCE_S, answers, equation, query, submit, until

SETTINGS = Settings(jobs=1, engines=("bitwuzla", "z3"), poll_seconds=0.05, renew_seconds=0.3)
IDS = {query(number).id for number in range(6)}


def shared(campaign: Campaign, tmp_path: Path, hosts: str) -> list[Campaign]:
    """The campaign as each host sees it: with a store on its own disk."""
    return [Campaign(campaign.root, tmp_path / f"disk-{host}") for host in hosts]


def fleet(
    campaigns: list[Campaign],
    hosts: str,
    received: list[list[int]] | None = None,
    *,
    once: bool = True,
    settings: Settings = SETTINGS,
) -> tuple[Bus, list[MasteredService], list[BaseException | None]]:
    """Run one service per host to the end of the fleet."""
    bus = Bus(len(hosts))
    services = [
        MasteredService(comm, campaign, settings, lambda host=host: host, once)  # type: ignore[misc]
        for comm, campaign, host in zip(bus.communicators(), campaigns, hosts, strict=True)
    ]
    signals = received or [[] for _ in hosts]
    ended = together([lambda s=s, r=r: s.run(r) for s, r in zip(services, signals, strict=True)])
    return bus, services, ended


def solved(campaign: Campaign) -> set[str]:
    return set(answers(campaign))


def test_masters_on_two_hosts_answer_each_query_once_and_publish_together(
    campaign: Campaign, tmp_path: Path
) -> None:
    submit(campaign, **{f"q{number}": equation(number) for number in range(6)})
    campaigns = shared(campaign, tmp_path, "ab")
    bus, _, ended = fleet(campaigns, "ab")
    assert ended == [None, None]
    first, second = map(solved, campaigns)
    assert (first | second, first & second) == (IDS, set())
    assert {path.stem for path in (campaign.out / "results").iterdir()} == IDS
    assert bus.aborted == []
    assert Store.fsck(campaigns[0].store) == Store.fsck(campaigns[1].store) == []


def test_on_one_host_only_rank_0_admits(campaign: Campaign, tmp_path: Path) -> None:
    submit(campaign, **{f"q{number}": equation(number) for number in range(6)})
    campaigns = shared(campaign, tmp_path, "ab")  # two stores, to see who admits
    _, _, ended = fleet(campaigns, "aa")
    assert ended == [None, None]
    assert [solved(one) for one in campaigns] == [IDS, set()]


def test_a_service_that_does_not_admit_solves_what_another_stores(campaign: Campaign) -> None:
    submit(campaign, a=equation(1), b=equation(2))
    owner = Settings(jobs=1, engines=("bitwuzla", "z3"), poll_seconds=0.05)
    with Service(campaign, owner, once=True, admits=False) as follower:
        assert follower.join(0.2) is False  # the spool is not empty
        assert answers(campaign) == {}
        with Service(campaign, owner, once=True) as service:
            until(lambda: service.join(0.1), "the end of the owner")
        assert follower.join(PATIENCE_S)
    assert len(answers(campaign)) == 2


def test_the_stores_of_two_hosts_are_told_apart(campaign: Campaign, tmp_path: Path) -> None:
    submit(campaign, a=equation(1))
    same = [Campaign(campaign.root, tmp_path / "disk")] * 2
    bus, services, ended = fleet(same, "ab")
    assert all(isinstance(one, Aborted) for one in ended)
    assert sorted(bus.aborted) == [(0, 70), (1, 70)]
    assert [service.service for service in services] == [None, None]
    assert not (tmp_path / "disk" / INDEX_NAME).exists()  # no database was opened on a disk of both
    assert len(list((campaign.spool / "incoming").glob("*.smt2"))) == 1


def test_a_signal_to_one_drains_all(campaign: Campaign, tmp_path: Path) -> None:
    campaigns = shared(campaign, tmp_path, "ab")
    received: list[list[int]] = [[], []]
    timer = threading.Timer(0.5, received[1].append, [15])
    timer.start()
    bus, _, ended = fleet(campaigns, "ab", received, once=False)
    timer.join()
    assert ended == [None, None]
    assert bus.aborted == []


def test_a_defect_of_one_service_ends_all_in_order(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    campaigns = shared(campaign, tmp_path, "ab")
    join = Service.join

    def defective(self: Service, timeout_s: float | None = None) -> bool:
        if self.campaign.store.name == "disk-b":
            raise LookupError("a defect")
        return join(self, timeout_s)

    monkeypatch.setattr(Service, "join", defective)
    # A renewal that rank 0 begins before it hears of the failure would end with "no record from rank 1".
    bus, _, ended = fleet(campaigns, "ab", once=False, settings=replace(SETTINGS, renew_seconds=60))
    assert all(isinstance(one, Aborted) for one in ended)
    assert sorted(bus.aborted) == [(0, 70), (1, 70)]
    assert "the service failed: a defect" in caplog.text
    assert "rank 1 has failed and shuts down" in caplog.text
    for one in campaigns:
        assert os.listdir(one.store / "owners") == []


def test_a_renewal_that_fails_stops_the_services_before_the_abort(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    renewed = threading.Event()
    lock = LockFiles.try_lock

    def breaks(self: LockFiles, fd: int, *, shared: bool = False) -> bool:
        return renewed.is_set() or lock(self, fd, shared=shared)

    class Seen(Bus):
        def put(self, source: int, dest: int, tag: int, frame: bytes) -> None:
            if b'"renew"' in frame:
                renewed.set()
            super().put(source, dest, tag, frame)

    monkeypatch.setattr(LockFiles, "try_lock", breaks)
    monkeypatch.setattr("tests.service.test_mastered_service.Bus", Seen)
    campaigns = shared(campaign, tmp_path, "ab")
    bus, services, ended = fleet(campaigns, "ab", once=False)
    assert all(isinstance(one, Aborted) for one in ended)
    assert sorted(bus.aborted) == [(0, 70), (1, 70)]
    assert "was given to this one too" in caplog.text
    for service in services:
        assert service.service is not None
        assert service.service.join(0.0)  # every loop had ended
    for one in campaigns:
        assert os.listdir(one.store / "owners") == []


def test_leases_are_renewed_ahead_of_a_renewal(campaign: Campaign, tmp_path: Path) -> None:
    with Service(campaign, SETTINGS) as service:
        assert service.renew_leases() == 0


def test_where_abort_returns_nothing_is_served(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def returns(self: Communicator, code: int) -> None:
        self.bus.aborted.append((self.rank, code))  # type: ignore[attr-defined]

    monkeypatch.setattr("tests.cluster.bus.BusCommunicator.Abort", returns)
    monkeypatch.setattr(LockFiles, "try_lock", lambda self, fd, *, shared=False: True)
    bus, services, ended = fleet(shared(campaign, tmp_path, "ab"), "ab")
    assert ended == [None, None]
    assert sorted(bus.aborted) == [(0, 65), (1, 65)]
    assert [service.service for service in services] == [None, None]


# -- where the store is --------------------------------------------------------------------------------------


def test_the_setting_store_moves_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Campaign.create(tmp_path / "campaign")
    assert campaign.store == campaign.root / "store"
    (campaign.root / "smtspool.toml").write_text(f'store = "{tmp_path}/disk"\n')
    moved = Campaign.open(campaign.root)
    assert moved.store == tmp_path / "disk"
    assert not moved.store.exists()
    moved.create_store()
    assert Store.fsck(moved.store) == []
    monkeypatch.setenv("SMTSPOOL_STORE", "other")
    assert Campaign.open(campaign.root).store == campaign.root / "other"


def test_a_campaign_whose_store_is_elsewhere_needs_no_store_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMTSPOOL_STORE", str(tmp_path / "disk"))
    campaign = Campaign.create(tmp_path / "campaign")
    assert not (campaign.root / "store").exists()
    assert Campaign.open(campaign.root) == campaign
    monkeypatch.delenv("SMTSPOOL_STORE")
    with pytest.raises(MisuseError, match="not a campaign folder"):
        Campaign.open(campaign.root)
