"""Random walks of a real system beyond the bound of its model.

Hypothesis chooses among the steps that the system offers and shrinks a failure to the shortest walk that
shows it, which is printed as one line to paste. After every step the invariants are evaluated on the real
state. What was walked is counted by action and by transition, so that a test can ask for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Protocol

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from .replay import Divergence, Invariant, State
from .trace import Recorded
from .values import Function, Value, parse, show

__all__ = ["Walk", "WalkAdapter", "Walks", "repeat", "walk"]

VARIANTS = 12


class Walk(Protocol):
    """One real system on one walk."""

    def moves(self) -> Mapping[Function, int]:
        """The steps that may be taken now, as labels, the most useful first; each with its weight, one or
        more."""

    def take(self, move: Function) -> str:
        """Take a step; how it went, "" when it can go one way only. Raises :class:`Divergence`."""

    def project(self) -> State:
        """The real state as values of the model's variables."""

    def close(self) -> None:
        """End everything that was started."""


class WalkAdapter(Protocol):
    """What the engine must know of a protocol to walk in it."""

    @property
    def invariants(self) -> Mapping[str, Invariant]:
        """The state predicates of the module, on projections, by their names in the module."""

    @property
    def recordings(self) -> Sequence[Sequence[Recorded]]:
        """What was recorded of the walks that have ended; nothing where the adapter does not record."""

    def begin(self, variant: int) -> Walk:
        """A fresh system, larger than the bounded model. ``variant`` decides what the model does not tell
        apart."""

    def shape(self, state: State, /) -> Hashable:
        """What of a state tells transitions apart, whatever the number of participants."""


@dataclass(slots=True)
class Walks:
    """What all walks did, together: how often each action went each way, and each transition between shapes
    was taken; and what was recorded of them."""

    counts: Counter[str] = field(default_factory=Counter)
    transitions: Counter[tuple[Hashable, str, Hashable]] = field(default_factory=Counter)
    walks: int = 0
    recordings: Sequence[Sequence[Recorded]] = ()

    @property
    def steps(self) -> int:
        """All steps of all walks."""
        return self.counts.total()

    def missing(self, floors: Mapping[str, int]) -> list[str]:
        """The actions that were taken less often than they must be, as sentences."""
        return [
            f"{action}: {self.counts[action]} of {floor}"
            for action, floor in floors.items()
            if self.counts[action] < floor
        ]


class _Machine(RuleBasedStateMachine):
    name: str
    adapter: WalkAdapter
    done: Walks

    @initialize(variant=st.integers(0, VARIANTS - 1))
    def begin(self, variant: int) -> None:
        self.variant = variant
        self.path: list[Value] = []
        self.system = self.adapter.begin(variant)
        self.state = _checked(self.adapter, self.system)
        self.done.walks += 1

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        moves = self.system.moves()
        pool = [move for move, weight in moves.items() for _ in range(weight)]
        move = data.draw(st.sampled_from(pool))
        self.path.append(move)
        before = self.adapter.shape(self.state)
        action = f"{move['name']} {self.system.take(move)}".strip()
        self.state = _checked(self.adapter, self.system)
        self.done.counts[action] += 1
        self.done.transitions[before, action, self.adapter.shape(self.state)] += 1

    def teardown(self) -> None:
        if hasattr(self, "system"):
            note(
                "repeat it with\n"
                f"  python -m conformance {self.name} --variant {self.variant} "
                f"--walk '{show(tuple(self.path))}'"
            )
            self.system.close()


def _checked(adapter: WalkAdapter, system: Walk) -> State:
    """The state, in which every invariant holds."""
    state = system.project()
    for name, holds in adapter.invariants.items():
        if not holds(state):
            raise Divergence(f"{name} does not hold: {state}", f"invariant {name}")
    return state


def walk(adapter: WalkAdapter, name: str, *, walks: int, steps: int, fresh: bool) -> Walks:
    """Walk at random, ``fresh`` or always alike, and say what was done. Fails as Hypothesis fails, with the
    shortest walk; ``name`` is what ``python -m conformance`` calls the protocol."""
    done = Walks()
    machine = type("Machine", (_Machine,), {"name": name, "adapter": adapter, "done": done})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=walks,
            stateful_step_count=steps,
            deadline=None,
            derandomize=not fresh,
            print_blob=False,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    done.recordings = adapter.recordings
    return done


def repeat(adapter: WalkAdapter, variant: int, path: str) -> None:
    """Take one walk as a failure prints it. Raises :class:`Divergence` where it fails."""
    moves = parse(path)
    if not isinstance(moves, Iterable):
        raise ValueError("a walk is a sequence of steps")
    with closing(adapter.begin(variant)) as system:
        _checked(adapter, system)
        for move in moves:
            if not isinstance(move, Function) or move not in system.moves():
                raise Divergence(f"the system does not offer {move}", "walk")
            system.take(move)
            _checked(adapter, system)
