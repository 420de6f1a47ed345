"""Random walks of spool admission beyond the bound of the model: more consumers, more files, more contents.

Hypothesis chooses the steps and shrinks a failure to the shortest walk that shows it. After every step the
invariants are evaluated on the real state; and every walk is kept as a recording, so that TLC says afterwards
whether the model, with constants as large as the walk, explains each step of it.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from conformance.engine.gates import At, Nursery
from conformance.engine.trace import Recorded
from conformance.spool import CONTENTS, FAULT_AT_GATE, INVARIANTS, SUFFIX, SpoolSystem

__all__ = ["BATCH", "Walks", "walk"]

CONSUMERS = ("p", "q", "r")
FILES = ("a", "b", "c", "d", "e")
BATCH = 3


class Walks:
    """What all walks did, together."""

    def __init__(self) -> None:
        self.recordings: list[list[Recorded]] = []
        self.counts: Counter[str] = Counter()
        self.transitions: set[tuple[str, str, str]] = (
            set()
        )  # where a consumer stood, what it did, where it stands

    @property
    def steps(self) -> int:
        """All steps of all walks."""
        return self.counts.total()


class _Machine(RuleBasedStateMachine):
    nursery: Nursery
    walks: Walks
    started = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).started += 1
        self.system = SpoolSystem(
            self.nursery, CONSUMERS, FILES, tuple(CONTENTS), batch=BATCH, variant=self.started
        )
        self.recording: list[Recorded] = []
        self.publishable = list(FILES)

    def _record(
        self, who: str, action: str, params: dict[str, str], outcome: str | None, error: str | None
    ) -> None:
        number = len(self.recording) + 1
        self.recording.append(
            Recorded(number, who, number, number, action, params, outcome, error, begun=number)
        )
        self.walks.counts[f"{action} {error or outcome or ''}".strip()] += 1

    def _gate(self, name: str) -> str:
        position = self.system.consumers[name].position
        return position.name if isinstance(position, At) else str(position)

    def _who(self, name: str) -> str:
        return f"{name}{self.system.consumers[name].pid}"

    def _inside(self) -> list[str]:
        """Who has got past the lock."""
        return [name for name in CONSUMERS if self._gate(name) != "TryLock"]

    @initialize(contents=st.lists(st.sampled_from(sorted(CONTENTS)), max_size=len(FILES)))
    def begin(self, contents: list[str]) -> None:
        for content in contents:
            self.system.publish(self.publishable.pop(0), content)
            self.walks.counts["Publish"] += 1

    @rule(name=st.sampled_from(CONSUMERS))
    def ask(self, name: str) -> None:
        self._advance(name)

    @precondition(lambda self: self._inside())
    @rule(steps=st.integers(1, 8))
    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            for name in self._inside()[:1]:
                self._advance(name)
                self.holds()

    def _advance(self, name: str) -> None:
        before = self._gate(name)
        passed = self.system.advance(name)
        self._record(self._who(name), passed.name, dict(passed.params), passed.outcome, passed.error)
        self.walks.transitions.add((before, passed.outcome or "", self._gate(name)))

    @precondition(lambda self: self.publishable)
    @rule(content=st.sampled_from(sorted(CONTENTS)))
    def publish(self, content: str) -> None:
        self.system.publish(self.publishable.pop(0), content)
        self.walks.counts["Publish"] += 1

    @precondition(lambda self: self.system.waiting())
    @rule(data=st.data(), content=st.sampled_from(sorted(CONTENTS)))
    def replace(self, data: st.DataObject, content: str) -> None:
        self.system.replace(data.draw(st.sampled_from(self.system.waiting())), content)
        self.walks.counts["Replace"] += 1

    @precondition(lambda self: self._file_at_gate() in self.system.waiting())
    @rule(content=st.sampled_from(sorted(CONTENTS)))
    def replace_under_the_hand(self, content: str) -> None:
        self.system.replace(self._file_at_gate(), content)
        self.walks.counts["Replace"] += 1

    def _file_at_gate(self) -> str:
        """The file that somebody is about to verify or to move, "" when nobody is."""
        for consumer in self.system.consumers.values():
            if isinstance(consumer.position, At) and consumer.position.name in ("Verify", "Move"):
                return str(consumer.position.params["file"]).removesuffix(SUFFIX)
        return ""

    @precondition(lambda self: self._inside())
    @rule()
    def crash(self) -> None:
        name = self._inside()[0]
        who, before = self._who(name), self._gate(name)
        self.system.crash(name)
        self._record(who, "Crash", {}, None, None)
        self.walks.transitions.add((before, "Crash", self._gate(name)))

    @precondition(lambda self: any(self._gate(name) in FAULT_AT_GATE for name in CONSUMERS))
    @rule()
    def fail(self) -> None:
        name = next(name for name in CONSUMERS if self._gate(name) in FAULT_AT_GATE)
        position = self.system.consumers[name].position
        assert isinstance(position, At)
        self.system.fail(name, FAULT_AT_GATE[position.name])
        self._record(self._who(name), position.name, dict(position.params), None, "InjectedFault")
        self.walks.transitions.add((position.name, "fault", self._gate(name)))

    @invariant()
    def holds(self) -> None:
        real = self.system.project()
        for name, holds in INVARIANTS.items():
            assert holds(real), f"{name}: {real}"

    def teardown(self) -> None:
        self.system.close()
        if self.recording:
            self.walks.recordings.append(self.recording)


def walk(nursery: Nursery, *, walks: int, steps: int, fresh: bool) -> Walks:
    """Walk at random, ``fresh`` or as always, and say what was done. Fails as Hypothesis fails, with the
    shortest walk."""
    done = Walks()
    machine = type("SpoolWalk", (_Machine,), {"nursery": nursery, "walks": done})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=walks,
            stateful_step_count=steps,
            deadline=None,
            derandomize=not fresh,
            print_blob=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return done
