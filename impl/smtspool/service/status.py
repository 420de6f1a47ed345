"""The state of a campaign: a snapshot of counters, times and the plates of its services, and what is wrong.

Taking one costs the same however large the store is. Any process may take one at any time, also of another
user, on a full disk, or when no service runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from smtspool.errors import InfrastructureError
from smtspool.spool import Spool
from smtspool.store import Counts, Pace, Store

from .campaign import Campaign
from .figures import amount, duration, size
from .journal import Journal, journal
from .plate import services
from .profiling import KNOWLEDGE

__all__ = ["Snapshot", "Trouble", "look", "snapshot"]

STATUS_SCHEMA = "smtspool-status-v1"
NO_COUNTS = Counts(*[0] * 10)
# A service writes its plate every second.
SILENT_SECONDS = 15.0
# With less space than this, a checkpoint of the journal may fail.
LITTLE_SPACE = 64 << 20
NO_SPACE = 1 << 20
LAST_ERROR_SECONDS = 3600.0
COUNTED = {
    "files rejected": "admission.rejected",
    "helpers that died": "deaths",
    "queries parked": "parked",
    "stale answers refused": "stale",
    "services found dead": "owners.reaped",
    "disagreements": "disagreements",
    "damaged rows": "damaged",
    "results given up": "publications.dead",
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong; ``severe`` if it stops work. ``since`` is in seconds since the epoch."""

    what: str
    severe: bool = False
    since: float | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A campaign at one moment; ``taken`` is seconds since the epoch, and so are other times."""

    campaign: str
    taken: float
    backlog: int
    counts: Counts
    counters: dict[str, int | float]
    profile: dict[str, Any] | None = None  # of the coordinator that leads, or led last
    pace: Pace = field(default_factory=Pace)
    services: tuple[Mapping[str, Any], ...] = ()  # plates, with token and alive: true, false, null (unknown)
    disk_free: Mapping[str, int] = field(default_factory=dict)  # bytes, below store, spool and out
    journal: Journal | None = None  # of the store
    unreadable: str | None = None  # why the store cannot be read; then counts and pace are zero

    def to_json(self) -> dict[str, object]:
        eta = self.eta_seconds
        return {
            "schema": STATUS_SCHEMA,
            **asdict(self),
            "eta_seconds": eta,
            "trouble": [asdict(trouble) for trouble in self.trouble()],
        }

    def counter(self, name: str) -> float:
        return self.counters.get(name, 0)

    @property
    def living(self) -> list[Mapping[str, Any]]:
        """The running services that have a report."""
        return [one for one in self.services if one["alive"]]

    @property
    def eta_seconds(self) -> float | None:
        """Seconds until all stored queries are answered, at the pace of the last 15 minutes.

        None if nothing was answered, and while severe trouble stops work.
        """
        _, rate = self.pace.answered.per_second(self.taken)
        stands = any(trouble.severe for trouble in self.trouble())
        return self.counts.open / rate if rate and self.living and not stands else None

    @property
    def run_time(self) -> float | None:
        """Seconds since the oldest running service began."""
        started = [one["started"] for one in self.living if "started" in one]
        return self.taken - min(started) if started else None

    def trouble(self) -> list[Trouble]:
        """What is wrong, the worst first."""
        found = [*self._standstill(), *self._disks(), *self._failing(), *self._silent()]
        if self.journal is not None and self.journal.stuck_since is not None:
            kept = duration(self.taken - self.journal.stuck_since)
            what = f"a reader has kept the store's journal for {kept}: {size(self.journal.bytes)} and growing"
            found.append(Trouble(what, since=self.journal.stuck_since))
        counted = [
            f"{text} {amount(self.counter(name))}" for text, name in COUNTED.items() if self.counter(name)
        ]
        found += [Trouble(text) for text in counted]
        lost = sum(one.get("log_lines_lost", 0) for one in self.living)
        if lost:
            found.append(Trouble(f"log lines lost {amount(lost)}: nobody reads stderr in time"))
        return sorted(found, key=lambda trouble: not trouble.severe)

    def _standstill(self) -> list[Trouble]:
        found = []
        if self.unreadable:
            found.append(Trouble(f"the store cannot be read: {self.unreadable}", severe=True))
        if not any(one["alive"] is not False for one in self.services):
            waiting = [
                f"{amount(count)} {one if count == 1 else several}"
                for count, one, several in (
                    (self.counts.open, "query", "queries"),
                    (self.backlog, "file", "files"),
                    (self.counts.publications_due, "result", "results"),
                )
                if count
            ]
            what = "no service is running"
            if waiting:
                what += f", and there is work for one: {', '.join(waiting)}; start it with smtspool serve"
            found.append(Trouble(what, severe=bool(waiting)))
        unknown = sum(one["alive"] is None for one in self.services)
        if unknown:
            found.append(
                Trouble(f"lock files that cannot be opened: {unknown}; services of other users may live")
            )
        return found

    def _disks(self) -> list[Trouble]:
        full = [name for name, free in self.disk_free.items() if free < NO_SPACE]
        little = [name for name, free in self.disk_free.items() if NO_SPACE <= free < LITTLE_SPACE]
        found = []
        if full:
            found.append(Trouble(f"the disk is full below {', '.join(full)}", severe=True))
        if little:
            free = size(min(self.disk_free[name] for name in little))
            found.append(Trouble(f"the disk is nearly full below {', '.join(little)}: {free} left"))
        return found

    def _failing(self) -> list[Trouble]:
        """Loops of a service that fail with the same message are one trouble."""
        grouped: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
        for one in self.living:
            for ailment in one.get("failing", ()):
                grouped.setdefault((one["pid"], ailment["message"]), []).append(ailment)
        found = []
        for (pid, message), ailments in grouped.items():
            names = ", ".join(ailment["loop"] for ailment in ailments)
            since = min(ailment["since"] for ailment in ailments)
            times = sum(ailment["failures"] for ailment in ailments)
            span = duration(self.taken - since)
            what = f"pid {pid}: {names} failing for {span} ({amount(times)} times): {message}"
            found.append(Trouble(what, severe=True, since=since))
        return found

    def _silent(self) -> list[Trouble]:
        found = []
        for one in self.services:
            if "written" not in one:
                continue
            silent = self.taken - one["written"]
            name = f"pid {one['pid']} on {one['host']}"
            if one["alive"] and silent > SILENT_SECONDS:
                what = f"{name} has given no sign for {duration(silent)}: stopped, or waiting for a disk"
                found.append(Trouble(what, severe=True, since=one["written"]))
            elif one["alive"] is False and one["state"] != "ended":
                found.append(
                    Trouble(f"{name} died; its last sign was {duration(silent)} ago", since=one["written"])
                )
            last = one.get("last_error")
            if one["alive"] and last and not one["failing"] and self.taken - last["at"] < LAST_ERROR_SECONDS:
                ago = duration(self.taken - last["at"])
                what = f"{last['loop']} failed {ago} ago and works again: {last['message']}"
                found.append(Trouble(what, since=last["at"]))
        return found


def look(campaign: Campaign) -> Snapshot:
    """Take a snapshot; if the store cannot be read, the snapshot says why."""
    try:
        with Store.view(campaign.store) as store:
            return snapshot(campaign, store)
    except InfrastructureError as error:
        return _around(campaign, unreadable=str(error))


def snapshot(campaign: Campaign, store: Store) -> Snapshot:
    """Take a snapshot through an open store."""
    counters = store.counters()
    told = store.get(KNOWLEDGE)
    return _around(
        campaign,
        counts=Counts.of(counters),
        counters=counters,
        profile=told if isinstance(told, dict) else None,
        pace=store.pace(),
        journal=journal(store),
    )


def _around(
    campaign: Campaign,
    *,
    counts: Counts = NO_COUNTS,
    counters: Mapping[str, int | float] | None = None,
    **more: Any,
) -> Snapshot:
    """A snapshot with everything that is not in the database."""
    try:
        with Spool.open(campaign.spool) as spool:
            backlog = spool.backlog()
    except InfrastructureError as error:
        backlog = 0
        more["unreadable"] = more.get("unreadable") or str(error)
    return Snapshot(
        str(campaign.root),
        time.time(),
        backlog,
        counts,
        dict(counters or {}),
        services=tuple(services(campaign)),
        disk_free=_disk_free(campaign),
        **more,
    )


def _disk_free(campaign: Campaign) -> dict[str, int]:
    """Free bytes for users other than root; of folders on one file system only the first is listed."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    for name, path in (("store", campaign.store), ("spool", campaign.spool), ("out", campaign.out)):
        try:
            device, disk = path.stat().st_dev, os.statvfs(path)
        except OSError:
            continue  # the loop that writes there reports what is wrong
        if device not in seen:
            seen.add(device)
            found[name] = disk.f_bavail * disk.f_frsize if disk.f_favail or not disk.f_files else 0
    return found
