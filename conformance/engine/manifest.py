"""The list of all runs of a model, with the result that each must have.

``manifest.toml`` in a model's folder pins for every cfg the outcome, the property that fails, the numbers
of generated and distinct states, the depth, and a digest of the modules and the cfg. A run that differs in
any of these fails, and so does a cfg that is not listed, because otherwise a model that became smaller by
mistake would pass. A run of the kind ``graph`` also pins the committed corpus of its labelled graph, which
must be the result again. A safety run also names one bound to raise; ``check_raised`` repeats the run with
that, which takes hours.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path

from .graph import Graph, from_dot, load, save, to_text
from .tlc import Outcome, Result, Tlc, TlcError

__all__ = [
    "ManifestError",
    "Run",
    "Verdict",
    "check_all",
    "check_raised",
    "corpus_of",
    "digest",
    "load_manifest",
    "pin",
]

KINDS = ("graph", "safety", "liveness", "legacy", "non-property", "unfair", "witness")
MUST_FAIL = frozenset({"legacy", "non-property", "unfair", "witness"})


class ManifestError(ValueError):
    """The manifest itself is wrong: a cfg is missing, listed twice, or has no expectation."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run and what it must give. Paths are relative to the folder of the manifest."""

    cfg: str
    module: str
    kind: str
    outcome: str
    violated: str = ""
    generated: int = 0
    distinct: int = 0
    depth: int = 0
    sha256: str = ""
    budget_s: float = 60.0
    aids: tuple[str, ...] = ()
    states: int = 0
    edges: int = 0
    raised: str = ""  # a line of the cfg with one bound raised, in place of the line of that constant


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run gave, and every difference from what it must give."""

    run: Run
    result: Result | None
    differences: tuple[str, ...]


def digest(folder: Path, run: Run) -> str:
    """Over the cfg and every module of the folder that the module extends, directly or not."""
    sum_ = hashlib.sha256()
    pending, seen = [Path(run.module).stem], set[str]()
    home = (folder / run.module).parent
    while pending:
        path = home / f"{pending.pop()}.tla"
        if path.name in seen or not path.is_file():
            continue
        seen.add(path.name)
        text = path.read_text()
        sum_.update(f"{path.name}\0{text}\0".encode())
        for names in re.findall(r"^EXTENDS ([\w, ]+)", text, re.MULTILINE):
            pending += sorted(names.replace(",", " ").split())
    sum_.update((folder / run.cfg).read_bytes())
    return sum_.hexdigest()


def load_manifest(path: Path) -> list[Run]:
    """The runs, checked against the folder. Raises :class:`ManifestError`."""
    with path.open("rb") as source:
        entries = tomllib.load(source).get("run", [])
    runs = [Run(**{**entry, "aids": tuple(entry.get("aids", ()))}) for entry in entries]
    listed = [run.cfg for run in runs]
    present = {str(cfg.relative_to(path.parent)) for cfg in path.parent.rglob("*.cfg")}
    if wrong := sorted(present - set(listed)):
        raise ManifestError(f"not in {path.name}: {', '.join(wrong)}")
    if wrong := sorted(set(listed) - present):
        raise ManifestError(f"in {path.name} without a cfg: {', '.join(wrong)}")
    if len(set(listed)) != len(listed):
        raise ManifestError(f"a cfg is listed twice in {path.name}")
    for run in runs:
        if run.kind not in KINDS:
            raise ManifestError(f"{run.cfg}: unknown kind {run.kind!r}")
        if run.kind in MUST_FAIL and (run.outcome == Outcome.OK or not run.violated):
            raise ManifestError(f"{run.cfg}: a {run.kind} run must name the property that fails")
    if not runs:
        raise ManifestError(f"{path.name} lists no run")
    return runs


def corpus_of(folder: Path, run: Run) -> Path:
    """Where the committed graph of a run of the kind ``graph`` is."""
    return (folder / run.cfg).with_suffix(".graph.xz")


def _property_of(folder: Path, run: Run) -> str:
    """TLC 2.15 does not say which temporal property failed, so such a cfg must list exactly one."""
    text = (folder / run.cfg).read_text()
    found = re.search(r"^PROPERT(?:Y|IES)\s+(.*)\Z", text, re.MULTILINE | re.DOTALL)
    names: list[str] = found[1].split() if found else []
    if len(names) != 1:
        raise TlcError(f"{run.cfg} lists {len(names)} temporal properties; a liveness failure must name one")
    return names[0]


def _measure(tlc: Tlc, folder: Path, run: Run) -> tuple[Run, Result, Graph | None]:
    """``run`` with what it gives now in place of what is pinned."""
    with tempfile.TemporaryDirectory(prefix="graph-") as scratch:
        dump = Path(scratch) / "dump.dot" if run.kind == "graph" else None
        result = tlc.run(folder / run.module, folder / run.cfg, timeout_s=run.budget_s * 5, dump=dump)
        graph = from_dot(dump.read_text(), aids=run.aids) if dump else None
    violated = result.violated or (_property_of(folder, run) if result.outcome is Outcome.LIVENESS else "")
    found = replace(
        run,
        outcome=str(result.outcome),
        violated=violated,
        generated=result.generated,
        distinct=result.distinct,
        depth=result.depth,
        sha256=digest(folder, run),
        states=len(graph.states) if graph else 0,
        edges=len(graph.edges) if graph else 0,
    )
    return found, result, graph


def _check(tlc: Tlc, folder: Path, run: Run) -> Verdict:
    try:
        found, result, graph = _measure(tlc, folder, run)
    except TlcError as error:
        return Verdict(run, None, (str(error),))
    differences = [
        f"{item.name}: pinned {getattr(run, item.name)!r}, found {getattr(found, item.name)!r}"
        for item in fields(Run)
        if getattr(run, item.name) != getattr(found, item.name)
    ]
    if graph is not None:
        corpus = corpus_of(folder, run)
        if not corpus.is_file():
            differences.append(f"{corpus.name} is missing")
        elif to_text(load(corpus)) != to_text(graph):
            differences.append(f"{corpus.name} is not the graph that TLC finds")
    return Verdict(run, result, tuple(differences))


def check_all(
    *manifests: Path,
    tlc: Tlc | None = None,
    parallel: int = 2,
    repeats: Callable[[Run], bool] = lambda run: True,
) -> Iterator[Verdict]:
    """The verdicts of all runs, in the order of the manifests, as they become known.

    Of a run that ``repeats`` leaves out only the text is compared: the pinned result is about that text.
    """
    runs = [(manifest.parent, run) for manifest in manifests for run in load_manifest(manifest)]
    runner = tlc or Tlc()

    def check(folder: Path, run: Run) -> Verdict:
        if repeats(run):
            return _check(runner, folder, run)
        same = run.sha256 == digest(folder, run)
        return Verdict(run, None, () if same else ("sha256: the text is not the one that was pinned",))

    with ThreadPoolExecutor(parallel) as pool:
        yield from pool.map(lambda run: check(*run), runs)


def raised(folder: Path, run: Run) -> str:
    """The text of the cfg with its bound raised. Raises :class:`ManifestError` unless that changes one
    line."""
    lines = (folder / run.cfg).read_text().splitlines()
    constant = run.raised.split(" ")[0]
    found = [index for index, line in enumerate(lines) if line.split()[:1] == [constant]]
    if not constant or len(found) != 1 or lines[found[0]].strip() == run.raised:
        raise ManifestError(f"{run.cfg}: raised = {run.raised!r} raises no bound")
    lines[found[0]] = f"    {run.raised}"
    return "\n".join([*lines, ""])


def check_raised(*manifests: Path, timeout_s: float = 3600.0, parallel: int = 2) -> Iterator[Verdict]:
    """Every safety run with one bound raised: it must hold, in more states than are pinned."""
    runs = [(manifest.parent, run) for manifest in manifests for run in load_manifest(manifest)]
    runner = Tlc()

    def check(folder: Path, run: Run) -> Verdict:
        try:
            text = raised(folder, run)
            with tempfile.TemporaryDirectory(prefix="raised-") as scratch:
                cfg = Path(scratch) / "Raised.cfg"
                cfg.write_text(text)
                result = runner.run(folder / run.module, cfg, timeout_s=timeout_s)
        except (ManifestError, TlcError) as error:
            return Verdict(run, None, (str(error),))
        wrong = [] if result.outcome is Outcome.OK else [f"{result.outcome} {result.violated}"]
        wrong += [] if result.distinct > run.distinct else [f"only {result.distinct} states"]
        return Verdict(replace(run, distinct=result.distinct), result, tuple(wrong))

    with ThreadPoolExecutor(parallel) as pool:
        yield from pool.map(lambda run: check(*run), [run for run in runs if run[1].kind == "safety"])


def pin(manifest: Path, *, parallel: int = 2) -> None:
    """Write the manifest anew with today's results, and the corpora beside it; for reviewed changes.

    A run whose modules and cfg are the pinned ones is not repeated: ``check_all`` is there for that.
    """
    lines = ["# The runs of this model and their results, written by `python -m conformance models --pin`."]
    runner = Tlc()

    def measure(run: Run) -> tuple[Run, Graph | None]:
        if run.sha256 == digest(manifest.parent, run):
            return run, None
        found, _, graph = _measure(runner, manifest.parent, run)
        return found, graph

    with ThreadPoolExecutor(parallel) as pool:
        for found, graph in pool.map(measure, load_manifest(manifest)):
            if graph is not None:
                save(graph, corpus_of(manifest.parent, found))
            lines += ["", "[[run]]", *_toml(found)]
    manifest.write_text("\n".join([*lines, ""]))
    load_manifest(manifest)


def _toml(run: Run) -> Iterator[str]:
    for item in fields(Run):
        value = getattr(run, item.name)
        if isinstance(value, tuple):
            value = list(value)
        if value not in (item.default, []):
            yield f"{item.name} = {json.dumps(value)}"
