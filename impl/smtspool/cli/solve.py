"""``solve``: answer files here and now, without a campaign."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from smtspool import printing, service
from smtspool.errors import AdmissionError, Reason

from .app import Engines, Exit, Files, Jobs, Json, Timeout, app, timeout_ms


@app.command(epilog="Examples: smtspool solve q.smt2 · smtspool solve --json --timeout 20 queries/*.smt2")
def solve(
    files: Files,
    model: Annotated[bool, typer.Option("--model", "-m", help="Print the model of each sat query.")] = False,
    as_json: Json = False,
    engine: Engines = None,
    timeout: Timeout = None,
    jobs: Jobs = None,
) -> None:
    """Answer each query of the FILEs: sat, unsat or unknown; every sat is confirmed by a second engine."""
    settings, _ = service.load(flags={"engines": engine, "timeout_ms": timeout_ms(timeout), "jobs": jobs})
    code = 0
    scripts = ((str(path), _content(path)) for path in files)
    with closing(service.solve_scripts(scripts, settings)) as answers:
        for solved in answers:
            printing.solved(solved, several=len(files) > 1, model=model, as_json=as_json)
            # Bad input outweighs an unknown answer: somebody has to do something about it.
            code = Exit.MISUSE if Exit.MISUSE in (code, _code(solved)) else (code or _code(solved))
    raise typer.Exit(code)


def _content(path: Path) -> bytes | AdmissionError:
    try:
        return path.read_bytes()
    except OSError as error:
        return AdmissionError(Reason.UNREADABLE, f"cannot be read: {error.strerror}")


def _code(solved: service.Solved) -> Exit:
    if solved.answer is None:
        return Exit.MISUSE
    return Exit.DONE if solved.answer.status.definite else Exit.UNANSWERED
