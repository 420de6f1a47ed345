"""The complete labelled state graph of a bounded model, canonical and storable.

TLC 2.15 labels the edges of its dump with action names only, writes a ``strict digraph`` and numbers states
by fingerprint. The bounded module therefore keeps a history variable ``act``, a record of the name and the
parameters of the step just taken, and the graph is read like this:

* a *state* is a dumped state without ``act`` (and without other test aids);
* a dumped edge ``(s, a) -> (t, b)`` is the edge ``s --b--> t``: its label is the ``act`` of its target.

Nothing is lost by this. Two parallel edges with different labels end in dumped states that differ in ``act``,
so they stay two lines. A step that changes nothing (a second ``Busy`` in a row) first leads to a dumped state
that differs in ``act`` only and there becomes a self-loop, which TLC does dump; both project to the same
self-loop. What must hold in return is that ``act`` never influences behaviour: all dumped states with the
same values have the same outgoing edges. :func:`from_dot` checks it, and refuses a step without a label.
"""

from __future__ import annotations

import lzma
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .values import Function, Value, parse, parse_state, show, show_state

__all__ = ["Edge", "Graph", "GraphError", "from_dot", "load", "save"]

FORMAT = "labelled-state-graph 1"


class GraphError(ValueError):
    """The text is no complete graph; the message says where."""


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """``source`` and ``target`` index :attr:`Graph.states`; ``label`` is the canonical text of ``act``."""

    source: int
    label: str
    target: int


@dataclass(frozen=True)
class Graph:
    """States as canonical texts in alphabetical order, edges in order: equal graphs are equal values."""

    states: tuple[str, ...]
    initial: tuple[int, ...]
    edges: tuple[Edge, ...]

    @cached_property
    def outgoing(self) -> tuple[tuple[Edge, ...], ...]:
        """Edges by source."""
        found: list[list[Edge]] = [[] for _ in self.states]
        for edge in self.edges:
            found[edge.source].append(edge)
        return tuple(tuple(edges) for edges in found)

    @cached_property
    def values(self) -> tuple[Mapping[str, Value], ...]:
        """States as values."""
        return tuple(parse_state(text) for text in self.states)

    @cached_property
    def labels(self) -> Mapping[str, Function]:
        """Every label as the record it prints."""
        return {text: _label(text) for text in sorted({edge.label for edge in self.edges})}

    @property
    def variables(self) -> frozenset[str]:
        """The names of the variables of every state."""
        return frozenset(self.values[0])

    def count(self, name: str) -> int:
        """How many edges are steps of the action ``name``."""
        return sum(self.labels[edge.label]["name"] == name for edge in self.edges)


def _label(text: str) -> Function:
    value = parse(text)
    if not isinstance(value, Function) or not isinstance(value.get("name"), str):
        raise GraphError(f"a label must be a record with a name: {text}")
    return value


_NODE = re.compile(r'^(-?\d+) \[label="((?:[^"\\]|\\.)*)"(,style = filled)?\];?$')
_ARROW = re.compile(r"^(-?\d+) -> (-?\d+) \[label=")


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda hit: "\n" if hit[1] == "n" else hit[1], text)


def from_dot(text: str, *, act: str = "act", aids: Iterable[str] = ()) -> Graph:
    """The graph in a dump of ``-dump dot,actionlabels``; ``aids`` are further variables to leave out."""
    hidden = {act, *aids}
    node_state: dict[str, str] = {}
    node_label: dict[str, str] = {}
    initial: set[str] = set()
    arrows: set[tuple[str, str]] = set()
    for line in text.splitlines():
        if arrow := _ARROW.match(line):
            arrows.add((arrow[1], arrow[2]))
        elif node := _NODE.match(line):
            state = parse_state(_unescape(node[2]))
            if act not in state:
                raise GraphError(f"a dumped state has no variable {act}")
            node_label[node[1]] = show(state[act])
            kept = {name: value for name, value in state.items() if name not in hidden}
            node_state[node[1]] = show_state(kept)
            if node[3]:
                initial.add(node[1])
    if not initial:
        raise GraphError("the dump has no initial state")
    states = tuple(sorted(set(node_state.values())))
    number = {state: index for index, state in enumerate(states)}
    outgoing: dict[str, set[Edge]] = defaultdict(set)
    for source, target in arrows:
        if source not in node_state or target not in node_state:
            raise GraphError(f"the dump is cut: edge {source} -> {target} has no state")
        outgoing[source].add(Edge(number[node_state[source]], node_label[target], number[node_state[target]]))
    _check_history(node_state, outgoing)
    edges = tuple(sorted({edge for found in outgoing.values() for edge in found}))
    graph = Graph(states, tuple(sorted({number[node_state[node]] for node in initial})), edges)
    _ = graph.labels
    return graph


def _check_history(node_state: Mapping[str, str], outgoing: Mapping[str, set[Edge]]) -> None:
    """All dumped states that differ in test aids only must have the same outgoing edges."""
    first: dict[str, str] = {}
    for node, state in node_state.items():
        twin = first.setdefault(state, node)
        if outgoing.get(node, set()) != outgoing.get(twin, set()):
            raise GraphError(f"the test aids influence behaviour in the state {state}")


def to_text(graph: Graph) -> str:
    """The canonical text: equal graphs, equal bytes."""
    labels = sorted({edge.label for edge in graph.edges})
    number = {label: index for index, label in enumerate(labels)}
    lines = [FORMAT, f"states {len(graph.states)}", *graph.states]
    lines += [f"labels {len(labels)}", *labels]
    lines += [f"initial {len(graph.initial)}", *(str(index) for index in graph.initial)]
    lines += [f"edges {len(graph.edges)}"]
    lines += [f"{edge.source} {number[edge.label]} {edge.target}" for edge in graph.edges]
    return "\n".join([*lines, "end", ""])


def from_text(text: str) -> Graph:
    """Read :func:`to_text`. Raises :class:`GraphError` when a line is missing, added or out of order."""
    lines = text.split("\n")
    if lines[0] != FORMAT:
        raise GraphError(f"this corpus is not {FORMAT!r} but {lines[0][:40]!r}; regenerate it")
    position = 1

    def section(name: str) -> list[str]:
        nonlocal position
        head = lines[position].split(" ") if position < len(lines) else []
        if len(head) != 2 or head[0] != name or not head[1].isdigit():
            raise GraphError(f"line {position + 1}: expected the section {name}")
        body = lines[position + 1 : position + 1 + int(head[1])]
        position += 1 + int(head[1])
        return body

    states, labels = tuple(section("states")), section("labels")
    initial = tuple(int(line) for line in section("initial"))
    edges = []
    for line in section("edges"):
        source, label, target = (int(part) for part in line.split(" "))
        edges.append(Edge(source, labels[label], target))
    if lines[position:] != ["end", ""]:
        raise GraphError(f"line {position + 1}: expected the end")
    graph = Graph(states, initial, tuple(edges))
    if to_text(graph) != text or list(states) != sorted(states) or edges != sorted(edges):
        raise GraphError("the corpus is not in canonical form")
    return graph


def save(graph: Graph, path: Path) -> None:
    """Write the corpus, compressed."""
    path.write_bytes(lzma.compress(to_text(graph).encode(), preset=9))


def load(path: Path) -> Graph:
    """Read a corpus written by :func:`save`."""
    try:
        return from_text(lzma.decompress(path.read_bytes()).decode())
    except (lzma.LZMAError, UnicodeDecodeError, ValueError, IndexError) as error:
        if isinstance(error, GraphError):
            raise
        raise GraphError(f"{path.name} is damaged: {error}") from error
