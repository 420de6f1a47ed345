"""The new test inputs of an answer: their bytes, their names, and the naming that told the bytes.

The inputs are a function of the model, the witnesses and the query, so they can be derived again at any time.
The publisher writes them, and the export compares them with the written files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from smtspool.errors import AdmissionError
from smtspool.files import Directory, Unstable, read_stable
from smtspool.query import Limits, candidate, implied_input
from smtspool.store import Publication

__all__ = ["NewInputs", "content", "new_inputs"]


@dataclass(frozen=True, slots=True)
class NewInputs:
    """The inputs of one answer, and the ``naming`` that told the bytes if no witness did.

    If a ``sat`` answer has no input, ``why`` is the reason.
    """

    data: tuple[bytes, ...] = ()
    naming: str | None = None
    why: str | None = None

    def named(self, publication: Publication) -> Iterator[tuple[str, bytes]]:
        """Each input with the name of its file, which has no leading dot, since AFL++ skips such files."""
        stem = f"id:{publication.id:06},query:{publication.result.query_id[:16]}"
        for number, data in enumerate(self.data):
            yield f"{stem},witness:{number}" if number else stem, data


def new_inputs(publication: Publication) -> NewInputs:
    """The model written over each input known to reach the branch, oldest first.

    If no witness says which symbol is which byte, the names of the symbols are used.

    Raises ModelError when a value of the model is no byte.
    """
    model = publication.result.answer.model
    if model is None:
        return NewInputs()
    told = [witness for witness in publication.witnesses if witness.symbols]
    if told or publication.query is None:
        made = (candidate(witness, model) for witness in publication.witnesses)
        return NewInputs(tuple(dict.fromkeys(data for data in made if data)))
    bases = [witness.input for witness in publication.witnesses] or [b""]
    implied = [implied_input(publication.query, model, base) for base in bases]
    found = tuple(dict.fromkeys(one.data for one in implied if one.data))
    if found:
        return NewInputs(found, implied[0].naming)
    why = implied[0].why or "the input is empty"
    return NewInputs(why=f"no witness says which symbol is which byte, and {why}")


def content(folder: Directory, name: str) -> bytes | None:
    """The content of the file; None if there is no such file, or one that is being written."""
    with suppress(FileNotFoundError, Unstable):
        try:
            return read_stable(folder, name, Limits().witness)[0]
        except AdmissionError:
            return b""  # a link, a folder, or far too long, so it is no input
    return None
