"""Who turns telemetry into generations, and after a restart knows whether to believe what is on disk (F305).

A generation is served only while the latest look at the records justifies it: since a replay of the window
that came to the same domains, since a build that did, or since it was published. Everything else - what was
published before, under another policy, from records that have changed since - waits for the next build.
"""

from __future__ import annotations

import gc
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from smtspool.actions import action
from smtspool.errors import AdmissionError, ConfigError
from smtspool.files import Directory, Unstable
from smtspool.profile.archive import Archive
from smtspool.profile.artifact import MAX_RECORDS
from smtspool.profile.candidate import Candidate, Generation, build_candidate
from smtspool.profile.counters import Counters
from smtspool.profile.policy import Policy
from smtspool.profile.record import Record
from smtspool.profile.state import MAX_STATE_BYTES, State, encode_state, parse_state

__all__ = ["Coordinator", "Snapshot"]

log = logging.getLogger("smtspool")

# What reading or writing a file may meet; anything else is a defect.
_FILE_TROUBLE = (OSError, AdmissionError, Unstable)
_VERSION = 3  # of artifacts whose policy says everything
# Records in memory, as text: twice what a checkpoint holds. A producer of huge records costs memory no more.
_MAX_WINDOW_BYTES = 2 * MAX_STATE_BYTES


class _Built(StrEnum):
    """What a build came to."""

    NOTHING = "nothing"  # no domain, and none published before
    SAME = "same"  # what a prober would do has not changed
    NEW = "new"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A coordinator at one moment. ``dirty``: something is not on disk yet, or not believed yet."""

    dirty: bool
    doubts: tuple[str, ...]  # why recovery did not believe the disk; until the next good publish
    window_records: int
    current_version: str  # "" if none
    current_profiles: int
    current_suppressed: int
    served: bool
    counters: Counters

    def to_json(self) -> dict[str, Any]:
        """One flat object; the counters under their own names."""
        counted = self.counters.to_json()
        consumed = counted.pop("consumption")
        return {
            "dirty": self.dirty,
            "doubts": list(self.doubts),
            "window_records": self.window_records,
            "current_version": self.current_version,
            "current_profiles": self.current_profiles,
            "current_suppressed": self.current_suppressed,
            "served": self.served,
            **counted,
            **consumed,
        }


class Coordinator:
    """The one writer of a profile folder. Making it recovers what is on disk, and writes nothing.

    :meth:`observe` and :meth:`publish` are for one thread; :meth:`serve` and :meth:`snapshot` take no lock
    and are for all. No method raises for what is on disk or for what the disk refuses: that is counted, and
    tried again by the next :meth:`publish`. Publish with ``force`` once before the first :meth:`serve`.
    """

    def __init__(
        self,
        directory: Directory,
        *,
        policy: Policy | None = None,
        window: int = 256,
        interval_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``window`` is the newest records looked at, ``interval_s`` the least time between two attempts to
        publish. Raises ``ConfigError`` if the window is not 1 to 10,000."""
        if not 1 <= window <= MAX_RECORDS:
            raise ConfigError(f"the window of records must be from 1 to {MAX_RECORDS}, not {window!r}")
        self._archive = Archive(directory)
        self._policy = policy or Policy()
        self._interval_s = interval_s
        self._clock = clock
        self._attempted: float | None = None
        self._window: deque[Record] = deque(maxlen=window)
        self._window_bytes = 0  # of the records' texts
        self._counters = Counters()
        self._dirty = False
        self._doubts: tuple[str, ...] = ()
        self._current: Generation | None = None
        self._renewal = False  # the runtime file is to be written anew, whatever a build comes to
        self._served: Generation | None = None
        self._recover()

    @property
    def dirty(self) -> bool:
        """What is in memory may differ from what is on disk, or is not believed: publish."""
        return self._dirty

    @property
    def records(self) -> tuple[Record, ...]:
        """The window, oldest first."""
        return tuple(self._window)

    def snapshot(self) -> Snapshot:
        """How it is now."""
        current, served = self._current, self._served
        return Snapshot(
            dirty=self._dirty,
            doubts=self._doubts,
            window_records=len(self._window),
            current_version="" if current is None else current.version,
            current_profiles=0 if current is None else current.profile_count,
            current_suppressed=0 if current is None else current.suppressed_count,
            served=served is not None,
            counters=self._counters,
        )

    # -- serving ----------------------------------------------------------------------------------------

    def serve(self) -> Generation | None:
        """The generation that may be probed with now; None while nothing is believed."""
        with action("Serve") as step:
            served = self._served
            step.outcome = "nothing" if served is None else "served"
        return served

    # -- publishing -------------------------------------------------------------------------------------

    def observe(self, document: Mapping[str, Any]) -> bool:
        """Take a telemetry document into the window; False, and nothing else, if it is none."""
        record = Record.of(document)
        if record is None:
            return False
        with action("Observe", record=record.digest):
            self._remember(record)
            self._counters = self._counters.plus(records_observed=1).consumed(document)
            self._dirty = True
        return True

    def _remember(self, record: Record) -> None:
        """Put ``record`` into the window; the oldest leave, for their number or for their size."""
        if len(self._window) == self._window.maxlen:
            self._forget_oldest()
        self._window.append(record)
        self._window_bytes += len(record.text)
        while self._window_bytes > _MAX_WINDOW_BYTES:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        self._window_bytes -= len(self._window.popleft().text)

    def publish(self, *, force: bool = False) -> Generation | None:
        """Bring disk and prober up to the window; the new generation, or None if there is none.

        Does nothing while nothing is dirty, nor, unless forced, within the interval since the last attempt.
        What fails stays dirty and leaves the generation before as the current one.
        """
        if not self._dirty or not (force or self._due()):
            return None
        self._attempted = self._clock()
        built, candidate = self._build()
        if candidate is None or built is not _Built.NEW:
            noop = self._counters.plus(semantic_noops=int(built is _Built.SAME))
            self._write_state(self._label, noop, settles=built is not _Built.FAILED)
            return None
        if not self._write_generation(candidate):
            self._write_state(self._label, self._counters, settles=False)
            return None
        generation = candidate.generation
        # It is published, whether or not the checkpoint that says so can be written.
        self._counters = self._counters.plus(
            generations_published=1,
            suppression_generations=int(generation.suppressed_count > 0),
            profiles_suppressed=generation.suppressed_count,
        )
        saved = self._write_state(generation.artifact_sha256, self._counters, settles=False)
        self._switch(generation, saved)
        self._prune(generation)
        return generation

    @property
    def _label(self) -> str:
        return "" if self._current is None else self._current.artifact_sha256

    def _due(self) -> bool:
        return self._attempted is None or self._clock() - self._attempted >= self._interval_s

    def _build(self) -> tuple[_Built, Candidate | None]:
        with action("Build", records=len(self._window)) as step:
            built, candidate = self._judge()
            if built is _Built.FAILED:
                self._counters = self._counters.plus(publication_failures=1)
            # What the records have just been seen not to justify is not served a moment longer.
            self._served = self._current if built is _Built.SAME else None
            step.outcome = built.value
        return built, candidate

    def _judge(self) -> tuple[_Built, Candidate | None]:
        try:
            candidate = build_candidate(self._window, self._policy)
        except Exception as error:  # the boundary around what records of any origin lead to
            log.exception("profiles: the records cannot be built from: %s", error)
            return _Built.FAILED, None
        if self._renewal:
            return _Built.NEW, candidate
        if self._current is None:
            return (_Built.NEW if candidate.generation.profile_count else _Built.NOTHING), candidate
        same = self._current.means(candidate.generation)
        return (_Built.SAME if same else _Built.NEW), candidate

    def _write_generation(self, candidate: Candidate) -> bool:
        digest = candidate.generation.artifact_sha256
        with action("WriteArtifact", artifact=digest) as step:
            written = self._written("the artifact", lambda: self._archive.write_artifact(candidate))
            step.outcome = "written" if written else "failed"
            if not written:
                self._counters = self._counters.plus(publication_failures=1)
                return False
        with action("WriteRuntime", artifact=digest) as step:
            written = self._written("the runtime text", lambda: self._archive.write_runtime(candidate))
            step.outcome = "written" if written else "failed"
            if not written:
                self._counters = self._counters.plus(publication_failures=1)
                self._renewal = True  # it may be there all the same: only its durability is in doubt
        return written

    def _write_state(self, label: str, counters: Counters, *, settles: bool) -> bool:
        """Checkpoint with ``counters``; they count only if it is written, and the failure if not."""
        with action("WriteState", artifact=label, records=len(self._window)) as step:
            saved = self._written("the checkpoint", lambda: self._checkpoint(label, counters))
            step.outcome = "written" if saved else "failed"
            if not saved:
                self._counters = self._counters.plus(checkpoint_failures=1)
                self._dirty = True
            elif settles:
                self._settle()
        return saved

    def _checkpoint(self, label: str, counters: Counters) -> None:
        window = self._window.maxlen or 0
        data, kept = encode_state(self._window, label, counters, window=window, policy=self._policy)
        self._archive.write_state(data)
        self._counters = kept

    def _written(self, what: str, write: Callable[[], None]) -> bool:
        try:
            write()
        except _FILE_TROUBLE as error:
            log.warning("profiles: %s is not written: %s (tried again with the next publish)", what, error)
            return False
        return True

    def _switch(self, generation: Generation, saved: bool) -> None:
        with action("Switch", artifact=generation.artifact_sha256):
            self._current = self._served = generation
            self._renewal = False
            if saved:
                self._settle()

    def _settle(self) -> None:
        self._dirty = False
        self._doubts = ()

    def _prune(self, generation: Generation) -> None:
        try:
            self._archive.prune(generation.artifact_sha256)
        except OSError as error:  # a file too many hurts nobody
            log.info("profiles: old artifacts stay: %s", error)

    # -- recovery ---------------------------------------------------------------------------------------

    def _recover(self) -> None:
        with _uncollected():
            state = self._load_state()
            doubts = list(state.doubts) if state is not None else []
            doubts += self._verify_runtime(state)
            if state is not None and self._current is not None:
                doubts += self._replay(believed=not doubts)
        self._doubts = tuple(doubts)
        for doubt in doubts:
            log.info("profiles: to be rebuilt: %s", doubt)

    def _load_state(self) -> State | None:
        with action("LoadState") as step:
            try:
                data = self._archive.read_state()
                state = parse_state(data, window=self._window.maxlen or 0, policy=self._policy)
            except FileNotFoundError:
                step.outcome = "absent"
                return None
            except _FILE_TROUBLE as error:
                log.warning("profiles: the checkpoint cannot be used: %s", error)
                step.outcome = "absent"
                return None
            self._window.extend(state.records)
            self._window_bytes = len(data)  # rather more than its records
            self._counters = state.counters
            self._dirty = bool(state.doubts)
            step.outcome = "damaged" if state.doubts else "loaded"
        return state

    def _verify_runtime(self, state: State | None) -> list[str]:
        """Find the current generation, and everything but the records that speaks against it."""
        doubts = []
        with action("VerifyRuntime") as step:
            try:
                artifact, self._current = self._archive.read_generation()
                self._renewal = artifact.version < _VERSION or artifact.policy != self._policy
                step.outcome = "verified"
            except FileNotFoundError:
                step.outcome = "absent"
            except _FILE_TROUBLE as error:
                log.warning("profiles: the runtime file cannot be used: %s", error)
                self._renewal = True
                step.outcome = "refused"
            if state is None and self._current is not None:
                doubts.append("a generation without a checkpoint")
            if state is not None and state.label != self._label:
                doubts.append("the checkpoint is about another generation")
            if state is not None and state.records and self._current is None:
                doubts.append("records without a generation")
            if self._renewal:
                doubts.append("the runtime file is damaged, or was made under another policy")
            self._dirty = self._dirty or bool(doubts)
        return doubts

    def _replay(self, *, believed: bool) -> list[str]:
        """Do the records lead to what is on disk? Only then, and if nothing else is wrong, it is served."""
        with action("Replay", records=len(self._window)) as step:
            self._counters = self._counters.plus(recovery_replays=1)
            step.outcome = self._replayed()
            if step.outcome == "equal":
                self._served = self._current if believed else None
                return []
            self._counters = self._counters.plus(recovery_replay_mismatches=1)
            self._dirty = True
        return [f"the records lead elsewhere: replay {step.outcome}"]

    def _replayed(self) -> str:
        try:
            rebuilt = build_candidate(self._window, self._policy)
        except Exception as error:  # the same boundary as in a build
            log.exception("profiles: the records cannot be replayed: %s", error)
            return "failed"
        equal = self._current is not None and self._current.means(rebuilt.generation)
        return "equal" if equal else "different"


@contextmanager
def _uncollected() -> Iterator[None]:
    """No search for cycles: among the tuples of 10,000 records there is none, and it doubles the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
