"""What a command costs before it does anything: it imports what it needs, and no more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.support import equation

ENGINES = {"bitwuzla", "cvc5", "z3"}
OF_SERVICES = {"mpi4py", "prometheus_client"}
SCREEN = {"rich"}
DATABASE = {"sqlite3"}


# Runs the rest of its arguments as a program's, and prints what was imported when that ends.
ACCOUNT = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
"""


def imported(program: str, *arguments: str) -> set[str]:
    """The modules that a fresh interpreter has imported when ``program`` ends."""
    command = [sys.executable, "-c", ACCOUNT + program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return set(done.stderr.split())


def imported_by_command(*words: str | Path) -> set[str]:
    return imported("from smtspool.cli import main; main()", *map(str, words))


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_what_needs_no_campaign_imports_none_of_its_parts(words: tuple[str, ...]) -> None:
    modules = imported_by_command(*words)
    assert "smtspool.cli.app" in modules
    assert not modules & (ENGINES | OF_SERVICES | SCREEN | DATABASE)
    assert {module for module in modules if module.startswith("smtspool.")} <= {
        "smtspool.cli",
        "smtspool.cli.app",
        "smtspool.cli.main",
        "smtspool.errors",
        "smtspool.service.installed",
        "smtspool.lazily",
        "smtspool.service",  # the package, which has read none of its modules
        "smtspool.solve",
        "smtspool.solve.bundled",  # the names of the engines
    }


def test_solve_imports_what_solves_and_nothing_of_a_campaign(tmp_path: Path) -> None:
    script = tmp_path / "a.smt2"
    script.write_text(equation(1, against=2))
    modules = imported_by_command("solve", script)
    assert {"smtspool.solve.portfolio", "smtspool.store.store"} <= modules
    assert not modules & (ENGINES | OF_SERVICES | SCREEN | {"importlib.resources", "statistics", "tomllib"})
    assert "smtspool.store.backup" not in modules
    parts = {module.split(".")[1] for module in modules if module.startswith("smtspool.")}
    assert not parts & {"cluster", "profile", "sample", "spool"}


def test_an_engine_s_process_imports_nothing_of_the_service() -> None:
    modules = imported("import smtspool.solve.server")
    assert "smtspool.solve.helper" in modules
    assert not modules & (ENGINES | OF_SERVICES | SCREEN | DATABASE)
    assert {one for one in modules if one.startswith("smtspool.query.")} == {"smtspool.query.answer"}
    assert not {one for one in modules if one.startswith(("smtspool.service", "smtspool.solve.portfolio"))}
