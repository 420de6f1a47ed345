"""How this folder is built: no circle, few layers, and a protocol that knows nothing of another one."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path

from conformance.protocols import PROTOCOLS

HERE = Path(__file__).parent
LAYERS = 9  # outside of the engine
# A race is made of solvers, so its adapter has what stands around a solver from there.
NEIGHBOURS = {("race", "cancellation")}


def imports() -> Mapping[str, set[str]]:
    """Module -> those of this folder that it imports, also for its types only; without the engine's."""
    parts = {path: path.relative_to(HERE.parent).with_suffix("").parts for path in HERE.rglob("*.py")}
    ours = {
        ".".join(parts[path]): path
        for path in parts
        if not path.name.startswith(("test_", "__init__")) and "engine" not in path.parts
    }
    found: dict[str, set[str]] = {}
    for name, path in ours.items():
        found[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert node.level == 0, f"{name}: a relative import"
                inside = {f"{node.module}.{alias.name}" for alias in node.names}
                found[name] |= {node.module, *inside} & set(ours)
    return found


def test_the_import_graph_has_no_circle_and_few_layers() -> None:
    graph, layer = imports(), dict[str, int]()
    for name in TopologicalSorter(graph).static_order():
        layer[name] = 1 + max((layer[below] for below in graph[name]), default=0)
    assert max(layer.values()) <= LAYERS


def test_a_protocol_knows_nothing_of_another_one() -> None:
    rooms = {protocol.name for protocol in PROTOCOLS}
    for name, targets in imports().items():
        room = name.split(".")[1]
        for target in targets:
            other = target.split(".")[1]
            if room in rooms and other in rooms and room != other:
                assert (room, other) in NEIGHBOURS, f"{name} imports {target}"


def test_all_else_knows_protocols_by_their_contract() -> None:
    rooms = {protocol.name for protocol in PROTOCOLS}
    for name, targets in imports().items():
        if name.split(".")[1] not in rooms:
            inside = {target for target in targets if target.split(".")[1] in rooms}
            assert all(target.endswith(".protocol") for target in inside), f"{name} imports {inside}"
