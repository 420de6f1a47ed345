"""``solve``: answer files here and now, without a campaign."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from smtspool import printing, service
from smtspool.errors import AdmissionError, Reason
from smtspool.query import Limits

from .app import Engines, Exit, Files, Jobs, Json, Timeout, app, timeout_ms

STANDARD_INPUT = Path("-")


@app.command(epilog="Examples: smtspool solve q.smt2 · smtspool solve --json --timeout 20 queries/*.smt2")
def solve(
    files: Files,
    model: Annotated[bool, typer.Option("--model", "-m", help="Print the model of each sat query.")] = False,
    as_json: Json = False,
    engine: Engines = None,
    timeout: Timeout = None,
    jobs: Jobs = None,
) -> None:
    """Answer each query of the FILEs: sat, unsat or unknown; every sat is confirmed by a second engine.

    FILE - is standard input.
    """
    settings, _ = service.load(flags={"engines": engine, "timeout_ms": timeout_ms(timeout), "jobs": jobs})
    code = 0
    scripts = (_script(path) for path in files)
    with closing(service.solve_scripts(scripts, settings)) as answers:
        for solved in answers:
            printing.solved(solved, several=len(files) > 1, with_model=model, as_json=as_json)
            # Bad input outweighs an unknown answer: somebody has to do something about it.
            code = Exit.MISUSE if Exit.MISUSE in (code, _code(solved)) else (code or _code(solved))
    raise typer.Exit(code)


def _script(path: Path) -> tuple[str, bytes | AdmissionError]:
    """Name and content; what comes from standard input is an envelope if it begins like an object."""
    if path != STANDARD_INPUT:
        return str(path), _content(path)
    content = _content(Path("/dev/stdin"))
    envelope = isinstance(content, bytes) and content.lstrip()[:1] == b"{"
    return "stdin.json" if envelope else "stdin.smt2", content


def _content(path: Path) -> bytes | AdmissionError:
    """Up to one byte more than the limit, by which it is refused."""
    try:
        with path.open("rb") as file:
            return file.read(Limits().file + 1)
    except OSError as error:
        return AdmissionError(Reason.UNREADABLE, f"cannot be read: {error.strerror}")


def _code(solved: service.Solved) -> Exit:
    if solved.answer is None:
        return Exit.MISUSE
    return Exit.DONE if solved.answer.status.definite else Exit.UNANSWERED
