"""The command over what real symbolic executors wrote: no answer is against what is known."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from tests.e2e.campaign import Place

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif("SMTSPOOL_CLIENTS" not in os.environ, reason="SMTSPOOL_CLIENTS names no folder"),
]

ALL_ENGINES = "bitwuzla,z3,cvc5"
CLIENTS = ["KLEE", "Triton", "angr", "SymCC", "Manticore", "halmos"]


def expected(client: str) -> dict[str, set[str]]:
    """Path to what may be answered: what the client or z3 said, where they did."""
    with (Path(os.environ["SMTSPOOL_CLIENTS"]) / "MANIFEST.tsv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["client"] == client]
    return {row["path"]: {row["client_answer"], row["z3_answer"]} & {"sat", "unsat"} for row in rows}


@pytest.mark.parametrize("client", CLIENTS)
def test_no_answer_is_against_the_manifest(place: Place, client: str) -> None:
    root = Path(os.environ["SMTSPOOL_CLIENTS"])
    known = expected(client)
    assert all(len(answers) == 1 for answers in known.values())
    command = ("solve", "--json", "--timeout", "10", *(root / path for path in known))
    documents = place.documents(*command, code=None, SMTSPOOL_ENGINES=ALL_ENGINES)
    said = {str(Path(document["file"]).relative_to(root)): document for document in documents}
    assert said.keys() == known.keys()
    answers = {path: one["status"] for path, one in said.items() if "refused" not in one}
    assert not {path: one for path, one in answers.items() if {one} - {"unknown"} - known[path]}
    assert list(answers.values()).count("unknown") <= len(answers) // 10


def test_a_log_of_queries_is_answered_with_the_values_it_asks_for(place: Place) -> None:
    log = Path(os.environ["SMTSPOOL_CLIENTS"]) / "klee-log" / "tlv-all-queries.smt2"
    documents = place.documents("solve", "--json", log)
    assert len(documents) == log.read_text().count("(check-sat)")
    values = [term for document in documents for term in document["values"] or ()]
    assert len(values) == log.read_text().count("(get-value ")
    assert all(document["status"] in ("sat", "unsat") for document in documents)
