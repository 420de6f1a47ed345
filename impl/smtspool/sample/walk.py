"""The queries of a run: for each of its branches, which input takes the other side there?

A run with the decisions ``c0, c1, … cn`` gives one query for each branch ``i``: its prefix is ``c0 …
c(i-1)``, its target the negation of ``ci``. All queries of a run share their prefixes. A ``sat`` answer is an
input that follows the run up to branch ``i`` and takes the other side there; :func:`flips` executes it to
check.
"""

from __future__ import annotations

import hashlib
import linecache
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, cast

from smtspool.sample import programs
from smtspool.sample.programs import Malformed, Octets, Program
from smtspool.sample.symbolic import Branch, Path, location

__all__ = ["CONTEXT", "Envelope", "Flip", "Walk", "execute", "explore", "flips"]

Envelope = dict[str, Any]

CONTEXT = hashlib.sha256(File(programs.__file__).read_bytes()).hexdigest()  # which text the sites belong to


def execute(program: Program, data: bytes, start: int = 0) -> Path:
    """Run ``program`` on ``data[start:]`` and return what it decided. Refusing the input is a normal end."""
    path = Path(program.width)
    with suppress(Malformed):
        program.parse(cast(Octets, path.octets(data, start)))
    return path


class Walk:
    """The queries of the runs of one program, each made once, over octets from ``start`` on."""

    def __init__(self, program: Program, start: int = 0) -> None:
        self.program = program
        self.start = start
        self._asked: set[tuple[tuple[int, bool | int], ...]] = set()
        self._seen: set[tuple[int, bool | int]] = set()

    def queries(self, data: bytes) -> Iterator[Envelope]:
        """One envelope per branch of the run on ``data``, shortest prefix first."""
        path = execute(self.program, data, self.start)
        trace = path.trace
        self._seen.update(trace)
        prefix: list[str] = []
        inputs: dict[int, None] = {}
        for number, branch in enumerate(path.branches):
            inputs.update(dict.fromkeys(sorted(branch.assertion.inputs)))
            if trace[: number + 1] not in self._asked:
                self._asked.add(trace[: number + 1])
                yield self._envelope(data, list(inputs), list(prefix), number, branch)
            prefix.append(str(branch.assertion))

    def _envelope(
        self, data: bytes, inputs: list[int], prefix: list[str], number: int, branch: Branch
    ) -> Envelope:
        return {
            "schema": "smtspool-query-v1",
            "logic": "QF_BV",
            "declarations": [f"(declare-const in_{offset} (_ BitVec 8))" for offset in inputs],
            "prefix": prefix,
            "target": str(branch.assertion.negated()),
            "witness": {
                "input_hex": data.hex(),
                "symbols": {f"in_{offset}": offset for offset in inputs},
            },
            "metadata": self._metadata(number, branch),
            "timeout_ms": 60_000,  # seconds of work for the hard ones, on a busy machine too
            "priority": 0.0 if (branch.site, not branch.outcome) in self._seen else 1.0,  # new code first
        }

    def _metadata(self, number: int, branch: Branch) -> dict[str, object]:
        """Where the question comes from; after a plain number, ``desired`` false asks for another one."""
        metadata: dict[str, object] = {
            "program": self.program.name,
            "start": self.start,
            "context": CONTEXT,
            "site": branch.site,
            "branch": number,
            "desired": not branch.outcome,
        }
        if branch.operand is not None:
            metadata |= {"bits": self.program.width, "operand": str(branch.operand)}
        return metadata


@dataclass(frozen=True, slots=True)
class Flip:
    """What a new input did at the branch it was made for."""

    program: str
    branch: int
    site: int
    before: bool | int
    after: bool | int | None  # None: the run ended, or was elsewhere, before it came to the branch
    diverged: int | None  # the first branch that went another way than the witness

    @property
    def flipped(self) -> bool:
        """The new run is the witness's run up to the branch, and goes the other way there."""
        return self.diverged == self.branch and self.after is not None

    @property
    def source(self) -> str:
        """The line of the parser that the branch is on."""
        line, _ = location(self.site)
        return linecache.getline(programs.__file__, line).strip()


def flips(program: Program, envelope: Envelope, new_input: bytes) -> Flip:
    """Execute ``program`` on the witness of ``envelope`` and on ``new_input``, and compare the two runs."""
    metadata = envelope["metadata"]
    branch, start = metadata["branch"], metadata["start"]
    old = execute(program, bytes.fromhex(envelope["witness"]["input_hex"]), start).trace
    new = execute(program, new_input, start).trace
    site, before = old[branch]
    after = new[branch][1] if branch < len(new) and new[branch][0] == site else None
    pairs = enumerate(zip(old, new, strict=False))
    diverged = next((at for at, (one, other) in pairs if one != other), None)
    return Flip(program.name, branch, site, before, after, diverged)


def explore(
    program: Program, seeds: Iterable[bytes], solve: Callable[[Envelope], bytes | None], runs: int
) -> Iterator[tuple[Envelope, bytes | None]]:
    """Generational search: each new input is a seed of the next generation, for at most ``runs`` runs.

    Yields every query with the input that ``solve`` gave for it; None means that there is no such input.
    """
    walk = Walk(program)
    queue = deque(seeds)
    known = set(queue)
    for _ in range(runs):
        if not queue:
            return
        for envelope in walk.queries(queue.popleft()):
            new_input = solve(envelope)
            yield envelope, new_input
            if new_input is not None and new_input not in known:
                known.add(new_input)
                queue.append(new_input)
