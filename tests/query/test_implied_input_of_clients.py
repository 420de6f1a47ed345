"""Inputs told from the queries of real symbolic executors: of the bytes, and of nothing else, the query is
satisfied; and the inputs the executors recorded lead where their prefix says."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import z3

from smtspool.errors import AdmissionError
from smtspool.query import Query, implied_input, parse_smt2, script
from smtspool.service import Settings, solve_scripts

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif("SMTSPOOL_CLIENTS" not in os.environ, reason="SMTSPOOL_CLIENTS names no folder"),
]
EACH = 8
NAMINGS = {
    "SymCC": "stdinN",
    "Triton": "in_N",
    "KLEE": "the array input",
    "Manticore": "the array STDIN",
    "angr": None,
    "halmos": None,
}


def samples(client: str) -> Iterator[tuple[bytes, str]]:
    """Some queries of a client, and the input to which each belongs."""
    root = Path(os.environ["SMTSPOOL_CLIENTS"])
    with (root / "MANIFEST.tsv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["client"] == client]
    for row in rows:
        yield (root / row["path"]).read_bytes(), row["witness_hex"]


def holds(text: str) -> bool:
    solver = z3.Solver()
    solver.from_string(text)
    return bool(solver.check() == z3.sat)


def bound(query: Query, data: bytes) -> str:
    """The query with its input fixed to ``data``, and nothing else."""
    lines = script(query).removesuffix("(check-sat)\n")
    for symbol in query.symbols:
        number = re.search(r"([0-9]+)$", symbol.name)
        if symbol.name in ("input", "STDIN"):
            lines += "".join(
                f"(assert (= (select {symbol.name} #x{at:08x}) #x{byte:02x}))" for at, byte in enumerate(data)
            )
        elif symbol.name.startswith(("stdin", "in_")) and number is not None:
            lines += f"(assert (= {symbol.name} #x{data[int(number[1])]:02x}))"
    return lines


@pytest.mark.parametrize(("client", "naming"), NAMINGS.items(), ids=NAMINGS)
def test_the_input_told_from_the_names_satisfies_the_query(client: str, naming: str | None) -> None:
    texts = [text for text, _ in samples(client)][: 2 * EACH]
    settings = Settings(engines=("bitwuzla", "z3"), jobs=1)
    told = 0
    for solved in solve_scripts([(f"{n}.smt2", text) for n, text in enumerate(texts)], settings):
        if solved.query is None or solved.answer is None or not solved.answer.model:
            continue  # refused, no model, or about no symbol at all
        implied = implied_input(solved.query, solved.answer.model)
        assert implied.naming == naming, (solved.script, implied)
        if implied.data is not None:
            assert holds(bound(solved.query, implied.data)), solved.script
            told += 1
    assert told >= EACH or naming is None


@pytest.mark.parametrize("client", ["SymCC", "Triton"])
def test_the_offsets_in_the_names_are_those_of_the_recorded_input(client: str) -> None:
    """A query negates the last branch that its input took: the prefix holds, the whole does not."""
    compared = 0
    for text, recorded in samples(client):
        try:
            (query,) = parse_smt2(text.decode())
        except AdmissionError:
            continue
        data = bytes.fromhex(recorded)
        if any(int(symbol.name.strip("stdin_")) >= len(data) for symbol in query.symbols):
            continue  # it read past the end of the input
        assert not holds(bound(query, data))
        if query.prefix:
            assert holds(bound(replace(query, prefix=query.prefix[:-1], target=query.prefix[-1]), data))
        compared += 1
    assert compared >= EACH
