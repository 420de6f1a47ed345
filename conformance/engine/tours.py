"""Tours: few long paths from initial states that together take every edge of a graph.

Starting a real system costs far more than a step of it, so a tour goes on as long as it can: it takes an edge
not yet taken, else walks the shortest way to one, and ends only when none is reachable. The next tour starts
at the initial state again. Tours depend on nothing but the graph.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from .graph import Edge, Graph, GraphError

__all__ = ["cover", "shortest_path"]

Tour = tuple[Edge, ...]


def shortest_path(graph: Graph, sources: tuple[int, ...], wanted: Callable[[int], bool]) -> Tour | None:
    """The shortest path from one of ``sources`` to a wanted state; None when there is none."""
    came: dict[int, Edge | None] = dict.fromkeys(sources)
    queue = deque(sources)
    while queue:
        state = queue.popleft()
        if wanted(state):
            path: list[Edge] = []
            while (edge := came[state]) is not None:
                path.append(edge)
                state = edge.source
            return tuple(reversed(path))
        for edge in graph.outgoing[state]:
            if edge.target not in came:
                came[edge.target] = edge
                queue.append(edge.target)
    return None


def cover(graph: Graph, *, longest: int = 10_000) -> Iterator[tuple[int, Tour]]:
    """Tours as (initial state, edges) that take every edge at least once, none longer than ``longest`` by
    more than the way to one edge. Raises :class:`GraphError` when an edge cannot be reached."""
    fresh = [list(reversed(edges)) for edges in graph.outgoing]
    left = len(graph.edges)
    while left:
        tour: list[Edge] = []
        way = shortest_path(graph, graph.initial, lambda state: bool(fresh[state]))
        if way is None:
            raise GraphError(f"{left} edges cannot be reached from an initial state")
        start = way[0].source if way else next(state for state in graph.initial if fresh[state])
        here = start
        while way is not None and len(tour) < longest:
            tour += way
            here = way[-1].target if way else here
            while fresh[here] and len(tour) < longest:
                edge = _choose(fresh, here)
                tour.append(edge)
                left -= 1
                here = edge.target
            way = shortest_path(graph, (here,), lambda state: bool(fresh[state]))
        yield start, tuple(tour)


def _choose(fresh: list[list[Edge]], here: int) -> Edge:
    """A fresh edge out of ``here``: a self-loop first, then one that leads where fresh edges are left."""
    edges = fresh[here]
    best = max(
        range(len(edges)),
        key=lambda index: (edges[index].target == here, len(fresh[edges[index].target]), index),
    )
    return edges.pop(best)
