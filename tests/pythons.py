"""``make pythons``: the fast tests on every Python that is installed, each in an environment of its own.

With paths of tests as arguments, the fast ones of those. A Python is found in pyenv, or by its name on the
path; one that is not there is reported by name. This file is run as a program by any Python, and imports
nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")  # as in pyproject.toml
_TOP = Path(__file__).parent.parent


def interpreter(version: str) -> str | None:
    """The command of a Python, None if it is not installed."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = sorted(pyenv.glob(f"{version}.*/bin/python{version}"))
    named = shutil.which(f"python{version}")
    for command in [*map(str, reversed(found)), *([named] if named else [])]:
        # A shim of pyenv is there whether or not it leads to anything.
        if subprocess.run([command, "-c", ""], capture_output=True).returncode == 0:
            return command
    return None


def environment(command: str, version: str) -> str:
    """The Python of an environment with the package and what its tests need; made unless it is there."""
    place = _TOP / f".venv-{version}"
    python, stamp = place / "bin" / "python", place / "stamp"
    named_in = [_TOP / "pyproject.toml", _TOP / "constraints.txt"]
    if not stamp.exists() or stamp.stat().st_mtime < max(file.stat().st_mtime for file in named_in):
        subprocess.run([command, "-m", "venv", str(place)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "-c", "constraints.txt", "-e", ".[dev,models]"], cwd=_TOP, check=True)
        stamp.touch()
    return str(python)


def passes(version: str, tests: Sequence[str]) -> bool:
    """Whether the tests pass on this Python, or it is not installed; says which."""
    command = interpreter(version)
    if command is None:
        print(f"Python {version}: not installed here", flush=True)
        return True
    print(f"Python {version}: {command}", flush=True)
    started = time.monotonic()
    options = ["-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    try:
        code = subprocess.run([environment(command, version), *options, *tests], cwd=_TOP).returncode
    except subprocess.CalledProcessError as error:  # pip has said why
        code = error.returncode
    went = "passed" if code == 0 else f"FAILED ({code})"
    print(f"Python {version}: {went}, {time.monotonic() - started:.0f} s", flush=True)
    return code == 0


def main(tests: Sequence[str]) -> int:
    """Run on each, whatever becomes of the others; 1 if something failed."""
    passed = {version: passes(version, tests) for version in VERSIONS}
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
