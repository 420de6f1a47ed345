"""What a master does with a result: rights, renewals, ordered shutdown, a common end (F354, F355, F358)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from smtspool.actions import Step, observed_by
from smtspool.cluster import (
    FLEET,
    Capability,
    Code,
    Diagnostic,
    Host,
    LockFiles,
    Master,
    Notice,
    QualificationAttempt,
    QualificationResult,
    RenewalPlan,
    Rights,
    Stage,
    Time,
)
from tests.cluster.bus import Aborted, Bus, BusCommunicator, together
from tests.service.support import until

PLAN = RenewalPlan(interval=60.0, timeout=5.0, jitter=0.0)


class Fleet:
    """The masters of ``hosts``, with a common clock that only the test moves on."""

    def __init__(
        self,
        capability: Capability,
        hosts: Sequence[str],
        *,
        comms: Sequence[BusCommunicator] | None = None,
        each: Sequence[dict[str, Any]] | None = None,
        **common: Any,
    ) -> None:
        self.bus = comms[0].bus if comms else Bus(len(hosts))
        self.ahead = 0.0
        self.said: list[tuple[int, str]] = []
        self.stopped: list[int] = []
        self.masters = [
            self._master(comm, capability, hosts[rank], {**common, **(each[rank] if each else {})})
            for rank, comm in enumerate(comms or self.bus.communicators())
        ]

    def _master(
        self, comm: BusCommunicator, capability: Capability, name: str, given: dict[str, Any]
    ) -> Master:
        """``given`` has arguments of a host and of a master."""
        host: dict[str, Any] = {
            "root": Path(capability.root),
            "probe": lambda: capability,
            "processor_name": lambda: name,
        }
        defaults: dict[str, Any] = {
            "startup": QualificationAttempt(timeout=10.0),
            "plan": PLAN,
            "grace": 0.2,
            "say": lambda text: self.said.append((comm.rank, text)),
            "time": Time(lambda: time.monotonic() + self.ahead),
        }
        on_host = {one.name for one in fields(Host)} & given.keys()
        host |= {one: given[one] for one in on_host}
        return Master(comm, Host(**host), **defaults | {one: given[one] for one in given.keys() - on_host})

    def start(self) -> list[Any]:
        return together([master.start for master in self.masters])

    def renew(self) -> list[Any]:
        """Let the interval pass, and every rank take turns until it has renewed, or failed."""
        self.ahead += 100.0
        return together([lambda master=master: self._renewed(master) for master in self.masters])

    def _renewed(self, master: Master) -> bool:
        assert master.controller is not None
        attempts = master.controller.ledger.attempts
        self.turn_until(master, lambda: master.controller.ledger.attempts > attempts)  # type: ignore[union-attr]
        return master.fatal is None

    def turn_until(self, master: Master, done: Callable[[], bool]) -> None:
        def over() -> bool:
            master.turn()
            return done() or master.fatal is not None

        until(over)

    def shutdown(self) -> list[Any]:
        return together(
            [
                lambda rank=rank, master=master: master.shutdown(lambda: self.stopped.append(rank))
                for rank, master in enumerate(self.masters)
            ]
        )

    def fatal(self) -> list[str]:
        return ["" if master.fatal is None else master.fatal.text for master in self.masters]


def balanced(master: Master) -> bool:
    assert master.controller is not None
    ledger = master.controller.ledger
    return ledger.attempts == ledger.successes + ledger.failures


class Breaks(LockFiles):
    """Locks that hold until they are told not to."""

    broken = False

    def try_lock(self, fd: int, *, shared: bool = False) -> bool:
        return self.broken or super().try_lock(fd, shared=shared)


# -- startup -----------------------------------------------------------------------------------------------


def test_verified_masters_may_all_admit_and_renew(probed: Capability) -> None:
    fleet = Fleet(probed, "ab")
    assert fleet.start() == [Rights.EVERY_MASTER] * 2
    assert all(master.controller is not None for master in fleet.masters)
    assert fleet.fatal() == ["", ""]
    assert fleet.bus.aborted == []


def test_masters_on_one_host_leave_admission_to_one_owner_and_renew_nothing(probed: Capability) -> None:
    fleet = Fleet(probed, "aaa")
    assert fleet.start() == [Rights.ONE_OWNER] * 3
    assert all(master.controller is None for master in fleet.masters)
    fleet.ahead += 1000.0
    for master in fleet.masters:
        master.turn()
    assert fleet.fatal() == ["", "", ""]
    assert fleet.bus.waiting() == 0


def test_a_refused_start_is_said_once_and_aborted_with_65_by_every_master(probed: Capability) -> None:
    files = Breaks()
    files.broken = True
    fleet = Fleet(probed, "ab", files=files)
    assert all(isinstance(ended, Aborted) for ended in fleet.start())
    assert sorted(fleet.bus.aborted) == [(0, 65), (1, 65)]
    assert [rank for rank, _ in fleet.said] == [0]
    assert [master.rights for master in fleet.masters] == [Rights.REFUSED] * 2
    assert all(master.controller is None for master in fleet.masters)


def test_a_probe_that_fails_is_the_reason_everywhere(probed: Capability) -> None:
    def broken() -> Capability:
        raise LookupError("no such thing")

    fleet = Fleet(probed, "ab", each=[{}, {"probe": broken}])
    fleet.start()
    assert sorted(fleet.bus.aborted) == [(0, 65), (1, 65)]
    assert fleet.said == [(0, "rank 1: the shared directory cannot be probed: no such thing")]


def test_a_rank_without_a_rank_aborts_with_65_and_says_why_itself(probed: Capability) -> None:
    class Unforeseen(BusCommunicator):
        def Get_rank(self) -> int:
            raise LookupError("injected communicator adapter failure")

    bus = Bus(2)
    fleet = Fleet(
        probed,
        "ab",
        comms=[BusCommunicator(bus, 0), Unforeseen(bus, 1)],
        startup=QualificationAttempt(timeout=0.2),
    )
    fleet.start()
    assert (1, 65) in bus.aborted
    [said] = [text for rank, text in fleet.said if rank == 1]
    assert said == "cluster lock qualification raised: injected communicator adapter failure"
    result = fleet.masters[1].result
    assert result is not None
    assert (result.rank, result.clean, result.elapsed) == (None, False, 0.0)


def test_a_diagnostic_that_cannot_be_said_does_not_keep_the_fleet_alive(probed: Capability) -> None:
    def deaf(text: str) -> None:
        raise BrokenPipeError("nobody listens")

    files = Breaks()
    fleet = Fleet(probed, "ab", files=files, say=deaf)
    fleet.start()
    files.broken = True
    fleet.renew()
    fleet.shutdown()
    assert sorted(fleet.bus.aborted) == [(0, 70), (1, 70)]
    fleet = Fleet(probed, "ab", files=files, say=deaf)
    fleet.start()
    assert sorted(fleet.bus.aborted) == [(0, 65), (1, 65)]


def test_a_signal_during_startup_passes(probed: Capability) -> None:
    def interrupted() -> Capability:
        raise KeyboardInterrupt

    fleet = Fleet(probed, "a", probe=interrupted)
    assert isinstance(fleet.start()[0], KeyboardInterrupt)
    assert fleet.bus.aborted == []


@pytest.mark.parametrize(
    "plan", [replace(PLAN, interval=61.0), replace(PLAN, timeout=6.0), replace(PLAN, jitter=0.1)]
)
def test_masters_with_different_plans_shut_down(probed: Capability, plan: RenewalPlan) -> None:
    fleet = Fleet(probed, "ab", each=[{}, {"plan": plan}])
    assert fleet.start() == [Rights.EVERY_MASTER] * 2
    # Each sees the other as the one that differs.
    assert [text.replace("rank 1", "rank 0") for text in fleet.fatal()] == [
        "rank 0 renews by another plan"
    ] * 2
    assert all(master.controller is None for master in fleet.masters)
    fleet.shutdown()
    assert sorted(fleet.bus.aborted) == [(0, 70), (1, 70)]


def test_two_hosts_with_one_store_shut_down_and_two_ranks_of_a_host_may_share_theirs(
    probed: Capability,
) -> None:
    fleet = Fleet(probed, "aba", each=[{"keeps": "1"}, {"keeps": "2"}, {"keeps": "1"}])
    fleet.start()
    assert fleet.fatal() == ["", "", ""]
    fleet = Fleet(probed, "aba", each=[{"keeps": "1"}, {"keeps": "2"}, {"keeps": "2"}])
    fleet.start()
    assert fleet.fatal() == ["b and a have the same store; give each host its own disk"] * 3


# -- renewal -----------------------------------------------------------------------------------------------


def test_renewals_go_on_generation_by_generation(probed: Capability) -> None:
    fleet = Fleet(probed, "ab")
    fleet.start()
    for generation in (1, 2, 3):
        assert fleet.renew() == [True, True]
        for master in fleet.masters:
            assert master.controller is not None
            assert master.controller.ledger.generation == master.controller.ledger.successes == generation
            assert master.result is not None
            assert master.result.verified
            assert balanced(master)


def test_nothing_is_renewed_before_its_time(probed: Capability) -> None:
    fleet = Fleet(probed, "ab")
    fleet.start()
    fleet.ahead += 59.0 - 1.0
    for master in fleet.masters:
        master.turn()
    assert fleet.bus.waiting() == 0


def test_a_failed_renewal_is_a_failed_attempt_and_ends_every_master_in_order(probed: Capability) -> None:
    files = Breaks()
    fleet = Fleet(probed, "abc", files=files)
    fleet.start()
    files.broken = True
    assert fleet.renew() == [False] * 3
    for master in fleet.masters:
        assert master.controller is not None
        ledger = master.controller.ledger
        assert (ledger.attempts, ledger.successes, ledger.failures) == (1, 0, 1)
        assert master.fatal is not None
        assert (master.fatal.stage, master.fatal.generation) == (Stage.EXCLUDED, 1)
    order: list[str] = []
    with observed_by(Order(order)):
        fleet.shutdown()
    assert sorted(fleet.stopped) == [0, 1, 2]
    assert sorted(fleet.bus.aborted) == [(0, 70), (1, 70), (2, 70)]
    # Each stopped its service, and all had, before the first aborted.
    assert order[:3] == ["Shutdown"] * 3
    assert order[3:] == ["Abort"] * 3


class Order:
    def __init__(self, names: list[str]) -> None:
        self._names = names

    def before(self, step: Step) -> None: ...

    def after(self, step: Step) -> None:
        if step.name in ("Shutdown", "Abort"):
            self._names.append(step.name)


def test_after_a_failure_a_master_does_nothing_but_shut_down(probed: Capability) -> None:
    files = Breaks()
    fleet = Fleet(probed, "ab", files=files)
    fleet.start()
    files.broken = True
    fleet.renew()
    files.broken = False
    first = fleet.fatal()
    fleet.ahead += 1000.0
    for master in fleet.masters:
        master.turn()
    assert fleet.bus.waiting() == 0
    assert fleet.fatal() == first
    assert [master.controller.ledger.attempts for master in fleet.masters if master.controller] == [1, 1]


def test_a_renewal_that_ends_clean_but_unverified_is_a_failure(probed: Capability) -> None:
    names = ["a", "b"]
    fleet = Fleet(probed, names, each=[{}, {"processor_name": lambda: names[1]}])
    fleet.start()
    names[1] = "a"
    assert fleet.renew() == [False, False]
    for master in fleet.masters:
        assert master.fatal is not None
        assert master.fatal.code is Code.UNVERIFIED
        assert balanced(master)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("heartbeat", "rank 1: work lease heartbeat failed: disk"),
        ("processor_name", "rank 1: the host has no name: disk"),
    ],
)
def test_what_a_rank_cannot_observe_fails_the_generation_everywhere(
    probed: Capability, broken: str, why: str
) -> None:
    begun = [False]

    def provider() -> Any:
        if begun[0]:
            raise LookupError("disk")
        return 0 if broken == "heartbeat" else "b"

    fleet = Fleet(probed, "ab", each=[{}, {broken: provider}])
    fleet.start()
    begun[0] = True
    assert fleet.renew() == [False, False]
    assert fleet.fatal() == [why, why]
    assert all(balanced(master) for master in fleet.masters)


def test_every_renewal_renews_the_leases_once(probed: Capability) -> None:
    beats = [0, 0]

    def beat(rank: int) -> Callable[[], int]:
        def count() -> int:
            beats[rank] += 1
            return 0

        return count

    fleet = Fleet(probed, "ab", each=[{"heartbeat": beat(0)}, {"heartbeat": beat(1)}])
    fleet.start()
    assert beats == [0, 0]
    fleet.renew()
    assert beats == [1, 1]


def test_a_request_that_cannot_be_sent_fails_the_generation_for_those_who_heard_it(
    probed: Capability,
) -> None:
    class Unsendable(BusCommunicator):
        def isend(self, frame: bytes, dest: int, tag: int) -> Any:
            if tag == FLEET and dest == 2 and b'"renew"' in frame:
                raise LookupError("no route")
            return super().isend(frame, dest, tag)

    bus = Bus(3)
    comms = [Unsendable(bus, 0), BusCommunicator(bus, 1), BusCommunicator(bus, 2)]
    plan = replace(PLAN, timeout=0.3)
    fleet = Fleet(probed, "abc", comms=comms, plan=plan)
    fleet.start()
    fleet.ahead += 100.0
    first, second = fleet.masters[:2]
    together([lambda master=master: fleet._renewed(master) for master in (first, second)])
    assert "no record from rank 2" in fleet.fatal()[0]
    assert all(balanced(master) for master in (first, second))
    # The one who did not hear of it learns it from their shutdown.
    together([lambda master=master: master.shutdown(lambda: None) for master in (first, second)])
    fleet.masters[2].turn()
    assert "has failed and shuts down" in fleet.fatal()[2]


def test_an_accounting_error_leaves_the_books_and_ends_the_others_too(probed: Capability) -> None:
    fleet = Fleet(probed, "ab")
    fleet.start()
    books = fleet.masters[1].controller
    assert books is not None

    def broken(*arguments: object, **named: object) -> bool:
        raise LookupError("no books")

    books.complete = broken  # type: ignore[method-assign]
    fleet.ahead += 100.0
    together(
        [
            lambda: fleet._renewed(fleet.masters[0]),
            lambda: fleet.turn_until(fleet.masters[1], lambda: False),
        ]
    )
    assert fleet.fatal() == ["", "cluster lock renewal was not accounted for: no books"]
    assert (books.ledger.attempts, books.ledger.successes, books.ledger.failures) == (0, 0, 0)
    assert books.ledger.in_flight == 1
    fleet.masters[1]._grace = 0.0
    together([lambda: fleet.masters[1].shutdown(lambda: None)])
    steps: list[str] = []

    class Names:
        def before(self, step: Step) -> None:
            steps.append(step.name)

        def after(self, step: Step) -> None: ...

    fleet.ahead += 100.0  # it would be time to renew
    with observed_by(Names()):
        fleet.masters[0].turn()
    assert fleet.fatal()[0] == "rank 1 has failed and shuts down"
    assert steps == []


@pytest.mark.parametrize("call", ["receive", "Test"])
def test_a_communicator_that_fails_between_renewals_is_fatal(probed: Capability, call: str) -> None:
    broken = [False]

    class Failing(BusCommunicator):
        def receive(self, source: int, tag: int, limit: int) -> bytes | None:
            if broken[0]:
                raise LookupError("gone")
            return super().receive(source, tag, limit)

    bus = Bus(2)
    fleet = Fleet(probed, "ab", comms=[BusCommunicator(bus, 0), Failing(bus, 1)])
    fleet.start()
    broken[0] = True
    fleet.masters[1].turn()
    assert fleet.masters[1].fatal is not None
    assert fleet.masters[1].fatal.stage is Stage.REQUEST
    assert fleet.fatal()[1] == "the fleet cannot go on: gone"


@pytest.mark.parametrize(
    "frame", [b"", b"{}", b'{"schema": "smtspool-cluster-notice-v1"}', b"x" * 5000], ids=len
)
def test_a_notice_that_is_none_is_fatal(probed: Capability, frame: bytes) -> None:
    fleet = Fleet(probed, "ab")
    fleet.start()
    fleet.bus.put(0, 1, FLEET, frame)
    fleet.masters[1].turn()
    assert fleet.fatal()[1].startswith("the fleet cannot go on: ")


@pytest.mark.parametrize(("generation", "plan"), [(2, None), (0, None), (1, "0" * 64)])
def test_a_request_for_another_generation_or_by_another_plan_is_fatal(
    probed: Capability, generation: int, plan: str | None
) -> None:
    fleet = Fleet(probed, "ab")
    fleet.start()
    first, second = fleet.masters
    assert first.controller is not None and first._notices is not None
    fingerprint = first.controller.agreed.fingerprint
    first._notices.tell(Notice.RENEW, generation=generation, plan=plan or fingerprint)
    second.turn()
    assert second.fatal is not None
    assert second.controller is not None
    assert second.controller.ledger.attempts == 0


def test_a_notice_of_another_epoch_is_dropped(probed: Capability) -> None:
    fleet = Fleet(probed, "ab")
    fleet.start()
    first, second = fleet.masters
    assert first._notices is not None and second._notices is not None
    first._notices._epoch = "0" * 64
    first._notices.tell(Notice.STOP)
    second.turn()
    assert second.fatal is None
    assert second._notices.dropped == 1


# -- the end -----------------------------------------------------------------------------------------------


def test_shutting_down_waits_for_the_others_but_not_for_ever(probed: Capability) -> None:
    files = Breaks()
    fleet = Fleet(probed, "ab", files=files, grace=0.2)
    fleet.start()
    files.broken = True
    fleet.renew()
    began = time.monotonic()
    together([lambda: fleet.masters[0].shutdown(lambda: None)])  # the other never does
    assert 0.2 <= time.monotonic() - began < 10.0
    assert fleet.bus.aborted == [(0, 70)]


def test_one_who_cannot_be_told_keeps_it_from_nobody(probed: Capability) -> None:
    class Unreachable(BusCommunicator):
        def isend(self, frame: bytes, dest: int, tag: int) -> Any:
            if tag == FLEET and dest == 1:
                raise LookupError("no route")
            return super().isend(frame, dest, tag)

    bus = Bus(3)
    comms = [Unreachable(bus, 0), BusCommunicator(bus, 1), BusCommunicator(bus, 2)]
    fleet = Fleet(probed, "abc", comms=comms, grace=0.0)
    fleet.start()
    first = fleet.masters[0]
    first.fail(Diagnostic(Stage.SERVICE, Code.RAISED, 0, 0, "the service failed"))
    together([lambda: first.shutdown(lambda: None)])
    for master in fleet.masters[1:]:
        master.turn()
    assert fleet.fatal() == ["the service failed", "", "rank 0 has failed and shuts down"]


def test_a_service_that_does_not_stop_in_order_does_not_keep_the_fleet_alive(probed: Capability) -> None:
    files = Breaks()
    fleet = Fleet(probed, "ab", files=files)
    fleet.start()
    files.broken = True
    fleet.renew()
    first = fleet.fatal()[0]

    def broken() -> None:
        raise LookupError("stuck")

    together([lambda master=master: master.shutdown(broken) for master in fleet.masters])
    assert sorted(fleet.bus.aborted) == [(0, 70), (1, 70)]
    assert fleet.fatal()[0] == first  # the first failure is kept
    assert (0, first) in fleet.said


def test_the_fleet_ends_together_and_renews_until_then(probed: Capability) -> None:
    fleet = Fleet(probed, "abc")
    fleet.start()
    fleet.masters[2].done()
    assert not fleet.masters[2].ended
    assert fleet.renew() == [True] * 3
    for master in fleet.masters[:2]:
        master.done()
    together([lambda m=m: fleet.turn_until(m, lambda: m.ended) for m in fleet.masters])
    assert all(master.ended for master in fleet.masters)
    fleet.ahead += 1000.0
    for master in fleet.masters:
        master.turn()
    assert fleet.bus.waiting() == 0
    assert fleet.bus.aborted == []


def test_one_rank_that_drains_takes_the_others_along(probed: Capability) -> None:
    fleet = Fleet(probed, "aab")
    fleet.start()
    fleet.masters[1].drain()
    fleet.masters[1].drain()
    for master in fleet.masters:
        master.turn()
    assert all(master.draining for master in fleet.masters)
    assert fleet.bus.waiting() == 0  # said once


def test_a_fleet_of_one_ends_by_itself(probed: Capability) -> None:
    fleet = Fleet(probed, "a")
    assert fleet.start() == [Rights.ONE_OWNER]
    [master] = fleet.masters
    master.turn()
    assert not master.ended
    master.done()
    assert master.ended


def test_a_result_is_kept_for_those_who_report_it(probed: Capability) -> None:
    fleet = Fleet(probed, "ab")
    fleet.start()
    for master in fleet.masters:
        assert type(master.result) is QualificationResult
        assert master.result.to_json()["verified"] is True
