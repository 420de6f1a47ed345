"""The coordinator: it turns telemetry into generations, and after a restart decides what to serve (F305).

A generation is served only while the latest build or replay of the window led to its domains, or while it is
the one that was published last. Anything else on disk - published under another policy, or from records that
have changed since - is not served before the next build.
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

from smtspool.errors import AdmissionError, ConfigError
from smtspool.files import Directory, Unstable
from smtspool.profile.archive import Archive
from smtspool.profile.artifact import MAX_RECORDS
from smtspool.profile.candidate import Candidate, ProfileGeneration, build_candidate
from smtspool.profile.counters import Counters
from smtspool.profile.policy import Policy
from smtspool.profile.record import Record
from smtspool.profile.state import MAX_STATE_BYTES, State, encode_state, parse_state
from smtspool.profile.steps import action

__all__ = ["Coordinator", "ProfileSnapshot"]

log = logging.getLogger("smtspool")

# Errors that reading or writing a file may raise; any other is a defect.
_FILE_TROUBLE = (OSError, AdmissionError, Unstable)
_VERSION = 3  # of artifacts whose policy has all thresholds
# Bytes of records in memory, as text: twice what a checkpoint holds. It bounds memory if records are huge.
_MAX_WINDOW_BYTES = 2 * MAX_STATE_BYTES


class _Built(StrEnum):
    """The outcome of a build."""

    NOTHING = "nothing"  # no domain, and none published before
    SAME = "same"  # the domains have not changed
    NEW = "new"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ProfileSnapshot:
    """A coordinator at one moment. ``dirty``: memory is not on disk yet, or disk and records may differ."""

    dirty: bool
    doubts: tuple[str, ...]  # why recovery did not trust the disk; until the next publish that succeeds
    window_records: int
    current_version: str  # "" if none
    current_profiles: int
    current_suppressed: int
    served: bool
    counters: Counters
    current: ProfileGeneration | None = None
    in_force: ProfileGeneration | None = None  # the one that is served
    renewal: bool = False  # the runtime file is to be written anew

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
    """The one writer of a profile folder. The constructor recovers from disk, and writes nothing.

    :meth:`observe` and :meth:`publish` are for one thread; :meth:`serve` and :meth:`snapshot` take no lock
    and are for all. No method raises because of files on disk or a disk that fails: failures are counted, and
    the next :meth:`publish` tries again. Publish with ``force`` once before the first :meth:`serve`.
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
        self._current: ProfileGeneration | None = None
        self._renewal = False  # the runtime file is to be written anew, whatever a build comes to
        self._served: ProfileGeneration | None = None
        self._recover()

    @property
    def dirty(self) -> bool:
        """Memory may differ from disk, or the disk is not trusted, so a publish is needed."""
        return self._dirty

    @property
    def records(self) -> tuple[Record, ...]:
        """The window, oldest first."""
        return tuple(self._window)

    def snapshot(self) -> ProfileSnapshot:
        """The coordinator at this moment."""
        current, served = self._current, self._served
        return ProfileSnapshot(
            dirty=self._dirty,
            doubts=self._doubts,
            window_records=len(self._window),
            current_version="" if current is None else current.version,
            current_profiles=0 if current is None else current.profile_count,
            current_suppressed=0 if current is None else current.suppressed_count,
            served=served is not None,
            counters=self._counters,
            current=current,
            in_force=served,
            renewal=self._renewal,
        )

    # -- serving ----------------------------------------------------------------------------------------

    def serve(self) -> ProfileGeneration | None:
        """The generation that may be probed with now; None while the records justify none."""
        with action("Serve") as step:
            served = self._served
            step.outcome = "nothing" if served is None else "served"
        return served

    # -- publishing -------------------------------------------------------------------------------------

    def observe(self, document: Mapping[str, Any]) -> bool:
        """Take a telemetry document into the window; False if it is not one."""
        record = Record.of(document)
        if record is None:
            return False
        with action("Observe", record=record.digest):
            self._remember(record)
            self._counters = self._counters.plus(records_observed=1).consumed(document)
            self._dirty = True
        return True

    def _remember(self, record: Record) -> None:
        """Put ``record`` into the window, and drop the oldest records if it is too long or too large."""
        if len(self._window) == self._window.maxlen:
            self._forget_oldest()
        self._window.append(record)
        self._window_bytes += len(record.text)
        while self._window_bytes > _MAX_WINDOW_BYTES:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        self._window_bytes -= len(self._window.popleft().text)

    def publish(self, *, force: bool = False) -> ProfileGeneration | None:
        """Build from the window, write and serve the result; the new generation, or None if there is none.

        Does nothing unless dirty, nor, unless forced, within the interval since the last attempt. After a
        failure it stays dirty, and the generation before stays the current one.
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
            # A generation that the records do not lead to any more is no longer served from here on.
            self._served = self._current if built is _Built.SAME else None
            step.outcome = built.value
        return built, candidate

    def _judge(self) -> tuple[_Built, Candidate | None]:
        try:
            candidate = build_candidate(self._window, self._policy)
        except Exception as error:  # records come from anywhere, so any failure to build is contained here
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
        """Write a checkpoint with ``counters``, which take effect if it is written; else count a failure."""
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

    def _switch(self, generation: ProfileGeneration, saved: bool) -> None:
        with action("Switch", artifact=generation.artifact_sha256):
            self._current = self._served = generation
            self._renewal = False
            if saved:
                self._settle()

    def _settle(self) -> None:
        self._dirty = False
        self._doubts = ()

    def _prune(self, generation: ProfileGeneration) -> None:
        try:
            self._archive.prune(generation.artifact_sha256)
        except OSError as error:  # further files do no harm
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
            self._window_bytes = len(data)  # a little more than its records
            self._counters = state.counters
            self._dirty = bool(state.doubts)
            step.outcome = "damaged" if state.doubts else "loaded"
        return state

    def _verify_runtime(self, state: State | None) -> list[str]:
        """Find the current generation, and all reasons against it except those that need the records."""
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
        """Compare the disk with what the records lead to; serve it if equal and nothing else is wrong."""
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
    """Without the garbage collector, which doubles the time; the tuples of 10,000 records form no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
