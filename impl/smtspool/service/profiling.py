"""Profiling: the coordinator of a campaign's value profiles, beside the workers (F305).

One service at a time leads: it must be one that admits, since it takes telemetry from the spool, and it holds
a lock that the kernel releases when it dies. It adds the feedback of its own probes, publishes, and serves
the current generation. Other services on the same store serve what the leader has published, once they have
replayed it, and put their feedback into the spool.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from smtspool.files import Directory, FileLock, Identity
from smtspool.profile import CONSUMPTION, MAX_FEEDBACK, RUNTIME, STATE, Coordinator, Policy, ProfileGeneration
from smtspool.store import Store

from .campaign import Campaign
from .config import Settings
from .increments import Increments
from .intake import Intake
from .loops import MACHINE_FAILURES
from .probing import Prober

__all__ = ["KNOWLEDGE", "Profiling", "coordinator_of"]

log = logging.getLogger("smtspool")

KNOWLEDGE = "profiles"  # under which the store has the latest snapshot
LOCK = ".coordinator.lock"
# Telemetry is read for so long before the result is published.
TAKING_SECONDS = 1.0
# Feedback waits so long for telemetry of the same program, to become part of that record, since a record of
# its own would take the place of another one in the window.
FEEDBACK_SECONDS = 30.0


def coordinator_of(directory: Directory, settings: Settings, **options: Any) -> Coordinator:
    """The coordinator of an open profile folder, under the settings of its campaign."""
    return Coordinator(
        directory,
        policy=Policy(
            min_observations=settings.profile_min_observations,
            max_distinct_values=settings.profile_max_distinct,
            min_solver_queries=settings.profile_min_queries,
            min_validated_ratio_ppm=settings.profile_min_validated_ppm,
            min_solver_time_us=settings.profile_min_solver_us,
        ),
        window=settings.profile_window,
        interval_s=settings.profile_interval_seconds,
        **options,
    )


class Profiling:
    """The step of the profiling thread, and the generation for probers. :meth:`serve` is for any thread."""

    def __init__(
        self,
        campaign: Campaign,
        settings: Settings,
        increments: Increments,
        *,
        admits: bool,
        open_store: Callable[[], Store],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Without ``admits`` it never leads, since it may not use the spool, and its feedback is dropped."""
        self.prober = Prober(self.serve, increments, budget_s=settings.probe_ms / 1e3)
        self._campaign = campaign
        self._settings = settings
        self._increments = increments
        self._admits = admits
        self._open_store = open_store
        self._clock = clock
        self._resources = ExitStack()
        self._directory: Directory | None = None
        self._lock: FileLock | None = None
        self._leads = False
        self._intake: Intake | None = None
        self._store: Store | None = None
        self._coordinator: Coordinator | None = None
        self._seen: tuple[Identity, ...] = ()  # of the files that a follower has replayed
        self._reports: dict[str, list[dict[str, Any]]] = {}  # feedback on its way, by context
        self._flush_at = clock() + FEEDBACK_SECONDS
        self._told: dict[str, Any] | None = None  # the snapshot that the store has

    def serve(self) -> ProfileGeneration | None:
        """The generation that may be probed with now."""
        coordinator = self._coordinator
        return None if coordinator is None else coordinator.serve()

    def begin(self) -> None:
        """Recover, before the first query is claimed; if the machine fails, :meth:`step` tries again."""
        try:
            self._look()
        except MACHINE_FAILURES as error:
            log.warning("profiles: not ready yet: %s", error)

    def step(self) -> float:
        """Take new telemetry, publish, store the snapshot. Returns the pause before the next, in seconds."""
        done = self._look()
        self._tell()
        return self._settings.poll_seconds if done else 0

    def close(self) -> None:
        """Publish what is left, and release everything."""
        with self._resources:
            if self._coordinator is not None and self._leads:
                self._flush(self._coordinator)
                self._publish(self._coordinator, force=True)
                self._tell()

    def _look(self) -> bool:
        """One round of work; False if there is more telemetry to take at once."""
        if self._directory is None:
            self._directory = self._resources.enter_context(
                Directory.open(self._campaign.profile, create=True)
            )
            self._lock = self._resources.enter_context(FileLock(self._directory, LOCK))
        if not self._leads and not (self._admits and self._take_lead(self._directory)):
            self._follow(self._directory)
            return True
        assert self._coordinator is not None
        return self._lead(self._coordinator)

    # -- leading ----------------------------------------------------------------------------------------

    def _take_lead(self, directory: Directory) -> bool:
        """Become the leader, with a coordinator that has recovered from disk; False if another leads."""
        assert self._lock is not None
        if not self._lock.try_acquire():
            return False
        try:
            coordinator = coordinator_of(directory, self._settings, clock=self._clock)
            coordinator.publish(force=True)
        except BaseException:
            # What is in hand may be a follower's window: others must not find it checkpointed over theirs.
            self._lock.release()
            raise
        self._coordinator, self._leads = coordinator, True
        return True

    def _lead(self, coordinator: Coordinator) -> bool:
        done = self._take(coordinator)
        if self._clock() >= self._flush_at:
            self._flush(coordinator)
        self._publish(coordinator)
        return done

    def _take(self, coordinator: Coordinator) -> bool:
        """Observe telemetry files for a while; False if some are left."""
        if self._intake is None:
            self._intake = self._resources.enter_context(Intake(self._campaign.spool))
        intake, before = self._intake, (self._intake.accepted, self._intake.rejected)
        until = self._clock() + TAKING_SECONDS
        try:
            return intake.take(
                lambda document: coordinator.observe(self._with_feedback(document)),
                lambda: self._clock() >= until,
            )
        finally:
            names = ("telemetry.accepted", "telemetry.rejected")
            counts = (intake.accepted - before[0], intake.rejected - before[1])
            self._increments.add(dict(zip(names, counts, strict=True)))

    def _publish(self, coordinator: Coordinator, *, force: bool = False) -> None:
        generation = coordinator.publish(force=force)
        if generation is not None:
            log.info(
                "profiles: %d domains, %d suppressed: generation %s",
                generation.profile_count,
                generation.suppressed_count,
                generation.version,
            )
        if not coordinator.dirty and self._intake is not None:
            self._intake.remove_taken()

    def _with_feedback(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """``document`` with feedback about its program, if some waits and both fit into one record."""
        if not self._reports:
            self._gather()
        context = document["empirical_value_profile_context"]
        waiting = self._reports.get(context)
        if not waiting:
            return document
        rows = document.get("empirical_domain_feedback")
        rows = rows if isinstance(rows, list) else []
        if len(rows) + len(waiting[-1]["empirical_domain_feedback"]) > MAX_FEEDBACK:
            return document
        report = waiting.pop()
        counted = {name: _count(document.get(name)) + _count(report.get(name)) for name in CONSUMPTION}
        more = {"empirical_domain_feedback": [*rows, *report["empirical_domain_feedback"]]}
        return {**document, **counted, **more}

    def _gather(self) -> None:
        for report in self.prober.take():
            self._reports.setdefault(report["empirical_value_profile_context"], []).append(report)

    def _flush(self, coordinator: Coordinator) -> None:
        """Observe feedback for which no telemetry has come in time."""
        self._gather()
        reports, self._reports = self._reports, {}
        for report in (one for waiting in reports.values() for one in waiting):
            coordinator.observe(report)
        self._flush_at = self._clock() + FEEDBACK_SECONDS

    # -- following --------------------------------------------------------------------------------------

    def _follow(self, directory: Directory) -> None:
        """Replay what the leader has published whenever that changes. It writes nothing."""
        seen = tuple(Identity.of(directory.stat(name)) for name in (STATE, RUNTIME) if directory.exists(name))
        if seen != self._seen:
            self._coordinator = coordinator_of(directory, self._settings, clock=self._clock)
            self._seen = seen
        if self._admits and self._clock() >= self._flush_at:
            self._leave_feedback()
            self._flush_at = self._clock() + FEEDBACK_SECONDS

    def _leave_feedback(self) -> None:
        if self._intake is None:
            self._intake = self._resources.enter_context(Intake(self._campaign.spool))
        for report in self.prober.take():
            self._intake.submit(json.dumps(report).encode())

    # -- telling ----------------------------------------------------------------------------------------

    def _tell(self) -> None:
        """Store the snapshot for the status screen, if it has changed."""
        if self._coordinator is None or not self._leads:
            return
        now = self._coordinator.snapshot().to_json()
        if now == self._told:
            return
        if self._store is None:
            self._store = self._resources.enter_context(self._open_store())
        self._store.put(KNOWLEDGE, now)
        self._told = now


def _count(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0
