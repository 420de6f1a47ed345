"""Inputs of ``solve`` and ``submit``: files, folders of files, pipes, standard input, and lists of names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from smtspool.errors import AdmissionError, MisuseError, Reason
from smtspool.query import Limits, known_suffix, suffix_for

__all__ = ["FilesFrom", "Inputs", "expand", "read"]

Inputs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE...",
        help="*.smt2 or *.json, also as *.gz or *.xz; a folder of them; a pipe; - for standard input.",
        show_default=False,
    ),
]
FilesFrom = Annotated[
    Path | None,
    typer.Option(
        metavar="LIST",
        help="Also read the files named in LIST, one per line or ended by NULs; - is standard input.",
    ),
]
_STANDARD_INPUT = Path("-")


def expand(files: Sequence[Path] | None, files_from: Path | None) -> list[Path]:
    """All files to read, in order; a folder stands for the files of queries in it, at any depth.

    Raises ``MisuseError`` when there is nothing to read, and ``OSError`` if a list or folder cannot be read.
    """
    named = list(files or ())
    if files_from is not None:
        if files_from == _STANDARD_INPUT and _STANDARD_INPUT in named:
            raise MisuseError("standard input is either a query or a list of files, not both")
        named += _listed(files_from)
    if not named:
        raise MisuseError("nothing to read: name files or folders, or a list of them with --files-from")
    found = (_found(path) if path != _STANDARD_INPUT and path.is_dir() else [path] for path in named)
    return list(chain.from_iterable(found))


def read(path: Path) -> tuple[str, bytes | AdmissionError]:
    """Name and content. Of a file that is too large, one byte more than the limit is read, so it is refused.

    Standard input, and a pipe without the suffix of a query, gets the suffix that its first bytes suggest.
    """
    standard_input = path == _STANDARD_INPUT
    name = "stdin" if standard_input else str(path)
    if path.is_dir():
        return name, AdmissionError(Reason.EMPTY, "a folder in which nothing ends in .smt2 or .json")
    try:
        with (Path("/dev/stdin") if standard_input else path).open("rb") as file:
            content = file.read(Limits().file + 1)
    except OSError as error:
        return name, AdmissionError(Reason.UNREADABLE, f"cannot be read: {error.strerror}")
    told = not standard_input and (path.is_file() or known_suffix(name))
    return (name if told else name + suffix_for(content)), content


def _listed(files_from: Path) -> list[Path]:
    data = (Path("/dev/stdin") if files_from == _STANDARD_INPUT else files_from).read_bytes()
    names = data.split(b"\0") if b"\0" in data else data.splitlines()
    return [Path(os.fsdecode(name)) for name in names if name]


def _found(folder: Path) -> list[Path]:
    """The queries in ``folder``; the folder itself if there are none, for :func:`read` to refuse.

    Pipes in a folder are left out, since no process may be writing to them; a pipe must be named itself.
    """
    found = (path for path in _walk(folder) if known_suffix(path.name) and not path.is_fifo())
    return sorted(found) or [folder]


def _walk(folder: Path) -> Iterator[Path]:
    """The files below ``folder`` that are not hidden, nor in a hidden folder or behind a link to one."""
    for here, folders, files in os.walk(folder, onerror=_fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(here, name) for name in files if not name.startswith("."))


def _fail(error: OSError) -> None:
    raise error
