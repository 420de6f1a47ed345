"""The coordinator at random, over a disk that fails, drifts and forgets: what is served is justified."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from smtspool.files import Directory
from smtspool.profile import Coordinator, Policy, Record, build_candidate
from tests.profile.support import RUNTIME, STATE, Document, Failing, document, documents, rewrite, saw, served

POLICIES = (Policy(min_solver_queries=2), Policy(min_observations=20), Policy(min_validated_ratio_ppm=0))
WINDOW = 3
FILES = ("artifact", RUNTIME, STATE)


class Restarts(RuleBasedStateMachine):
    """``looked_at``: the records of the latest build or replay, which alone may justify what is served."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="profile-"))
        with Directory.open(self.folder) as directory:
            self.disk = Failing(os.dup(directory.fd), str(self.folder))
        self.policy = POLICIES[0]
        self.restart()

    def teardown(self) -> None:
        self.disk.close()
        shutil.rmtree(self.folder)

    def checkpoint(self) -> Document | None:
        try:
            state: Document = json.loads((self.folder / STATE).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return state

    @rule()
    def restart(self) -> None:
        self.one = Coordinator(self.disk, policy=self.policy, window=WINDOW)
        self.looked_at = self.one.records

    @rule(policy=st.sampled_from(POLICIES))
    def restart_under(self, policy: Policy) -> None:
        self.policy = policy
        self.restart()

    @rule(given=documents())
    def observe(self, given: Document) -> None:
        before = self.one.snapshot().counters.records_observed
        assert self.one.observe(given)
        assert self.one.dirty
        assert self.one.snapshot().counters.records_observed == before + 1
        assert len(self.one.records) <= WINDOW

    @rule(value=st.integers(0, 2))
    def observe_one_value(self, value: int) -> None:
        self.observe(document(saw(value, bits=8)))

    @rule()
    def publish(self) -> None:
        if self.one.dirty:
            self.looked_at = self.one.records
        generation = self.one.publish(force=True)
        if generation is not None:
            assert self.one.serve() == generation

    @rule(failing=st.sets(st.sampled_from(FILES)), late=st.booleans())
    def disk_refuses(self, failing: set[str], late: bool) -> None:
        self.disk.before, self.disk.after = (set(), failing) if late else (failing, set())

    @rule(value=st.integers(0, 2))
    @precondition(lambda self: self.checkpoint() is not None)
    def drift(self, value: int) -> None:
        rewrite(self.folder, records=[document(saw(value, bits=8))])
        self.restart()

    @rule(file=st.sampled_from([RUNTIME, STATE]), size=st.integers(0, 400))
    @precondition(lambda self: (self.folder / STATE).exists() and (self.folder / RUNTIME).exists())
    def damage(self, file: str, size: int) -> None:
        path = self.folder / file
        path.write_bytes(path.read_bytes()[:size])
        self.restart()

    @rule()
    def the_disk_is_well_and_so_is_everything(self) -> None:
        """Whatever happened before: one publication, and disk, memory and prober agree."""
        self.disk.before, self.disk.after = set(), set()
        self.publish()
        assert not self.one.dirty
        left = self.one
        self.restart()
        assert self.one.records == left.records
        assert served(self.one.serve()) == served(left.serve())
        current = left.snapshot().current_version
        if current or not left.records:
            assert not self.one.dirty
        assert self.one.snapshot().current_version == current

    @invariant()
    def what_is_served_is_justified(self) -> None:
        generation = self.one.serve()
        if generation is not None:
            assert served(generation) == served(build_candidate(self.looked_at, self.policy).generation)

    @invariant()
    def memory_that_differs_from_disk_is_dirty(self) -> None:
        if self.one.dirty:
            return
        state = self.checkpoint()
        if state is None:
            assert (self.one.records, self.one.serve()) == ((), None)
            return
        assert tuple(map(Record.of, state["records"])) == self.one.records
        generation = self.one.serve()
        if generation is not None:
            assert (self.folder / RUNTIME).read_bytes() == generation.content
            assert state["current_artifact_sha256"] == generation.artifact_sha256


TestRestarts = Restarts.TestCase
TestRestarts.settings = settings(max_examples=30, stateful_step_count=25)
