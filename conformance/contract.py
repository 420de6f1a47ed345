"""The contract of a protocol: the type of ``PROTOCOL`` in the ``protocol.py`` of its folder.

All other modules use protocols only through this type. Each protocol is driven, walked, recorded, checked and
written on pages in the same way; where two differ, a value in the contract says how.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.engine.gates import Gate
from conformance.engine.graph import Graph, load
from conformance.engine.mutants import Mutant
from conformance.engine.replay import Adapter, Divergence, Replay
from conformance.engine.trace import Recorded, Verdict
from conformance.engine.walk import WalkAdapter, Walks
from conformance.recording import Checked
from conformance.report import Figures

__all__ = ["TODAY", "Expected", "Hunting", "Judge", "Protocol", "Recordings", "Say"]

TODAY = "[]"  # the mutant that changes nothing, as processes take it
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Hunting:
    """How many tours of the graphs a mutant must pass to count as survived.

    So many tours, None for all, of the graph that is likely to show it, and of each other one. ``first`` is
    the likely graph if a mutant names none, "" for the first graph.
    """

    likely: int | None
    others: int | None
    longest: int = 10_000
    patience_s: float = 2.0
    first: str = ""


@dataclass(frozen=True, slots=True)
class Recordings:
    """Recordings that were made in one way, and the check that they are behaviours of the model."""

    lines: Sequence[Sequence[Recorded]]
    check: Callable[[Sequence[Sequence[Recorded]]], Sequence[Verdict]]
    explain: Callable[[Sequence[Recorded], Verdict], str]
    told: str = ""  # a sentence about how they came about


@dataclass(frozen=True, slots=True)
class Judge:
    """The check by ``trace check`` of the lines that a service recorded of some protocols."""

    protocols: Collection[str]
    check: Callable[[Sequence[Recorded]], Checked]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The figures that tests expect of a protocol, so that no required check gets lost unnoticed."""

    driven: tuple[int, int, int, int]  # states, edges, refusals, refusals left out, of all graphs together
    few: tuple[int, int]  # so many tours of any graph take more steps than that
    temporal: Collection[str]  # stated in the module, and no predicate of one state
    outside: Collection[str]  # labels that are no step of the code
    shared: Collection[str] = ()  # those of another protocol
    twice: Collection[str] = ()  # actions that two places of the code take
    undefined: Collection[str] = ()  # labels that are no operator of the module by this name
    # How often walks take each step, at the least: about half of what they do. Others than these are rare.
    floors: Mapping[str, int]
    rare: Collection[str] | None = None  # None if there may be any
    steps: int  # of all walks
    shapes: int = 0  # transitions between shapes, the most frequent more than five times
    seen_by: Mapping[str, str] = field(default_factory=dict)  # mutant -> detector
    missed: Mapping[str, str] = field(default_factory=dict)  # action whose edge is taken away -> graph
    recorded: Collection[str] = ()  # actions that free runs record, at the least
    small: str = ""  # a graph in which everything of the seam happens, "" for the first
    silent: Mapping[str, str] = field(default_factory=dict)  # action that happens elsewhere -> graph


def _no_recordings(seed: int, walks: Walks) -> Iterable[Recordings]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """One protocol: its model, its code, and the checks that hold the two together.

    With ``threads``, participants are threads of the process that drives a graph. That process then has one
    system at a time, and mutants are installed in it. Otherwise participants are processes of their own,
    which get the mutant that is passed to ``shared``.
    """

    package: str  # the folder, as a package: __package__
    module: Path  # the model, without bounds
    code: str  # the folder of the product whose functions take its steps
    steps: Collection[str]  # the protocols whose steps are actions of the model
    graphs: Sequence[str]
    threads: bool
    shared: Callable[[str], AbstractContextManager[Any]]  # mutant -> what all systems of a run are made with
    adapt: Callable[[Any, str, float], Adapter]  # what is shared, graph, patience
    walk: Callable[[Any], WalkAdapter]  # what is shared
    walking: tuple[int, int]  # how many walks of how many steps
    mutants: Sequence[Mutant]
    hunting: Hunting
    expected: Expected
    shows_in: Mapping[str, str] = field(default_factory=dict)  # mutant -> the graph or oracle that sees it
    # Checks without a graph: mutant, number of cases, seed; what was asked, as a sentence.
    oracles: Mapping[str, Callable[[str, int, int], str]] = field(default_factory=dict)
    # Seed and walks -> what was recorded of the walks and of runs that nobody steers.
    recordings: Callable[[int, Walks], Iterable[Recordings]] = _no_recordings
    judge: Judge | None = None
    stress: Callable[[int, int, Say], object] | None = None  # seed, number of runs: for long nights

    @property
    def name(self) -> str:
        """The name of the folder, and of the product's protocol."""
        return self.package.rpartition(".")[2]

    def graph(self, name: str) -> Graph:
        """A committed graph of the model."""
        return load(self.module.with_name(f"{name}.graph.xz"))

    @contextmanager
    def adapter(self, graph: str, mutant: str = TODAY, patience_s: float = 10.0) -> Iterator[Adapter]:
        """What a graph is driven with."""
        with self.shared(mutant) as shared:
            yield self.adapt(shared, graph, patience_s)

    @contextmanager
    def walks(self, mutant: str) -> Iterator[WalkAdapter]:
        """What walks are made with."""
        with self.shared(mutant) as shared:
            yield self.walk(shared)

    @contextmanager
    def replay(self, graph: str, mutant: str = TODAY, *, patience_s: float = 10.0) -> Iterator[Replay]:
        """A committed graph, and fresh systems of the code to drive it through."""
        with self.adapter(graph, mutant, patience_s) as adapter:
            yield Replay(self.graph(graph), adapter, f"{self.name}/{graph}")

    def serve(self, gate: Gate) -> None:
        """In a process of its own: drive graphs when it is called."""

        def drive(graph: str, most_tours: int | None, longest: int, patience_s: float) -> Mapping[str, Any]:
            with self.replay(graph, patience_s=patience_s) as driven:
                try:
                    drive = driven.run(most_tours=most_tours, longest=longest)
                    return {"figures": Figures.of(drive).to_json()}
                except Divergence as difference:
                    return {"detector": difference.detector, "message": str(difference)[:20_000]}

        gate.serve({"drive": drive})
