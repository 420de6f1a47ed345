"""``solve``: answer files at once, without a campaign."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from smtspool import printing, service

from .app import Engines, Exit, Jobs, Json, Timeout, app, timeout_ms
from .inputs import FilesFrom, Inputs, expand, read


@app.command(epilog="Examples: smtspool solve q.smt2 · smtspool solve --json --timeout 20 queries/")
def solve(
    files: Inputs = None,
    files_from: FilesFrom = None,
    model: Annotated[bool, typer.Option("--model", "-m", help="Print the model of each sat query.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say what was dropped.")] = False,
    as_json: Json = False,
    engine: Engines = None,
    timeout: Timeout = None,
    jobs: Jobs = None,
) -> None:
    """Answer each query of the FILEs: sat, unsat or unknown; every sat is confirmed by a second judge.

    That is smtspool's own evaluator or another engine. A folder stands for all queries in it. A refusal names
    its place, FILE:LINE:COLUMN.
    """
    paths = expand(files, files_from)
    settings, _ = service.load(flags={"engines": engine, "timeout_ms": timeout_ms(timeout), "jobs": jobs})
    code = 0
    with closing(service.solve_scripts(map(read, paths), settings)) as answers:
        noted: set[tuple[str, str]] = set()
        for solved in answers:
            if verbose and solved.query is not None:
                new = [note for note in solved.query.notes if (solved.script, note) not in noted]
                noted.update((solved.script, note) for note in new)
                printing.notes(solved.script, new)
            printing.solved(solved, several=len(paths) > 1, with_model=model, as_json=as_json)
            # The code for bad input takes precedence over that for an unknown answer, since the user has to
            # repair it.
            code = Exit.MISUSE if Exit.MISUSE in (code, _code(solved)) else (code or _code(solved))
    raise typer.Exit(code)


def _code(solved: service.Solved) -> Exit:
    if solved.answer is None:
        return Exit.MISUSE
    return Exit.DONE if solved.answer.status.definite else Exit.UNANSWERED
