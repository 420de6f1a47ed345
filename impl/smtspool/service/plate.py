"""The report that a service writes about itself every second, on the plate of its lock file.

Its schema is ``smtspool-service-v1``. It does not need the database, so it can be read when the store fails.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from smtspool import __version__
from smtspool.errors import InfrastructureError
from smtspool.solve import PortfolioView
from smtspool.store import Presence, present

from .campaign import Campaign
from .config import Settings
from .desk import Desk, Solving
from .logs import dropped_lines, plain
from .loops import Health

__all__ = ["SERVICE_SCHEMA", "SHOW_SECONDS", "Plate", "services"]

SERVICE_SCHEMA = "smtspool-service-v1"
SHOW_SECONDS = 1.0
# Limits under which a report fits on a plate, whatever characters are in it.
MOST_SOLVING = 64
MOST_REQUESTS = 64
ENGINE_CHARACTERS = 40
MOST_FAILING = 6
MESSAGE_CHARACTERS = 300
# The shape that readers of plates rely on. ``float`` stands for any number of a sane size, and a pair for its
# first part or None.
_AILMENT = {"loop": str, "since": float, "failures": float, "message": str}
_REQUEST = {"engine": str, "checks": bool, "waits_for": (str, None), "seconds": (float, None)}
_SHAPE: dict[str, Any] = {
    "host": str,
    "pid": float,
    "started": float,
    "written": float,
    "state": str,
    "jobs": float,
    "engines": [str],
    "metrics_port": (float, None),
    "solving": [{"query": str, "seconds": float, "requests": ([_REQUEST], None)}],
    "failing": [_AILMENT],
    "last_error": ({"at": float, "loop": str, "message": str}, None),
    "log_lines_lost": float,
}
_SANE = 1e15


def services(campaign: Campaign) -> list[Mapping[str, Any]]:
    """The report of each service, with ``token`` and ``alive``: true, false, None (unknown).

    A service that lives or may live, but has no readable report, has only these two members. A lock file
    without a report whose lock is free has no owner, and is left out.
    """
    found: list[Mapping[str, Any]] = []
    for one in present(campaign.store):
        plate = one.plate if _is_plate(one.plate) else None
        if plate or one.alive is not False:
            found.append({**(plate or {}), "token": one.token, "alive": one.alive})
    return found


def _is_plate(members: Mapping[str, Any] | None) -> bool:
    """Whether a service wrote this; other programs may have written to the file."""
    return members is not None and members.get("schema") == SERVICE_SCHEMA and _fits(members, _SHAPE)


def _fits(value: object, shape: Any) -> bool:
    match shape:
        case dict():
            return isinstance(value, Mapping) and all(_fits(value.get(name), shape[name]) for name in shape)
        case [each]:
            return isinstance(value, list) and all(_fits(one, each) for one in value)
        case (most, None):
            return value is None or _fits(value, most)
    if shape is float:
        return isinstance(value, int | float) and -_SANE < value < _SANE
    return isinstance(value, shape)


class Plate:
    """The step of the thread that writes the plate. Other threads set :attr:`engines` and other attributes.

    Times are seconds since the epoch; the ``seconds`` of a query that is being solved, and of a request, are
    those at ``written``.
    """

    def __init__(
        self,
        settings: Settings,
        desk: Desk,
        health: Health,
        *,
        make: Callable[[], Presence],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._desk = desk
        self._health = health
        self._make = make
        self._wall = wall
        self._presence: Presence | None = None
        self._started = wall()
        self.serving = False
        self.engines: list[str] = []
        self.port: int | None = None  # of the metrics

    def presence(self) -> Presence:
        """The lock file of this service, made at the first call; for one thread."""
        if self._presence is None:
            self._presence = self._make()
        return self._presence

    def step(self) -> float:
        if self._presence is not None:
            self._presence.show(self._members("serving" if self.serving else "starting"))
        return SHOW_SECONDS

    def close(self) -> None:
        if self._presence is None:
            return
        try:
            if self._presence.registered:  # the row could not be removed; a reaper will do it
                self._presence.show(self._members("ended"))
        finally:
            self._presence.close()

    def _members(self, state: str) -> dict[str, Any]:
        if self._desk.draining.is_set() and state != "ended":
            state = "draining"
        failing = [
            {
                "loop": loop,
                "since": ailment.since,
                "failures": ailment.failures,
                "message": plain(ailment.message)[:MESSAGE_CHARACTERS],
            }
            for loop, ailment in sorted(self._health.ailing().items(), key=lambda one: one[1].since)
        ]
        last = self._health.last_error
        return {
            "schema": SERVICE_SCHEMA,
            "version": __version__,
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "started": self._started,
            "written": self._wall(),
            "state": state,
            "jobs": self._settings.jobs,
            "engines": self.engines,
            "metrics_port": self.port,
            "solving": _solving(self._desk.solving_now()[:MOST_SOLVING]),
            "failing": failing[:MOST_FAILING],
            "last_error": None
            if last is None
            else {"at": last.at, "loop": last.loop, "message": plain(last.message)[:MESSAGE_CHARACTERS]},
            "log_lines_lost": dropped_lines(),
        }


def _solving(now: Sequence[Solving]) -> list[dict[str, Any]]:
    """What is being solved. ``requests`` is left out where the plate has no room for them, and from the first
    portfolio on whose lock is not free: a plate waits for one at most."""
    found: list[dict[str, Any]] = []
    room, free = MOST_REQUESTS, True
    for one in now:
        found.append({"worker": one.worker, "query": one.query, "seconds": round(one.seconds, 3)})
        if not free or not room:
            continue
        try:
            asked = _requests(one.portfolio.view(), one.query)
        except InfrastructureError:
            free = False
            continue
        if len(asked) <= room:
            room -= len(asked)
            found[-1]["requests"] = asked
    return found


def _requests(view: PortfolioView, query: str) -> list[dict[str, Any]]:
    """The requests for this query; the worker may be at the next one by now, or at the values of terms."""
    started = {
        part.solver: part.started for race in view.races if race.query_id == query for part in race.parts
    }
    return [
        {
            "engine": solver.engine[:ENGINE_CHARACTERS],
            "checks": checks,
            "waits_for": None if request.waiting is None else request.waiting.value,
            "seconds": round(view.taken - started[solver.name], 3) if solver.name in started else None,
        }
        for checks, solvers in ((False, view.solvers), (True, view.checkers))
        for solver in solvers
        for request in solver.requests
        if request.query_id == query
    ]
