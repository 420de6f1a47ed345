"""Ranks as real processes under the real ``mpiexec``, each on a "host" of its own if it has a name."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.e2e.campaign import COMMAND, Place
from tests.service.support import PATIENCE_S

MPIEXEC = str(Path(sys.executable).with_name("mpiexec"))
PROGRAM = str(Path(__file__).with_name("faulty_rank.py"))
# Set by .ci/run, where everything must run: then what is missing fails instead of being skipped.
REQUIRED = os.environ.get("SMTSPOOL_MOUNTS") == "required"


@cache
def _namespaces() -> tuple[str, ...]:
    for unshare in (("unshare",), ("unshare", "--map-root-user")):
        if shutil.which("unshare"):
            done = subprocess.run([*unshare, "--uts", "hostname", "probe"], capture_output=True, check=False)
            if done.returncode == 0:
                return unshare
    return ()


def not_run(what: str, why: str) -> None:
    """Report by name what does not run here; where it is required, that is a failure."""
    if REQUIRED:
        pytest.fail(f"{what} is required here, but {why}")
    pytest.skip(f"not run: {what}: {why}")


class Rank:
    """One process of a job: its command line, its host's name ("" for the real one), more environment.

    ``mounted`` are pairs of folders: what is at the first is seen by this rank at the second.
    """

    def __init__(
        self,
        *words: str | Path,
        host: str = "",
        mounted: Sequence[tuple[Path, Path]] = (),
        program: Sequence[str] = (COMMAND,),
        **environment: str,
    ) -> None:
        self._command = [*program, *map(str, words)]
        self._host = host
        self._mounted = mounted
        self._environment = environment

    def argv(self) -> list[str]:
        """What mpiexec runs."""
        variables = [f"{name}={value}" for name, value in self._environment.items()]
        command = ["env", *variables, *self._command]
        if not self._host:
            return command
        namespaces = _namespaces()
        if not namespaces:
            not_run("ranks with host names of their own", "UTS namespaces are not permitted")
        steps = [f"hostname {self._host}"]
        steps += [f"mount --bind {shlex.quote(str(a))} {shlex.quote(str(b))}" for a, b in self._mounted]
        steps.append(f"exec {shlex.join(command)}")
        mounts = ("--mount",) if self._mounted else ()
        return [*namespaces, "--uts", *mounts, "sh", "-ec", "; ".join(steps)]


def job(ranks: Sequence[Rank]) -> list[str]:
    """The command line of a whole job."""
    words = [MPIEXEC]
    for number, rank in enumerate(ranks):
        words += [":"] * (number > 0) + ["-n", "1", *rank.argv()]
    return words


def run(
    place: Place, *ranks: Rank, code: int | None = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A job to its end; no process of it is left."""
    done = subprocess.run(
        job(ranks),
        cwd=place.folder,
        env=place.environment(**environment),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert code in (None, done.returncode), f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    place.assert_no_process_left()
    return done


def start(place: Place, *ranks: Rank, **environment: str) -> subprocess.Popen[str]:
    """A job that goes on until it ends, or the test does."""
    return place.launch(job(ranks), **environment)
