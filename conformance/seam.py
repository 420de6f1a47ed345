"""What attaches to the product's seam: gates around the steps of protocols, and a recorder of all steps; and
where the product takes which step."""

from __future__ import annotations

import ast
import re
import threading
from collections import defaultdict
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from conformance.engine.trace import Recorded
from smtspool.actions import Step

__all__ = ["Recorder", "Seam", "actions_of", "error_of"]

CODE = Path(__file__).parent.parent / "impl" / "smtspool"


class _Gates(Protocol):
    """Where a thread stands before a step, and tells of it afterwards: the engine's gate or stage."""

    def before(self, name: str, params: Mapping[str, Any]) -> None: ...

    def after(self, name: str, params: Mapping[str, Any], outcome: str | None, error: str | None) -> None: ...


def error_of(step: Step) -> str | None:
    """The type of the error that ended a step."""
    return None if step.error is None else type(step.error).__name__


def actions_of(code: str, protocol: str) -> Mapping[str, list[str]]:
    """Action -> the functions of a folder of the product that take it as a step of the protocol."""
    found: dict[str, list[str]] = {}
    for path in sorted((CODE / code).glob("*.py")):
        if not re.search(r"\baction\(", text := path.read_text()):
            continue
        if import_module(f"smtspool.{code}.{path.stem}").action.__self__.name != protocol:
            continue
        for owner in ast.parse(text).body:
            inside = owner.body if isinstance(owner, ast.ClassDef) else [owner]
            within = f"{path.stem}.{owner.name}" if isinstance(owner, ast.ClassDef) else path.stem
            for function in inside:
                if isinstance(function, ast.FunctionDef):
                    for name in re.findall(r"\baction\('(\w+)'", ast.unparse(function)):
                        found.setdefault(name, []).append(f"{within}.{function.name}")
    return found


class Seam:
    """The observer that puts a gate around every step of one protocol; steps of others pass."""

    def __init__(self, protocol: str, gates: _Gates) -> None:
        self._protocol = protocol
        self._gates = gates

    def before(self, step: Step) -> None:
        """A step begins."""
        if step.protocol.name == self._protocol:
            self._gates.before(step.name, step.params)

    def after(self, step: Step) -> None:
        """A step ends."""
        if step.protocol.name == self._protocol:
            self._gates.after(step.name, step.params, step.outcome, error_of(step))


class Recorder:
    """An observer that keeps every step in its exact order: a mutex is held from its begin to its end.
    A step within a step belongs to that."""

    def __init__(self) -> None:
        self.lines: list[Recorded] = []
        self._turn = threading.RLock()
        self._depth: dict[int, int] = defaultdict(int)

    def before(self, step: Step) -> None:
        """A step begins."""
        self._turn.acquire()
        self._depth[threading.get_ident()] += 1

    def after(self, step: Step) -> None:
        """A step ends."""
        me = threading.get_ident()
        self._depth[me] -= 1
        if self._depth[me] == 0:
            number = len(self.lines) + 1
            self.lines.append(
                Recorded(
                    number,
                    threading.current_thread().name,
                    number,
                    number,
                    step.name,
                    step.params,
                    step.outcome,
                    error_of(step),
                    begun=number,
                    protocol=step.protocol.name,
                )
            )
        self._turn.release()
