"""A complete graph driven through a real system: every edge, every refusal, every invariant.

An :class:`Adapter` starts a fresh real system, and the :class:`System` it returns performs one step for real,
says at which gates its participants stand, and projects itself to the variables of the model. What is
required:

* *edges*: after each edge of the graph the projection equals the target, variable by variable;
* *refusals*: in each state the gates where participants stand are those whose steps the model enables there,
  no more and no fewer; and each external step that the model does not enable is tried and changes nothing;
* *invariants*: each is also evaluated on the projection after every step.

A difference is reported with the shortest path that shows it, and one line that repeats it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, suppress
from dataclasses import dataclass, field
from difflib import ndiff
from typing import Protocol

from .gates import LEDGER, GateError
from .graph import Edge, Graph
from .tours import cover, shortest_path
from .values import Function, Value, show, show_state

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
    """The real system does something that the model does not; ``detector`` is what saw it."""

    def __init__(self, message: str, detector: str = "step") -> None:
        super().__init__(message)
        self.detector = detector


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
    def invariants(self) -> Mapping[str, Invariant]:
        """The state predicates of the module, on projections, by their names in the module."""

    @property
    def external(self) -> frozenset[str]:
        """The actions that are not steps of participants: calls from outside and the environment."""

    @property
    def kills(self) -> frozenset[str]:
        """The external actions that kill a participant."""

    @property
    def excluded(self) -> Mapping[str, Callable[[Function, State], bool]]:
        """Refusals that cannot be attempted, because what the real system would then do is left out of the
        model: by action, when."""

    def start(self, initial: State, variant: int, /) -> System:
        """A fresh system in an initial state. What the model does not tell apart (which kind of bad file,
        which way of replacing) follows from ``variant``, another number for each tour."""


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
    """Drives ``graph`` through the systems of ``adapter``; ``name`` is what ``python -m conformance`` calls
    it."""

    def __init__(self, graph: Graph, adapter: Adapter, name: str) -> None:
        self._graph = graph
        self._adapter = adapter
        self._name = name
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

    def ready(self, state: int) -> frozenset[str]:
        """The gates whose steps the model enables in a state."""
        labels = (edge.label for edge in self._graph.outgoing[state])
        return frozenset(self._gates[label] for label in labels if label in self._gates)

    # driving

    def run(self, *, workers: int = 1, longest: int = 10_000, most_tours: int | None = None) -> Drive:
        """All tours, or the first ``most_tours``, ``workers`` at a time. Raises :class:`Divergence` at the
        first difference, with the shortest path to it."""
        started = time.monotonic()
        tours = list(enumerate(cover(self._graph, longest=longest)))[:most_tours]
        # The longest first: whoever is free takes the next, and all end at about the same time.
        tours.sort(key=lambda tour: -len(tour[1][1]))
        with ThreadPoolExecutor(workers) as pool:
            running = [pool.submit(self._tour, start, path, number) for number, (start, path) in tours]
            try:
                for done in as_completed(running):
                    done.result()
                    self.drive.tours += 1
            finally:
                pool.shutdown(cancel_futures=True)
        self.drive.seconds = time.monotonic() - started
        return self.drive

    def path(self, numbers: Sequence[int], variant: int = 0) -> Drive:
        """One path, given as indices into the edges of the graph; a path from an initial state."""
        edges = [self._graph.edges[number] for number in numbers]
        self._tour(edges[0].source if edges else self._graph.initial[0], edges, variant)
        return self.drive

    def _tour(self, start: int, tour: Sequence[Edge], variant: int) -> None:
        taken = 0
        try:
            for _ in self._walk(start, tour, variant):
                taken += 1
        except (Divergence, GateError) as error:
            failed = tour[taken] if taken < len(tour) else None
            raise self._shortest(start, tour[:taken], failed, variant, error) from error

    def _walk(self, start: int, path: Sequence[Edge], variant: int) -> Iterator[Edge]:
        with closing(self._adapter.start(self._graph.values[start], variant)) as system:
            self._compare(system, start, "the start", "start")
            self._arrive(system, start)
            for edge in path:
                self._step(system, edge)
                yield edge

    def _step(self, system: System, edge: Edge) -> None:
        label = self._graph.labels[edge.label]
        before = (LEDGER.released, LEDGER.killed)
        try:
            system.perform(label)
        except Refused as error:
            raise Divergence(f"refused a step that the model enables: {error}") from error
        after = (LEDGER.released, LEDGER.killed)
        if after[edge.label not in self._gates] == before[edge.label not in self._gates] and (
            edge.label in self._gates or label["name"] in self._adapter.kills
        ):
            raise Divergence(f"no participant was made to do {edge.label}", "ledger")
        self.drive.steps += 1
        self._compare(system, edge.target, edge.label)
        self.drive.edges.add(edge)
        self._arrive(system, edge.target)

    def _compare(self, system: System, target: int, after: str, detector: str = "edge") -> None:
        real = system.project()
        for name, holds in self._adapter.invariants.items():
            if not holds(real):
                raise Divergence(
                    f"{name} does not hold after {after}: {show_state(real)}", f"invariant {name}"
                )
        if real != self._graph.values[target] and show_state(real) != self._graph.states[target]:
            found = difference(self._graph.values[target], real)
            raise Divergence(f"another state after {after} (- model, + real):\n{found}", detector)

    def _arrive(self, system: System, state: int) -> None:
        """On the first visit of a state, everything that must be refused there."""
        if state in self._visited:
            return
        ready = self.ready(state)
        standing = system.standing()
        if standing != ready:
            raise Divergence(
                f"other gates (model enables {sorted(ready - standing)} where nobody stands; "
                f"participants stand at {sorted(standing - ready)} that the model does not enable)",
                "gates",
            )
        required = list(self._refusals(state))
        for text in required[1:]:
            self._attempt(system, state, text)
        self.drive.refusals |= {(state, text) for text in required}
        self._visited.add(state)

    def _attempt(self, system: System, state: int, text: str) -> None:
        with suppress(Refused):
            system.perform(self._graph.labels[text])
        self._compare(system, state, f"the attempt of {text}", "refusal")

    # reporting

    def _shortest(
        self, start: int, taken: Sequence[Edge], failed: Edge | None, variant: int, error: Exception
    ) -> Divergence:
        """The same difference on the shortest path that shows it, if that shows it."""
        end = failed.source if failed else (taken[-1].target if taken else start)
        last = [failed] if failed else []
        short = shortest_path(self._graph, self._graph.initial, lambda state: state == end) or ()
        for path in ([*short, *last], [*taken, *last]):
            begin = path[0].source if path else start
            again = Replay(self._graph, self._adapter, self._name)
            again._visited = set(range(len(self._graph.states))) - {path[-1].target if path else begin, end}
            try:
                for _ in again._walk(begin, path, variant):
                    pass
            except (Divergence, GateError) as found:
                return Divergence(self._report(path, variant, found), _detector(found))
        report = self._report([*taken, *last], variant, error)
        return Divergence(f"seen once, not on repetition:\n{report}", _detector(error))

    def _report(self, path: Sequence[Edge], variant: int, error: Exception) -> str:
        numbers = {edge: number for number, edge in enumerate(self._graph.edges)}
        steps = "\n".join(f"  {position}. {edge.label}" for position, edge in enumerate(path, 1))
        repeat = ",".join(str(numbers[edge]) for edge in path)
        return (
            f"{self._name}: {error}\nafter\n{steps}\n"
            f"repeat it with\n"
            f"  python -m conformance {self._name} --variant {variant} --path {repeat or '-'}"
        )


def _detector(error: Exception) -> str:
    return error.detector if isinstance(error, Divergence) else "gates"
