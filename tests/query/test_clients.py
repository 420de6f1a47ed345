"""What real symbolic executors wrote is read, each file, but for theories that no supported logic has."""

from __future__ import annotations

import csv
import os
from collections import Counter
from pathlib import Path

import pytest

from smtspool.errors import AdmissionError, Reason
from smtspool.query import decode, encode, parse_file

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif("SMTSPOOL_CLIENTS" not in os.environ, reason="SMTSPOOL_CLIENTS names no folder"),
]

FLOATING_POINT = {"angr/temp-0004.smt2"}
INTEGERS = "CrossHair"  # all of its queries are about integers, most about arrays of them


def manifest() -> list[dict[str, str]]:
    with (folder() / "MANIFEST.tsv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def folder() -> Path:
    return Path(os.environ["SMTSPOOL_CLIENTS"])


def test_every_query_over_bit_vectors_is_read() -> None:
    read: Counter[str] = Counter()
    refused: dict[str, str] = {}
    for row in manifest():
        path = folder() / row["path"]
        try:
            [query] = parse_file(path.name, path.read_bytes())
        except AdmissionError as refusal:
            refused[row["path"]] = refusal.reason
            assert row["client"] == INTEGERS or row["path"] in FLOATING_POINT, refusal.of(row["path"])
        else:
            read[row["client"]] += 1
            assert decode(encode(query)) == query
    assert set(refused.values()) == {Reason.LOGIC}
    assert refused.keys() > FLOATING_POINT
    assert read == {"KLEE": 44, "Triton": 44, "angr": 43, "SymCC": 44, "Manticore": 44, "halmos": 44}


def test_a_log_of_queries_is_read_whole() -> None:
    for log in sorted((folder() / "klee-log").iterdir()):
        text = log.read_text()
        queries = parse_file(log.name, text.encode())
        assert len(queries) == text.count("(check-sat)") > 1
        assert sum(len(query.values) for query in queries) == text.count("(get-value ")
        assert all(query.logic == "QF_AUFBV" for query in queries)
        assert not any(query.notes for query in queries)


def test_options_of_other_solvers_are_noted() -> None:
    paths = [folder() / row["path"] for row in manifest() if row["client"] == "Manticore"]
    notes = {
        note for path in paths for query in parse_file(path.name, path.read_bytes()) for note in query.notes
    }
    assert notes == {"the option :tactic.solve_eqs.context_solve is unknown and dropped"}
