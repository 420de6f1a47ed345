"""What the profile tests share: documents, strategies for them, and a file layer that refuses."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from smtspool.files import Directory
from smtspool.profile import Domain, ProfileGeneration, parse_runtime

CONTEXT = "a" * 64
OTHER = "b" * 64
STATE, RUNTIME = "state.json", "current.runtime"
UINT64 = 2**64 - 1
Document = dict[str, Any]


def document(
    *profiles: list[Any], feedback: Iterable[list[Any]] = (), context: str = CONTEXT, **counters: int
) -> Document:
    """A telemetry document as a producer writes it."""
    return {
        "schema": 3,
        "empirical_value_profile_context": context,
        "empirical_value_profiles": list(profiles),
        "empirical_domain_feedback": list(feedback),
        **counters,
    }


def saw(*values: int, times: int = 8, site: int = 7, bits: int = 32, saturated: int = 0) -> list[Any]:
    """A profile row: each value was seen so many times, and one more that is lost if saturated."""
    return [site, bits, len(values) * times + saturated, saturated, [[value, times] for value in values]]


def probed(
    *values: int, queries: int = 1, validated: int = 0, cost_us: int = 0, site: int = 7, bits: int = 32
) -> list[Any]:
    """A feedback row: so many probes of exactly this domain; what was not validated was unsat."""
    unsat = queries - validated
    return [site, bits, list(values), queries, 0, queries, validated, validated, 0, unsat, 0, cost_us]


# Profiles of one run that come to an artifact of more than 16 MiB.
UNWRITABLE = [
    [UINT64 - site, 64, 64 * 10**17, 0, [[UINT64 - value, 10**17] for value in range(64)]]
    for site in range(4096)
]


def domains(generation: ProfileGeneration | None) -> dict[int, tuple[int, ...]]:
    """Site to values."""
    assert generation is not None
    return {one.key.site: one.values for one in parse_runtime(generation.content).domains}


def served(generation: ProfileGeneration | None) -> tuple[Domain, ...]:
    """What a prober would get; nothing is nothing, however it is said."""
    return () if generation is None else parse_runtime(generation.content).domains


class Failing(Directory):
    """A directory on a disk that refuses to write some files: ``before`` their rename, or ``after`` it.

    ``artifact`` stands for every artifact. The error is ENOSPC.
    """

    __slots__ = ("after", "before", "written")

    def __init__(self, fd: int, path: str) -> None:
        super().__init__(fd, path)
        self.before: set[str] = set()
        self.after: set[str] = set()
        self.written: list[str] = []

    def child(self, name: str, *, create: bool = False) -> Directory:
        plain = super().child(name, create=create)
        child = Failing(os.dup(plain.fd), plain.path)
        plain.close()
        child.before, child.after, child.written = self.before, self.after, self.written
        return child

    def replace(self, name: str, to: Directory, new_name: str) -> None:
        if kind(new_name) in self.before:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), new_name)
        super().replace(name, to, new_name)
        self.written.append(kind(new_name))

    def sync(self) -> None:
        if self.written and self.written[-1] in self.after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        super().sync()


def kind(name: str) -> str:
    """The file that a name in the folder stands for."""
    return "artifact" if len(name) == 69 else name


def rewrite(folder: Path, **members: Any) -> None:
    """Change members of the checkpoint behind the coordinator's back; None removes one."""
    path = folder / STATE
    state = {**json.loads(path.read_text()), **members}
    path.write_text(json.dumps({name: value for name, value in state.items() if value is not None}))


# -- strategies -------------------------------------------------------------------------------------------

sites = st.integers(1, 4)
small = st.integers(0, 5)


@st.composite
def profile_rows(draw: st.DrawFn) -> list[Any]:
    """Sound rows of few sites and values, so that they meet."""
    counts = draw(st.dictionaries(small, st.integers(1, 9), min_size=1, max_size=5))
    lost = draw(st.integers(0, 1))
    return [draw(sites), 8, sum(counts.values()) + lost, lost, [[v, n] for v, n in counts.items()]]


@st.composite
def feedback_rows(draw: st.DrawFn) -> list[Any]:
    values = draw(st.lists(small, min_size=1, max_size=3, unique=True))
    rejects, validated, failures, unsat, unknown = (draw(st.integers(0, 3)) for _ in range(5))
    queries = validated + failures + unsat + unknown
    attempts = rejects + queries
    cost = draw(st.integers(0, 4000))
    row = [draw(sites), 8, values, attempts, rejects, queries, validated + failures, validated, failures]
    return [*row, unsat, unknown, cost] if attempts else probed(*values, bits=8, cost_us=cost)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    rows = draw(st.lists(profile_rows(), min_size=1, max_size=4))
    reports = draw(st.lists(feedback_rows(), max_size=3))
    return document(*rows, feedback=reports, context=draw(st.sampled_from([CONTEXT, OTHER])))


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**65) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=20,
)
