"""The kill matrix: every small fault, generated or named, in a model and in its code, and its first detector.

``make mutants`` measures all of it and compares with what is pinned in ``conformance/mutants``; after a
change of a model or of a modelled function, ``python -m conformance mutants --write`` measures what is new.
A survivor needs a reviewed reason, in the ``.toml`` beside the pinned results. Both carry the digest of the
changed text and the change, so a reason is valid only for the text that it was written about.

A protocol takes part by one row of :data:`SUBJECTS`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from conformance.cancellation.protocol import PROTOCOL as CANCELLATION
from conformance.contract import Hunting, Protocol, Say
from conformance.driving import WORKERS, hunt
from conformance.engine.code_mutants import code_mutants
from conformance.engine.gates import GateError
from conformance.engine.judge import judge, judge_fairness
from conformance.engine.manifest import load_manifest
from conformance.engine.model_mutants import ModelMutant, Module, model_mutants
from conformance.engine.module import identifiers
from conformance.engine.mutants import Mutant
from conformance.spool_admission.protocol import PROTOCOL as SPOOL_ADMISSION

__all__ = [
    "SUBJECTS",
    "SURVIVED",
    "Row",
    "Subject",
    "generated",
    "idle",
    "measure",
    "pinned",
    "reasons",
    "write",
]

ROOT = Path(__file__).parent.parent
PINNED = Path(__file__).parent / "mutants"
SURVIVED = "survived"
# Safety runs with more states than this take too long for what they show.
_MOST_STATES = 4000
_TESTS_S = 900.0


@dataclass(frozen=True, slots=True)
class Subject:
    """The models and modules of one protocol that are mutated, and the checks that must detect it."""

    protocol: Protocol
    code: tuple[str, ...]  # the modules whose functions take the steps
    hunting: Hunting  # how far the graphs are driven through a mutant
    tests: tuple[str, ...]  # tried when no graph shows a mutant: traces, then unit tests
    view: str = "Unlabelled"

    @property
    def name(self) -> str:
        """The name of the protocol."""
        return self.protocol.name

    @property
    def named(self) -> Sequence[Mutant]:
        """The protocol's own mutants."""
        return self.protocol.mutants

    @property
    def module(self) -> Path:
        """The module that is changed."""
        return self.protocol.module

    @property
    def bounded(self) -> Path:
        """The module with bounds, which extends it."""
        return self.module.with_name(f"MC{self.module.name}")


SUBJECTS = (
    Subject(
        SPOOL_ADMISSION,
        ("smtspool.spool.admission", "smtspool.spool.spool"),
        replace(SPOOL_ADMISSION.hunting, likely=16),
        (
            "conformance/spool_admission/test_spool_trace.py::test_a_recording_is_explained_whole",
            "conformance/spool_admission/test_spool_trace.py::test_what_may_happen_to_a_service_is_explained",
            "conformance/spool_admission/test_spool_trace.py::test_a_pass_that_fails_between_two_steps_is_explained",
            "tests/spool/test_spool_scan.py",
            "tests/spool/test_quarantine.py",
            "tests/spool/test_spool_infrastructure.py",
            "tests/spool/test_spool_crashes.py",
        ),
    ),
    Subject(
        CANCELLATION,
        ("smtspool.solve.persistent",),
        replace(CANCELLATION.hunting, likely=600, others=600, first="GraphFaults"),
        (
            "tests/solve/test_persistent.py",
            "tests/solve/test_solver_view.py",
            "tests/solve/test_cancellation_history.py",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One mutant and its detector; "" while that is not known."""

    side: str  # "model", "code" or "named"
    name: str
    operator: str
    change: str
    digest: str
    detector: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of a pinned result."""
        return self.side, self.name, self.digest


def generated(subject: Subject) -> list[Row]:
    """All mutants of today's sources, without detectors."""
    rows = [
        Row("model", m.name, m.operator, m.change, m.digest) for m in model_mutants(Module(subject.module))
    ]
    for module in subject.code:
        rows += [
            Row("code", m.mutant.name, m.operator, m.mutant.fault, m.digest) for m in code_mutants(module)
        ]
    for mutant in subject.named:
        digest = sha256(mutant.to_json().encode()).hexdigest()[:16]
        rows.append(Row("named", mutant.name, "named", mutant.fault, digest))
    return rows


# --- measuring -----------------------------------------------------------------------------------------


def measure(subject: Subject, rows: Sequence[Row], say: Say) -> Iterator[Row]:
    """``rows`` with their detectors."""
    model = {m.name: m for m in model_mutants(Module(subject.module))}
    code = {m.mutant.name: m.mutant for module in subject.code for m in code_mutants(module)}
    named = {mutant.name: mutant for mutant in subject.named}
    wanted = [model[row.name] for row in rows if row.side == "model"]
    verdicts = _judged(subject, wanted, say) if wanted else {}
    for row in rows:
        if row.side == "model":
            yield replace(row, detector=verdicts.get(row.name, SURVIVED))
        else:
            started = time.monotonic()
            mutant = (code if row.side == "code" else named)[row.name]
            detector = _hunted(subject, mutant) or SURVIVED
            say(f"{row.name}: {detector} ({time.monotonic() - started:.1f} s): {row.change}")
            yield replace(row, detector=detector)


def _judged(subject: Subject, mutants: Sequence[ModelMutant], say: Say) -> Mapping[str, str]:
    folder = subject.bounded.parent
    runs = [r for r in load_manifest(folder / "manifest.toml") if r.module == subject.bounded.name]
    small = [r for r in runs if r.kind == "graph" or (r.kind == "safety" and r.distinct <= _MOST_STATES)]
    small.sort(key=lambda run: (run.kind, -run.edges, run.distinct))
    cfgs = [(folder / run.cfg, 2 * run.depth) for run in small]
    verdicts = dict(judge(subject.bounded, mutants, cfgs, view=subject.view, say=say))
    live = sorted((r for r in runs if r.kind == "liveness"), key=lambda run: run.distinct)
    for mutant in mutants:
        if mutant.operator == "drop fairness":
            found = judge_fairness(subject.bounded, mutant, [folder / run.cfg for run in live])
            say(f"{mutant.name}: {found or SURVIVED}: {mutant.change}")
            if found:
                verdicts[mutant.name] = found
    return verdicts


def _hunted(subject: Subject, mutant: Mutant) -> str | None:
    """The first detector of a mutant of the code: the graphs, else the unit tests."""
    mutant.check()
    try:
        kill = hunt(subject.protocol, mutant, hunting=subject.hunting, workers=WORKERS)
        if kill.detector is not None:
            return kill.detector
    except GateError:
        return "gates"
    except Exception as error:  # noqa: BLE001  the boundary: a real state that has no projection is seen
        return f"projection ({type(error).__name__})"
    return None if mutant.control else _tested(subject, mutant)


def _tested(subject: Subject, mutant: Mutant) -> str | None:
    """The unit test that fails first with the mutant in place."""
    command = [sys.executable, "-W", "error", "-m", "conformance.engine.mutants", mutant.to_json()]
    command += ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *subject.tests]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=_TESTS_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "tests hang"
    if process.returncode == 0:
        return None
    # A file that cannot be imported has no test that fails: nothing is known then.
    failed = re.search(r"^(?:FAILED|ERROR) (?:.*/)?([\w.]+\.py(?:::\w+)+)", output, re.MULTILINE)
    if failed is None:
        raise RuntimeError(f"the tests of {subject.name} did not run:\n{output[-3000:]}")
    return f"{'trace' if '_trace.py' in failed[1] else 'test'} {failed[1]}"


# --- pinned --------------------------------------------------------------------------------------------


def pinned(subject: Subject) -> Mapping[tuple[str, str, str], str]:
    """(side, name, digest) -> detector, as the last full run found it."""
    path = PINNED / f"{subject.name}.tsv"
    found: dict[tuple[str, str, str], str] = {}
    for line in path.read_text().splitlines() if path.is_file() else ():
        if not line.startswith("#"):
            side, name, digest, detector = line.split("\t")
            found[side, name, digest] = detector
    return found


def seconds(subject: Subject) -> int:
    """How long all of it took when it was measured in one run; 0 if it never was."""
    path = PINNED / f"{subject.name}.tsv"
    return int(re.findall(r"\d+", path.read_text())[0]) if path.is_file() else 0


def write(subject: Subject, rows: Sequence[Row], took_s: float) -> None:
    """Pin what was measured."""
    lines = [f"# measured in {took_s:.0f} s by `python -m conformance mutants`: side, name, digest, detector"]
    lines += ["\t".join((*row.key, row.detector)) for row in rows]
    PINNED.mkdir(exist_ok=True)
    (PINNED / f"{subject.name}.tsv").write_text("\n".join([*lines, ""]))


def update(subject: Subject, say: Say, *, everything: bool) -> None:
    """Measure what is not pinned, or all, and pin it; of a changed module all mutants are measured."""
    rows = generated(subject)
    known = {} if everything else dict(pinned(subject))
    if any(row.side == "model" and row.key not in known for row in rows):
        known = {key: detector for key, detector in known.items() if key[0] != "model"}
    left = [row for row in rows if row.key not in known]
    started = time.monotonic()
    before = 0.0 if everything else seconds(subject)  # of the last time that all of it was measured
    for row in measure(subject, left, say):
        known[row.key] = row.detector
        done = [replace(row, detector=known[row.key]) for row in rows if row.key in known]
        write(subject, done, time.monotonic() - started if everything else before)
    if not left:
        write(subject, [replace(row, detector=known[row.key]) for row in rows], before)


def faults(subject: Subject, measured: Sequence[Row]) -> Iterator[str]:
    """The faults of the matrix: results that differ from the pinned ones, survivors without a reason."""
    results = pinned(subject)
    known = {reason.key for reason in reasons(subject)}
    controls = {mutant.name for mutant in subject.named if mutant.control}
    for row in measured:
        told = f"{subject.name}, {row.side}: {row.name} ({row.change})"
        survived = row.detector == SURVIVED
        if row.key not in results:
            yield f"{told}: is new; run: python -m conformance mutants --write"
        elif survived != (results[row.key] == SURVIVED) or (
            row.side == "model" and row.detector != results[row.key]
        ):
            yield f"{told}: {row.detector}, pinned is {results[row.key]}"
        if row.side == "named" and row.name in controls:
            if not survived:
                yield f"{told}: is seen, though it changes nothing"
        elif survived and row.key not in known:
            yield f"{told}: survived, and no reviewed reason says why it may"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a survivor is no gap, as reviewed; about one text only."""

    side: str
    name: str
    digest: str
    reason: str

    @property
    def key(self) -> tuple[str, str, str]:
        """The mutant it speaks of."""
        return self.side, self.name, self.digest


def reasons(subject: Subject) -> Sequence[Reason]:
    """The reviewed survivors of a subject."""
    path = PINNED / f"{subject.name}.toml"
    if not path.is_file():
        return ()
    with path.open("rb") as source:
        return [Reason(**entry) for entry in tomllib.load(source).get("survivor", [])]


def idle(subject: Subject) -> dict[str, str]:
    """Identifier -> invariant or property that is the first to see no mutant, generated or named."""
    runs = load_manifest(subject.bounded.with_name("manifest.toml"))
    killers = {run.violated for run in runs if run.kind in ("legacy", "unfair")}
    for detector in pinned(subject).values():
        kind, _, name = detector.partition(" ")
        if kind in ("invariant", "property"):
            killers.add(name)
    stated = {**identifiers(subject.module), **identifiers(subject.bounded)}
    return {key: name for key, (name, _) in stated.items() if name not in killers}
