"""A complete graph driven through a real system: every edge, every refusal, every invariant.

An :class:`Adapter` starts a fresh real system, and the :class:`System` it returns performs one step for real,
says at which gates its participants stand, and projects itself to the variables of the model. What is required:

* *edges*: after each edge of the graph the projection equals the target, variable by variable;
* *refusals*: in each state the gates where participants stand are those whose steps the model enables there,
  no more and no fewer; and each external step that the model does not enable is attempted and changes nothing;
* *invariants*: each is also evaluated on the projection after every step.

A difference is reported with the shortest path that shows it, and one line that repeats it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from difflib import ndiff
from typing import Protocol

from .gates import GateError
from .graph import Edge, Graph
from .tours import cover, shortest_path
from .values import Function, Value, parse, show, show_state

__all__ = [
    "Adapter",
    "Divergence",
    "Drive",
    "Invariant",
    "Refused",
    "Replay",
    "System",
    "difference",
    "gate_of",
]

State = Mapping[str, Value]
Invariant = Callable[[State], bool]


class Divergence(AssertionError):
    """The real system does something that the model does not."""


class Refused(Exception):
    """The real system refused an external step."""


class System(Protocol):
    """One real system in one run."""

    def perform(self, label: Function) -> None:
        """Take the step for real; :class:`Divergence` when it goes another way, :class:`Refused` when an
        external step is refused."""

    def project(self) -> dict[str, Value]:
        """The real state as values of the model's variables, all of them."""

    def standing(self) -> frozenset[str]:
        """The gates where participants stand, as texts of :func:`gate_of`."""

    def close(self) -> None:
        """End everything that was started."""


class Adapter(Protocol):
    """What the engine must know of one protocol."""

    @property
    def name(self) -> str:
        """The protocol, as ``python -m conformance`` takes it."""

    @property
    def invariants(self) -> Mapping[str, Invariant]:
        """The state predicates of the module, on projections, by their names in the module."""

    @property
    def external(self) -> frozenset[str]:
        """The actions that are not steps of participants: calls from outside and the environment."""

    @property
    def excluded(self) -> Mapping[str, Callable[[Function, State], bool]]:
        """Refusals that cannot be attempted, because what the real system would then do is left out of the
        model: by action, when."""

    def start(self, initial: State) -> System:
        """A fresh system in an initial state."""


def gate_of(label: Function) -> str:
    """The gate at which a step begins: its label without the outcome, which only the step decides."""
    return show(Function({key: value for key, value in label.items() if key != "outcome"}))


def difference(expected: State, real: State) -> str:
    """The variables that differ, model and reality one above the other."""
    lines = []
    for name in sorted({*expected, *real}):
        wanted, found = (show(side[name]) if name in side else "(missing)" for side in (expected, real))
        if wanted != found:
            lines += [f"  {name}:", *(f"    {line}" for line in ndiff([wanted], [found]) if line[0] in "-+")]
    return "\n".join(lines)


@dataclass
class Drive:
    """What was driven, and what there was to drive."""

    graph: Graph
    edges: set[Edge] = field(default_factory=set)
    refusals: set[tuple[int, str]] = field(default_factory=set)
    refusals_required: int = 0
    excluded: int = 0
    steps: int = 0
    tours: int = 0
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """True when nothing that is required is missing, and something was required."""
        return len(self.edges) == len(self.graph.edges) > 0 and (
            len(self.refusals) == self.refusals_required > 0
        )


class Replay:
    """Drives ``graph`` through the systems of ``adapter``."""

    def __init__(self, graph: Graph, adapter: Adapter) -> None:
        self._graph = graph
        self._adapter = adapter
        self._texts = {edge.label for edge in graph.edges}
        self._outside = sorted(text for text in self._texts if graph.labels[text]["name"] in adapter.external)
        self._gates = {
            text: gate_of(graph.labels[text])
            for text in self._texts
            if graph.labels[text]["name"] not in adapter.external
        }
        self.drive = Drive(graph)
        self._visited: set[int] = set()
        self.drive.refusals_required = sum(
            1 for state in range(len(graph.states)) for _ in self._refusals(state)
        )
        self.drive.excluded = (
            sum(1 + len(self._forbidden(state)) for state in range(len(graph.states)))
            - self.drive.refusals_required
        )

    # what must be refused

    def _forbidden(self, state: int) -> list[str]:
        enabled = {edge.label for edge in self._graph.outgoing[state]}
        return [text for text in self._outside if text not in enabled]

    def _refusals(self, state: int) -> Iterator[str]:
        """The obligations of one state: "gates", and each external step that can be attempted."""
        yield "gates"
        for text in self._forbidden(state):
            label = self._graph.labels[text]
            left_out = self._adapter.excluded.get(str(label["name"]))
            if left_out is None or not left_out(label, self._graph.values[state]):
                yield text

    # driving

    def run(self, *, longest: int = 10_000, until_s: float | None = None) -> Drive:
        """All tours. Raises :class:`Divergence` at the first difference, with the shortest path to it."""
        started = time.monotonic()
        for start, tour in cover(self._graph, longest=longest):
            self._tour(start, tour)
            self.drive.tours += 1
            self.drive.seconds = time.monotonic() - started
            if until_s is not None and self.drive.seconds > until_s:
                break
        return self.drive

    def _tour(self, start: int, tour: Sequence[Edge]) -> None:
        taken = 0
        try:
            for _ in self._walk(start, tour):
                taken += 1
        except (Divergence, GateError) as error:
            raise self._shortest(
                start, tour[:taken], tour[taken] if taken < len(tour) else None, error
            ) from error

    def path(self, numbers: Sequence[int]) -> Drive:
        """One path, given as indices into the edges of the graph; a path from an initial state."""
        edges = [self._graph.edges[number] for number in numbers]
        start = edges[0].source if edges else self._graph.initial[0]
        self._tour(start, edges)
        return self.drive

    def _walk(self, start: int, path: Sequence[Edge]) -> Iterator[Edge]:
        with closing(self._adapter.start(self._graph.values[start])) as system:
            self._compare(system, start, "the start")
            self._arrive(system, start)
            for edge in path:
                self._step(system, edge)
                yield edge

    def _step(self, system: System, edge: Edge) -> None:
        label = self._graph.labels[edge.label]
        try:
            system.perform(label)
        except Refused as error:
            raise Divergence(f"refused a step that the model enables: {error}") from error
        self.drive.steps += 1
        self._compare(system, edge.target, edge.label)
        self.drive.edges.add(edge)
        self._arrive(system, edge.target)

    def _compare(self, system: System, target: int, after: str) -> None:
        real = system.project()
        for name, holds in self._adapter.invariants.items():
            if not holds(real):
                raise Divergence(f"{name} does not hold after {after}: {show_state(real)}")
        if real != self._graph.values[target] and show_state(real) != self._graph.states[target]:
            found = difference(self._graph.values[target], real)
            raise Divergence(f"another state after {after} (- model, + real):\n{found}")

    def _arrive(self, system: System, state: int) -> None:
        """On the first visit of a state, everything that must be refused there."""
        if state in self._visited:
            return
        ready = {self._gates[e.label] for e in self._graph.outgoing[state] if e.label in self._gates}
        standing = system.standing()
        if standing != ready:
            raise Divergence(
                f"other gates (model enables {sorted(ready - standing)} where nobody stands; "
                f"participants stand at {sorted(standing - ready)} that the model does not enable)"
            )
        required = list(self._refusals(state))
        for text in required[1:]:
            self._attempt(system, state, text)
        self.drive.refusals |= {(state, text) for text in required}
        self._visited.add(state)

    def _attempt(self, system: System, state: int, text: str) -> None:
        try:
            system.perform(self._graph.labels[text])
        except Refused:
            pass
        self._compare(system, state, f"the attempt of {text}")

    # reporting

    def _shortest(
        self, start: int, taken: Sequence[Edge], failed: Edge | None, error: Exception
    ) -> Divergence:
        """The same difference on the shortest path that shows it, if that shows it."""
        end = failed.source if failed else (taken[-1].target if taken else start)
        last = [failed] if failed else []
        short = shortest_path(self._graph, self._graph.initial, lambda state: state == end) or ()
        for path in ([*short, *last], [*taken, *last]):
            again = Replay(self._graph, self._adapter)
            begin = path[0].source if path else start
            again._visited = set(range(len(self._graph.states))) - {path[-1].target if path else begin, end}
            try:
                for _ in again._walk(begin, path):
                    pass
            except (Divergence, GateError) as found:
                return Divergence(self._report(path, found))
        return Divergence("seen once, not on repetition:\n" + self._report([*taken, *last], error))

    def _report(self, path: Sequence[Edge], error: Exception) -> str:
        numbers = {edge: number for number, edge in enumerate(self._graph.edges)}
        steps = "\n".join(f"  {position}. {edge.label}" for position, edge in enumerate(path, 1))
        repeat = ",".join(str(numbers[edge]) for edge in path)
        return (
            f"{self._adapter.name}: {error}\nafter\n{steps}\n"
            f"repeat it with\n  python -m conformance {self._adapter.name} --path {repeat or '-'}"
        )


def label(text: str) -> Function:
    """A label from its text."""
    value = parse(text)
    assert isinstance(value, Function)
    return value
